/** Python is started once, whichever threads open it at the same time. */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { oneAtATime } from "../../src/python/start_lock.ts";
import { patiently, runScriptForJson } from "../support/child.ts";
import { needs } from "../support/needs.ts";
import { findPython } from "../support/python.ts";

const found = findPython();
const missing = typeof found === "string" ? found : null;
const executable = typeof found === "string" ? "" : found.executable;
const script = new URL("./open_in_workers_child.ts", import.meta.url);

// Three of four processes crashed, or Python was not initialized in one of the Workers.
const [title, { skip }] = needs(missing, "Workers that open Python at the same time start it once");
test(title, { skip, ...patiently }, async () => {
  for (let i = 0; i < 4; i++) assertEquals(await runScriptForJson(script, { args: [executable] }), [2, 2, 2, 2]);
});

test("the lock of a call that fails is released, and a thread that has it may take it again", () => {
  let failed = 0;
  for (let i = 0; i < 3; i++) {
    try {
      oneAtATime(() => {
        throw new Error("expected");
      });
    } catch {
      failed++;
    }
  }
  assertEquals([failed, oneAtATime(() => oneAtATime(() => "done"))], [3, "done"]);
});
