/** The simulator answers invalid calls as libcuda does, under every schedule. */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { simulateDriver } from "../../src/sim/mod.ts";
import { captureQuestions } from "../support/capture_questions.ts";
import { examples, expected } from "../support/error_codes.ts";
import { Raw } from "../support/raw_driver.ts";

for (const { name, devices, ask } of [...examples, captureQuestions]) {
  test(`the simulator answers as the driver does: ${name}`, () => {
    for (const schedule of ["latest", "random", "round-robin"] as const) {
      using simulated = simulateDriver({ devices, schedule });
      using raw = new Raw(simulated.driver, devices);
      assertEquals(ask(raw), expected[name], schedule);
    }
  });
}
