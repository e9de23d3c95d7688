/**
 * Tests that run once more where executable memory is refused: there JavaScript does what machine code does elsewhere.
 *
 * @module
 */
import { assert } from "@std/assert";
import { spawnSync } from "node:child_process";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { stripVTControlCharacters } from "node:util";
import { isBun } from "./child.ts";

/** Runs a module of tests that refuses executable memory first, on few cases of each property. */
export function passWhereRefused(url: URL): void {
  const command = isBun
    ? ["test", "--timeout", "600000"]
    : ["test", "-A", "--no-check", "--quiet", "--no-lock", "--node-modules-dir=manual"];
  const { status, signal, stdout, stderr } = spawnSync(process.execPath, [...command, fileURLToPath(url)], {
    env: { ...process.env, CAUSEWAY_SETUP: "done", CAUSEWAY_RUNS: "0.05" },
    encoding: "utf8",
    timeout: 280_000,
  });
  const output = stripVTControlCharacters(`${stdout}\n${stderr}`);
  assert(status === 0, `${signal ?? `exit code ${status}`}\n${output}`);
  const [, passed = "0"] = /(\d+) pass/.exec(output) ?? [];
  assert(Number(passed) > 10, output);
}
