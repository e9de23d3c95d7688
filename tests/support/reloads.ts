/**
 * A program that `deno run --watch` loads again.
 *
 * @module
 */
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { scratchFolder } from "./scratch.ts";

/** What happened to a program that was changed twice. */
export interface Reloads {
  /** Each line that it has printed, once. */
  readonly lines: readonly string[];
  /** By what it has ended; null if it was still running. */
  readonly signal: string | null;
}

/**
 * Runs a program in this runtime, which is Deno, and changes it to its next version as soon as it has printed a line.
 *
 * @param program its text in version 0, 1 or 2, which is what each line that it prints begins with
 */
export async function reloaded(program: (version: number) => string): Promise<Reloads> {
  const file = join(scratchFolder(), "watched.ts");
  const write = (version: number) => writeFileSync(file, program(version));
  write(0);
  const flags = ["run", "-A", "--no-check", "--no-lock", "--quiet", "--watch", file];
  const child = spawn(process.execPath, flags, { stdio: ["ignore", "pipe", "ignore"] });
  try {
    const printed: string[] = [];
    const lines = createInterface({ input: child.stdout }).on("line", (line) => printed.push(line));
    // A change is lost if it is made before the watch begins: again, until there is an answer.
    for (let wait = 0; wait < 100 && child.signalCode === null && printed.at(-1)?.startsWith("2 ") !== true; wait++) {
      await pause(200);
      if (printed.length > 0) write(Math.min(2, Number(printed.at(-1)?.split(" ")[0]) + 1));
    }
    lines.close();
    return { lines: [...new Set(printed)], signal: child.signalCode };
  } finally {
    child.kill("SIGKILL");
  }
}
