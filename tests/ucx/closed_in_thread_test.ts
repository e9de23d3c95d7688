/** A thread may end as soon as its worker is closed: nothing of the worker is left. */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { patiently, runScript } from "../support/child.ts";

test("a thread that closes its worker leaves no descriptor and no thread of it", patiently, async () => {
  // The descriptor that ends the worker's sleep was left, and in Bun its thread, if nothing else kept the thread alive.
  const { code, stdout, stderr } = await runScript(new URL("./closed_in_thread_child.ts", import.meta.url));
  assertEquals([code, stdout.trim()], [0, "0 true"], stderr);
});
