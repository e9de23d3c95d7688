import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { runScriptForJson } from "../support/child.ts";

test("what is left open does not keep the process alive, and memory under way is not collected", async () => {
  const script = new URL("./unclosed_child.ts", import.meta.url);
  const result = await runScriptForJson(script, { gc: true, timeout: 10_000 });
  assertEquals(result, { during: 3, after: 0 });
});
