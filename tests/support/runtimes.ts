/**
 * Both runtimes, for tests in which processes of each communicate.
 *
 * @module
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import process from "node:process";
import { fileURLToPath } from "node:url";

/** A runtime, and how to run a script with it. */
export interface Runtime {
  readonly name: "deno" | "bun";
  /** Program and first arguments. */
  readonly command: readonly string[];
  /** What is missing to use it, or null. */
  readonly missing: string | null;
}

const here: Runtime["name"] = process.versions["bun"] === undefined ? "deno" : "bun";

function runtime(name: Runtime["name"]): Runtime {
  const program = name === here ? process.execPath : process.env[`CAUSEWAY_${name.toUpperCase()}`] ?? name;
  const missing = name === here || spawnSync(program, ["--version"]).status === 0
    ? null
    : `no ${name}: put it on PATH, or set CAUSEWAY_${name.toUpperCase()} to its path`;
  return { name, command: name === "deno" ? [program, "run", "-A", "--no-check", "--quiet"] : [program], missing };
}

/** This runtime, then the other one. */
export const runtimes: readonly Runtime[] = [runtime(here), runtime(here === "deno" ? "bun" : "deno")];

/** A script that was started. */
export interface Running {
  readonly child: ChildProcess;
  /** Resolves with all that it printed, once it exits with code 0; rejects otherwise. */
  readonly printed: Promise<string>;
}

/** Starts a script. It is killed after `timeout` milliseconds, 60 seconds by default. */
export function startIn(
  { command: [program = "", ...first] }: Runtime,
  url: URL,
  args: readonly string[],
  { timeout = 60_000 }: { readonly timeout?: number } = {},
): Running {
  const child = spawn(program, [...first, fileURLToPath(url), ...args], { timeout, killSignal: "SIGKILL" });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => stdout += text);
  child.stderr.setEncoding("utf8").on("data", (text: string) => stderr += text);
  const printed = new Promise<string>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, signal) => {
      if (code === 0) resolve(stdout);
      else reject(new Error(`${url} ended with ${signal ?? `exit code ${code}`}\n${stdout}\n${stderr}`));
    });
  });
  printed.catch(() => {}); // a caller that kills the script ignores the rejection
  return { child, printed };
}
