/** Malformed Arrow structs, tried in a process of their own, so that a crash is seen as one. */
import { assert } from "@std/assert";
import { test } from "node:test";
import { patiently, runScriptForJson } from "../support/child.ts";
import { scaled } from "../support/property.ts";

test("a malformed Arrow struct is refused before anything is read that it does not vouch for", patiently, async () => {
  const timeout = 280_000;
  const script = new URL("arrow_fuzz_child.ts", import.meta.url);
  const tally = await runScriptForJson(script, { timeout }) as Record<string, number>;
  const total = Object.values(tally).reduce((sum, count) => sum + count, 0);
  assert(total >= scaled(25_000), JSON.stringify(tally));
  // Every way to break an array must have been tried often, and arrays that are right too.
  for (const [how, count] of Object.entries(tally)) assert(count >= scaled(20), `${how}: ${count}`);
  assert(Object.keys(tally).length >= 30, JSON.stringify(tally));
});
