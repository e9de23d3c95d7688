/**
 * The programs of `examples/`: run as their readers run them, and compared with the output in their header comments.
 *
 * @module
 */
import { assertMatch } from "@std/assert";
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type Runtime, runtimes } from "./runtimes.ts";

/** The runtime that runs the tests. */
const [own] = runtimes as readonly [Runtime, Runtime]; // this one and the other

const folder = new URL("../../examples/", import.meta.url);

/** How a program is started. */
export interface ProgramOptions {
  /** Environment variables to set, or with `undefined` to remove; all others are inherited. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** The working directory. Default: this process's. */
  readonly cwd?: string;
  /** Arguments of the runtime itself, in place of those that run a script. */
  readonly runtimeArguments?: readonly string[];
  /** The runtime. Default: the one that runs the test. */
  readonly runtime?: Runtime;
}

/** A program that was started. */
export interface RunningProgram extends Disposable {
  readonly process: ChildProcess;
  /** What it has printed so far, on stdout and stderr. */
  readonly printed: string;
  /** Waits until it has printed this, and returns the match. @throws {Error} with all it printed, if it ends first */
  until(what: RegExp): Promise<RegExpExecArray>;
  /** Waits until it has ended. @returns the exit code, or null if a signal ended it */
  readonly ended: Promise<number | null>;
}

/** What Deno must permit to a program, as its comments say. */
export function flagsOf(name: string): string[] {
  const [, flags] = / deno (?:run|serve) ((?:--allow-\S+ )+)/.exec(readFileSync(new URL(name, folder), "utf8")) ?? [];
  if (flags === undefined) throw new Error(`${name} does not say what Deno must permit`);
  return flags.trim().split(" ");
}

/**
 * Starts a program of `examples/`, in Deno with what its comments say is to be permitted. It is killed after two
 * minutes, and on disposal.
 */
export function startProgram(name: string, args: readonly string[] = [], options: ProgramOptions = {}): RunningProgram {
  const { env: changes = {}, cwd, runtime = own } = options;
  const [program = "", ...all] = runtime.command;
  const first = all.flatMap((word) => word === "-A" ? ["--no-prompt", ...flagsOf(name)] : [word]);
  const env = Object.fromEntries(
    Object.entries({ ...process.env, ...changes }).filter(([, value]) => value !== undefined),
  );
  const command = [...options.runtimeArguments ?? first, fileURLToPath(new URL(name, folder)), ...args];
  const child = spawn(program, command, {
    env,
    stdio: ["ignore", "pipe", "pipe"],
    timeout: 120_000,
    killSignal: "SIGKILL",
    ...(cwd === undefined ? {} : { cwd }),
  });
  let printed = "";
  const waiting = new Set<() => void>();
  const wake = () => waiting.forEach((look) => look());
  for (const output of [child.stdout, child.stderr]) {
    output.setEncoding("utf8").on("data", (text: string) => {
      printed += text;
      wake();
    });
  }
  let isOver = false;
  const ended = new Promise<number | null>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => {
      isOver = true;
      wake();
      resolve(code);
    });
  });
  return {
    process: child,
    ended,
    get printed() {
      return printed;
    },
    until: (what) =>
      new Promise((resolve, reject) => {
        const look = () => {
          const match = what.exec(printed);
          if (match === null && !isOver) return;
          waiting.delete(look);
          if (match !== null) resolve(match);
          else reject(new Error(`${name} ended before it printed ${what}:\n${printed}`));
        };
        waiting.add(look);
        look();
      }),
    [Symbol.dispose]() {
      if (!isOver) child.kill("SIGKILL");
    },
  };
}

/** Runs a program of `examples/` to completion. @returns what it printed. @throws {Error} if its exit code is not 0 */
export async function runProgram(name: string, args: readonly string[] = [], options: ProgramOptions = {}) {
  using running = startProgram(name, args, options);
  const code = await running.ended;
  if (code !== 0) throw new Error(`${name} ended with exit code ${code}:\n${running.printed}`);
  return running.printed;
}

/** The outputs in a program's comments: its blocks marked `text`, in order. */
export function outputsOf(name: string): string[] {
  const text = readFileSync(new URL(name, folder), "utf8");
  return [...text.matchAll(/^ \* ```text\n(?<lines>.*?)^ \* ```$/gms)]
    .map(({ groups }) => (groups?.["lines"] ?? "").replace(/^ \* ?/gm, ""));
}

/** Fails unless the promised output was printed. `...` in it stands for whatever differs from machine to machine. */
export function assertOutput(printed: string, promised: string | undefined): void {
  if (promised === undefined) throw new Error("The program promises no output: write it into a block marked `text`");
  const parts = promised.split("...").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  assertMatch(printed, new RegExp(`^${parts.join("[^\\n]*")}$`));
}
