/** Versions of the runtimes that are too old are refused where native code is first used, by an error that says so. */
import { assertEquals } from "@std/assert";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { oldestRuntimes, tooOld } from "../../src/ffi/oldest_runtimes.ts";
import { isBun, runScriptForJson } from "../support/child.ts";

const name = isBun ? "bun" : "deno";
const oldest = oldestRuntimes[name];

test("what package.json calls the oldest versions is what the code does", () => {
  const { engines } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  assertEquals(engines, { bun: `>=${oldestRuntimes.bun}`, deno: `>=${oldestRuntimes.deno}` });
});

test("a version is too old if its major or its minor version, as numbers, is less", () => {
  const old = (versions: readonly string[]) => versions.map((version) => tooOld("bun", version) !== undefined);
  assertEquals(old(["1.3.14", "1.2.0", "1.0.36", "0.9.9"]), [true, true, true, true]);
  assertEquals(old(["1.4.0", "1.4.5-canary.1", "1.10.0", "2.0.0"]), [false, false, false, false]);
});

test("native code in a runtime that is too old is an FfiError with both versions; layouts work there", async () => {
  const runtime = isBun ? "Bun" : "Deno";
  const says = (version: string) =>
    `Cannot use causeway: ${runtime} ${oldest} or newer is needed, and this is ${runtime} ${version}. ` +
    `Run ${name} upgrade.`;
  const [old, older, first] = isBun ? ["1.3.14", "0.8.0", "1.4.0"] : ["2.8.3", "1.46.3", "2.9.0"];
  const script = new URL("children/old_runtime.ts", import.meta.url);
  assertEquals(await runScriptForJson(script, { args: [old, older, first] }), {
    outcomes: [[says(old), says(old), says(old)], [says(older), says(older), says(older)], [first, 8, "VortexError"]],
    strides: [3, 1],
  });
});
