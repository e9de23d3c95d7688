/** The simulator's results do not depend on its schedule, and together the questions cover every call that it has. */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { cuda } from "../../bindings/cuda.ts";
import { simulateDriver } from "../../src/sim/mod.ts";
import { fc } from "../support/property.ts";
import { byteCalls, runByteCalls } from "../support/byte_calls.ts";
import { examples } from "../support/error_codes.ts";
import { questions } from "../support/questions.ts";
import { Raw } from "../support/raw_driver.ts";

for (const { name, devices, ask } of questions) {
  test(`every schedule gives the same results: ${name}`, () => {
    const answers = (["latest", "random", "round-robin"] as const).map((schedule) => {
      using simulated = simulateDriver({ devices, schedule });
      using raw = new Raw(simulated.driver, devices);
      return ask(raw);
    });
    for (const one of answers) assertEquals(one, answers[0]);
  });
}

/** Calls that need two processes, covered by the tests of sharing. */
const shared = /Ipc|Shareable|PoolExport|PoolImport/;

test("the differential tests cover every call that is simulated", () => {
  const names = Object.values(cuda).flatMap((group) => Object.keys(group));
  const seen = new Set<string>();
  const note = (simulated: ReturnType<typeof simulateDriver>) => {
    for (const name of names) if (simulated.calls(name) > 0) seen.add(name);
  };
  for (const { ask, devices } of [...examples, ...questions]) {
    using simulated = simulateDriver({ devices });
    using raw = new Raw(simulated.driver, devices);
    ask(raw);
    note(simulated);
  }
  using simulated = simulateDriver();
  for (const calls of fc.sample(byteCalls, { numRuns: 150, seed: 1 })) runByteCalls(simulated.driver, calls);
  note(simulated);
  const missing = names.filter((name) => simulated.simulates(name) && !seen.has(name) && !shared.test(name));
  assertEquals(missing, ["cuLaunchKernelEx"]); // in kernels_test.ts, with its struct
});
