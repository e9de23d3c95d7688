/** Python is started once, whichever threads open it at the same time. */
import { assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { FfiError } from "../../mod.ts";
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

test("a lock is held by one at a time, is released when a call fails, and is not waited for without end", () => {
  for (let i = 0; i < 3; i++) {
    assertThrows(
      () =>
        oneAtATime("a test", () => {
          throw new Error("expected");
        }),
      Error,
      "expected",
    );
  }
  const held = () => oneAtATime("a test", () => "within", 20);
  assertThrows(() => oneAtATime("a test", held), FfiError, "another thread has been starting it");
  assertEquals([oneAtATime("a test", () => oneAtATime("another", () => "done")), held()], ["done", "within"]);
});
