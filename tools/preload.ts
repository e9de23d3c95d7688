/**
 * Runs before `bun test`: in a fresh clone it installs the packages that the tests import, and the system packages that
 * they need. The timeout that a loaded machine needs (the default is 5 s) is set on the command line: bunfig.toml has
 * no setting for it, and `setDefaultTimeout` applies to one file (Bun 1.4.4).
 *
 * @module
 */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import process from "node:process";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

/** Runs a command of this Bun in the project's folder; its output is shown only if it fails. */
function bun(...args: string[]): void {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: root, encoding: "utf8" });
  if (stdout.startsWith("Installing") || status !== 0) process.stderr.write(stdout + stderr);
  if (status !== 0) process.exit(status ?? 1);
}

/** Reruns this command line, and exits with its status. */
function anew(change: (args: readonly string[]) => readonly string[]): never {
  const [, ...args] = commandLine();
  const env = { ...process.env, CAUSEWAY_SETUP: "done" };
  process.exit(spawnSync(process.execPath, [...change(args)], { stdio: "inherit", env }).status ?? 1);
}

function commandLine(): string[] {
  return readFileSync("/proc/self/cmdline", "utf8").split("\0").slice(0, -1);
}

if (process.env["CAUSEWAY_SETUP"] !== "done") {
  bun("tools/setup.ts", "ucx", "python");
  if (!existsSync(`${root}node_modules/fast-check`)) {
    bun("install", "--frozen-lockfile");
    // This Bun has already looked for node_modules, and will not look again: the same command line is rerun.
    anew((args) => args);
  }
}

if (!commandLine().some((arg) => arg.startsWith("--timeout"))) {
  anew((args) => args.toSpliced(args.indexOf("test") + 1, 0, "--timeout", "600000"));
}
