/**
 * Runs before `bun test`: in a fresh clone it gets the packages that the tests import, and what they need of the system.
 * Tests get the time that a loaded machine needs, for which bunfig.toml has no word (Bun 1.4.4): by default it is 5 s.
 *
 * @module
 */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import process from "node:process";
import { fileURLToPath } from "node:url";

const specifier = "bun:test"; // which Deno, that checks this file, does not know
const { setDefaultTimeout } = await import(specifier) as { setDefaultTimeout(milliseconds: number): void };
setDefaultTimeout(600_000);

const root = fileURLToPath(new URL("..", import.meta.url));

/** Runs a command of this Bun in the project's folder; what it prints is seen only if it fails. */
function bun(...args: string[]): void {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: root, encoding: "utf8" });
  if (stdout.startsWith("Installing") || status !== 0) process.stderr.write(stdout + stderr);
  if (status !== 0) process.exit(status ?? 1);
}

if (process.env["CAUSEWAY_SETUP"] !== "done") {
  bun("tools/setup.ts", "ucx", "python");
  if (!existsSync(`${root}node_modules/fast-check`)) {
    bun("install", "--frozen-lockfile");
    // This Bun has looked for node_modules already, and will not look again: the same command line begins anew.
    const [, ...args] = readFileSync("/proc/self/cmdline", "utf8").split("\0").slice(0, -1);
    const env = { ...process.env, CAUSEWAY_SETUP: "done" };
    process.exit(spawnSync(process.execPath, args, { stdio: "inherit", env }).status ?? 1);
  }
}
