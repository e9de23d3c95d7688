import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { patiently, runScriptForJson } from "../support/child.ts";

test(
  "objects left open do not keep the process alive, and memory in flight is not freed",
  patiently,
  async () => {
    const script = new URL("./unclosed_child.ts", import.meta.url);
    const result = await runScriptForJson(script, { gc: true, timeout: 60_000 });
    assertEquals(result, { during: 0, after: 3 });
  },
);

test("a process that listens, or waits for messages, stays alive, and ends afterwards", patiently, async () => {
  const script = new URL("./listening_child.ts", import.meta.url);
  assertEquals(await runScriptForJson(script, { timeout: 30_000 }), "late");
});
