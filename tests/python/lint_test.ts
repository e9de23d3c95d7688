/** Lints the Python files. */
import { assertEquals } from "@std/assert";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { exchangeApiSource, guestSource } from "../../src/python/guest_source.ts";
import { needs } from "../support/needs.ts";
import { findPython } from "../support/python.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const found = findPython();
const missing = typeof found === "string" ? found : null;
const executable = typeof found === "string" ? "" : found.executable;

function ruffIsMissing(): string | null {
  if (missing !== null) return missing;
  const { status } = spawnSync(executable, ["-m", "ruff", "--version"], { stdio: "ignore" });
  return status === 0 ? null : `${executable} has no ruff: install it there, or set CAUSEWAY_PYTHON`;
}

const noRuff = ruffIsMissing();
const ruff = (args: readonly string[], input = "") =>
  spawnSync(executable, ["-m", "ruff", ...args], { cwd: root, encoding: "utf8", input });

test(...needs(noRuff, "the linter finds nothing in Python's files, alone and joined, and they are formatted"), () => {
  const folders = ["bench", "src", "tests", "tools"];
  const { status, stdout, stderr } = ruff(["check", "--no-cache", "--output-format=concise", ...folders]);
  assertEquals(status, 0, stdout + stderr);
  const format = ruff(["format", "--no-cache", "--check", ...folders]);
  assertEquals(format.status, 0, format.stdout + format.stderr);
  // Joined, as they run: a name that no file defines is found here, whatever the imports say.
  const lintJoined = (source: string) =>
    ruff(["check", "--no-cache", "--isolated", "--select=E9,F821,F822,F823", "-"], source);
  const joined = `${guestSource}\n${exchangeApiSource}`;
  const all = lintJoined(joined);
  assertEquals(all.status, 0, all.stdout + all.stderr);
  assertEquals(lintJoined(`${joined}\nundefined_name\n`).status, 1);
});
