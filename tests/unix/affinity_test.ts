/** The processors that a process may run on, as the system reports them. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import "../../mod.ts";
import { SystemError } from "../../src/ffi/mod.ts";
import { runOn } from "../../src/unix/mod.ts";
import { patiently, runScriptForJson } from "../support/child.ts";
import { allowedProcessors } from "../support/processors.ts";

for (const processor of allowedProcessors()) {
  test(`every thread stays on processor ${processor}`, patiently, async () => {
    const script = new URL("affinity_child.ts", import.meta.url);
    const { before, allowed } = await runScriptForJson(script, { args: [`${processor}`] }) as {
      before: number;
      allowed: string[];
    };
    assert(before > 1, "a runtime has threads of its own");
    assertEquals(new Set(allowed), new Set([`${processor}`]));
  });
}

test("a missing processor is refused by the system, and an invalid number before", () => {
  const error = assertThrows(() => runOn(4000), SystemError, "Cannot run on processor 4000: sched_setaffinity failed");
  assertEquals(error.code, "EINVAL");
  for (const processor of [-1, 0.5, NaN, 2 ** 40]) assertThrows(() => runOn(processor), RangeError, "a number from 0");
});
