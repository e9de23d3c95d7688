/**
 * Child processes: their output and their exit.
 *
 * @module
 */
import { type ChildProcess, spawn } from "node:child_process";
import process from "node:process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { ffiPort } from "../ffi/mod.ts";

/** How a program exited. */
export interface Finished {
  /** null if it could not be started, or a signal ended it. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program to completion. */
export function run(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>> = process.env,
): Promise<Finished> {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], env });
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => stdout += text);
  child.stderr.setEncoding("utf8").on("data", (text: string) => stderr += text);
  return new Promise((resolve) => {
    child.once("error", ({ message }) => resolve({ code: null, stdout, stderr: message }));
    child.once("close", (code) => resolve({ code, stdout, stderr }));
  });
}

/** The command line that runs a command of this program in another process, in the same runtime. */
export function ownCommand(...args: readonly string[]): readonly string[] {
  const program = fileURLToPath(new URL("./main.ts", import.meta.url));
  return [process.execPath, ...(ffiPort().runtime.name === "deno" ? ["run", "-A"] : []), program, ...args];
}

/** A process that works with this one. It inherits this one's standard error. */
export interface Partner {
  readonly child: ChildProcess;
  /** Rejects if it cannot be started, or exits in a way that it may not. */
  readonly failed: Promise<never>;
}

/**
 * Starts a process that works with this one over its standard input and output.
 *
 * @param fail makes the error from what happened to it: `ended before it was done (exit code 1)`
 * @param mayEnd whether it may exit with code 0
 */
export function startPartner(command: readonly string[], fail: (what: string) => Error, mayEnd: boolean): Partner {
  const [executable = "", ...args] = command;
  const child = spawn(executable, args, { stdio: ["pipe", "pipe", "inherit"] });
  const { promise: failed, reject } = Promise.withResolvers<never>();
  child.once("error", ({ message }) => reject(fail(`could not be started: ${message}`)));
  child.once("exit", (code, signal) => {
    const how = signal === null ? `exit code ${code}` : `signal ${signal}`;
    if (code !== 0 || !mayEnd) reject(fail(`ended before it was done (${how})`));
  });
  failed.catch(() => {}); // a later exit is no longer waited for
  child.stdin.on("error", () => {}); // the child's end is reported once, by its exit
  return { child, failed };
}

/** The first line of a stream that `isIt` accepts; null if the stream ends without one. */
export async function firstLine(
  stream: NodeJS.ReadableStream | null,
  isIt: (line: string) => boolean = () => true,
): Promise<string | null> {
  if (stream === null) return null;
  for await (const line of createInterface({ input: stream })) {
    if (isIt(line)) return line;
  }
  return null;
}
