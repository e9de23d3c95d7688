/**
 * Scripts in processes of their own, under the runtime that runs the test: for environment variables that are read
 * once, for the garbage collector's sake, and for processes that are meant to die.
 *
 * @module
 */
import { type ChildProcess, spawn, type SpawnOptions } from "node:child_process";
import process from "node:process";
import { fileURLToPath } from "node:url";

/**
 * Options for a test that waits for processes: Bun gives a test 5 s unless it says otherwise, which a loaded machine
 * may need for starting them.
 */
export const patiently: { readonly timeout: number } = { timeout: 300_000 };

/** How a script is started. */
export interface ScriptOptions {
  /** Arguments. */
  readonly args?: readonly string[];
  /** Environment variables to set, or with `undefined` to remove; all others are inherited. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Whether `gc()` can be called. Default false. */
  readonly gc?: boolean;
  /** Milliseconds after which the process is killed. Default 60000. */
  readonly timeout?: number;
}

/** What a script has left behind. */
export interface ScriptResult {
  /** The exit code, or null if a signal ended it. */
  readonly code: number | null;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Starts a script. Standard input and output are pipes. */
export function startScript(url: URL, options: ScriptOptions, stdio: SpawnOptions["stdio"] = "pipe"): ChildProcess {
  const { args = [], env = {}, gc = false, timeout = 60_000 } = options;
  const flags = process.versions["bun"] === undefined
    // What is installed is used as it is: a machine with GPUs may have no network.
    ? [
      "run",
      "-A",
      "--no-check",
      "--quiet",
      "--no-lock",
      "--node-modules-dir=manual",
      ...(gc ? ["--v8-flags=--expose-gc"] : []),
    ]
    : gc
    ? ["--expose-gc"]
    : [];
  const variables: Record<string, string> = {};
  for (const [name, value] of Object.entries({ ...process.env, ...env })) {
    if (value !== undefined) variables[name] = value;
  }
  const command = [...flags, fileURLToPath(url), ...args];
  return spawn(process.execPath, command, { env: variables, stdio, timeout, killSignal: "SIGKILL" });
}

/** Runs a script to its end. */
export function runScript(url: URL, options: ScriptOptions = {}): Promise<ScriptResult> {
  const child = startScript(url, options, ["ignore", "pipe", "pipe"]);
  let stdout = "";
  let stderr = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => stdout += text);
  child.stderr?.setEncoding("utf8").on("data", (text: string) => stderr += text);
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, signal) => resolve({ code, signal, stdout, stderr }));
  });
}

/**
 * Runs a script that prints one JSON value as its last line.
 *
 * @throws {Error} with all that it printed, if it ends in any other way
 */
export async function runScriptForJson(url: URL, options: ScriptOptions = {}): Promise<unknown> {
  const { code, signal, stdout, stderr } = await runScript(url, options);
  if (code !== 0) throw new Error(`${url} ended with ${signal ?? `exit code ${code}`}\n${stdout}\n${stderr}`);
  return JSON.parse(stdout.trimEnd().split("\n").at(-1) ?? "");
}
