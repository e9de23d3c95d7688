/**
 * Scripts that tests run in a process of their own, because a permission, the environment or a crash is the subject.
 *
 * @module
 */
import { spawnSync } from "node:child_process";
import process from "node:process";
import { fileURLToPath } from "node:url";

/** Which runtime runs this file. */
export const isBun: boolean = process.versions["bun"] !== undefined;

/** What a child process may have, beyond nothing. */
export interface ChildOptions {
  /** Deno's permission flags, at least one; Bun has none. Everything is allowed if not given. */
  readonly permissions?: readonly string[];
  /** Environment variables. Nothing else is passed on but what the runtimes need to find their caches. */
  readonly env?: { readonly [name: string]: string };
  /** The folder to run in. */
  readonly cwd?: string;
  /** Text on its standard input. */
  readonly input?: string;
}

/** How a child process ended. */
export interface Child {
  readonly status: number | null;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
}

const kept = ["PATH", "HOME", "DENO_DIR", "XDG_CACHE_HOME", "TMPDIR"];

/** Runs `children/<name>.ts` by the runtime that runs the test, to its end. */
export function runChild(name: string, args: readonly string[] = [], options: ChildOptions = {}): Child {
  const script = fileURLToPath(new URL(`children/${name}.ts`, import.meta.url));
  const { permissions = ["-A"], env = {}, cwd, input } = options;
  // Deno's spawnSync adds -A to the arguments of a deno that is given no permission flag.
  if (permissions.length === 0) throw new RangeError("Say what is not permitted, such as --deny-ffi");
  // Without the configuration of this folder: what the child imports must not need it.
  const run = isBun ? ["run"] : ["run", "--quiet", "--no-prompt", "--no-config", "--no-lock", ...permissions];
  const inherited = kept.flatMap((key) => process.env[key] === undefined ? [] : [`${key}=${process.env[key]}`]);
  const given = Object.entries(env).map(([key, value]) => `${key}=${value}`);
  // By env -i, because Deno's spawnSync adds the option `env` to the environment of the parent instead of replacing it.
  const command = ["-i", ...inherited, "NO_COLOR=1", ...given, process.execPath, ...run, script, ...args];
  const { status, signal, stdout, stderr } = spawnSync("env", command, {
    encoding: "utf8",
    timeout: 30_000,
    ...(cwd === undefined ? {} : { cwd }),
    ...(input === undefined ? {} : { input }),
  });
  return { status, signal, stdout, stderr };
}

/**
 * Runs a script and reads the JSON that it prints.
 *
 * @throws {Error} with all that it said, if it did not exit with 0
 */
export function askChild(name: string, args: readonly string[] = [], options: ChildOptions = {}): unknown {
  const { status, signal, stdout, stderr } = runChild(name, args, options);
  if (status !== 0) throw new Error(`children/${name}.ts: exit code ${status}, signal ${signal}\n${stdout}${stderr}`);
  return JSON.parse(stdout);
}
