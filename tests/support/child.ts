/**
 * Scripts in separate processes, under the runtime that runs the test: for environment variables that are read once,
 * for garbage collection, and for processes that are meant to die.
 *
 * @module
 */
import { type ChildProcess, spawn, type SpawnOptions } from "node:child_process";
import process from "node:process";
import { fileURLToPath } from "node:url";

/** Whether this runtime is Bun. */
export const isBun: boolean = process.versions["bun"] !== undefined;

/**
 * Options for a test that waits for processes: Bun's default timeout of a test is 5 s, which a loaded machine may need
 * just to start them.
 */
export const patiently: { readonly timeout: number } = { timeout: 300_000 };

/** How a script is started. */
export interface ScriptOptions {
  /** Arguments. */
  readonly args?: readonly string[];
  /** Environment variables to set, or with `undefined` to remove; all others are inherited. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /**
   * Whether to inherit only what the runtimes need to find their caches, and to read no configuration: for scripts that
   * must need neither. Default false.
   */
  readonly isBare?: boolean;
  /** The working directory. Default: this process's. */
  readonly cwd?: string;
  /** Text on its standard input. */
  readonly input?: string;
  /** Whether `gc()` can be called. Default false. */
  readonly gc?: boolean;
  /** Deno's permissions; Bun has none. Default all. */
  readonly permissions?: readonly string[];
  /** Milliseconds after which the process is killed. Default 60000. */
  readonly timeout?: number;
}

/** The result of a script. */
export interface ScriptResult {
  /** The exit code, or null if a signal ended it. */
  readonly code: number | null;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Starts a script. Standard input and output are pipes. */
export function startScript(url: URL, options: ScriptOptions, stdio: SpawnOptions["stdio"] = "pipe"): ChildProcess {
  const { args = [], env = {}, isBare = false, cwd, input, gc = false, permissions = ["-A"], timeout = 60_000 } =
    options;
  const flags = isBun
    ? gc ? ["--expose-gc"] : []
    // Use installed packages as they are: a machine with GPUs may have no network.
    : [
      "run",
      "--no-prompt",
      ...permissions,
      "--no-check",
      "--quiet",
      "--no-lock",
      isBare ? "--no-config" : "--node-modules-dir=manual",
      ...(gc ? ["--v8-flags=--expose-gc"] : []),
    ];
  const inherited = Object.entries(process.env).filter(([name]) => !isBare || caches.has(name));
  const variables: Record<string, string> = {};
  for (const [name, value] of [...inherited, ...Object.entries(env)]) {
    if (value === undefined) delete variables[name];
    else variables[name] = value;
  }
  const command = [...flags, fileURLToPath(url), ...args];
  const child = spawn(process.execPath, command, {
    env: variables,
    stdio,
    timeout,
    killSignal: "SIGKILL",
    ...(cwd === undefined ? {} : { cwd }),
  });
  if (input !== undefined) child.stdin?.end(input);
  return child;
}

/** Variables by which the runtimes find their programs and caches. */
const caches = new Set(["PATH", "HOME", "DENO_DIR", "XDG_CACHE_HOME", "TMPDIR"]);

/** Runs a script to completion. */
export function runScript(url: URL, options: ScriptOptions = {}): Promise<ScriptResult> {
  const child = startScript(url, options, [options.input === undefined ? "ignore" : "pipe", "pipe", "pipe"]);
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
 * @throws {Error} with everything it printed, if it ends in any other way
 */
export async function runScriptForJson(url: URL, options: ScriptOptions = {}): Promise<unknown> {
  const { code, signal, stdout, stderr } = await runScript(url, options);
  if (code !== 0) throw new Error(`${url} ended with ${signal ?? `exit code ${code}`}\n${stdout}\n${stderr}`);
  return JSON.parse(stdout.trimEnd().split("\n").at(-1) ?? "");
}
