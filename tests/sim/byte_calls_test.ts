/** Every call that copies or fills bytes leaves the right ones, under every schedule. */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { simulateDriver } from "../../src/sim/mod.ts";
import { check, fc } from "../support/property.ts";
import { byteCalls, referenceBytes, runByteCalls } from "../support/byte_calls.ts";

test("random copies and fills, flat, in rectangles and in boxes, leave the bytes that plain loops leave", () => {
  const schedules = fc.constantFrom("latest" as const, "random" as const, "round-robin" as const);
  check(
    fc.property(byteCalls, schedules, fc.nat(), (calls, schedule, seed) => {
      using simulated = simulateDriver({ schedule, seed });
      assertEquals(runByteCalls(simulated.driver, calls), referenceBytes(calls));
    }),
    150,
  );
});
