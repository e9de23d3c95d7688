/**
 * A process that a benchmark compares itself with, question by question, and what is measured in rounds: so the two
 * take turns on a machine on which everything is slower at times.
 *
 * @module
 */
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** What a result begins with: the runtime, the machine and what else runs on it, and the peer's versions. */
export function headOf(versions: Readonly<Record<string, string>>, ...more: readonly string[]): string {
  const { bun, deno } = process.versions;
  const named = Object.entries(versions).map(([name, version]) => `${name} ${version}`).join(", ");
  const loads = loadavg().map((load) => load.toFixed(1)).join(", ");
  const machine = `${cpus().length} CPUs, ${cpus()[0]?.model.trim()}`;
  return `## ${bun === undefined ? `Deno ${deno}` : `Bun ${bun}`}\n\n` +
    `${[machine, named, ...more, `load average ${loads}`].join("; ")}.\n`;
}

/** A program that prints a line of JSON when it is ready, and one for each line that it reads. */
export class Peer {
  readonly #process;
  readonly #lines;
  /** Settles if it cannot be run at all, when one runtime ends its output and the other does not. */
  readonly #failed: Promise<null>;

  /** Runs it, with arguments. */
  constructor(program: string, ...args: string[]) {
    this.#process = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"] });
    this.#failed = new Promise((resolve) => {
      this.#process.on("error", ({ message }) => {
        console.error(message);
        resolve(null);
      });
    });
    this.#process.stdin.on("error", () => {}); // whoever does not run answers nothing, which is seen below
    this.#lines = createInterface({ input: this.#process.stdout })[Symbol.asyncIterator]();
  }

  /** A script of this folder, by the interpreter that `CAUSEWAY_PYTHON` names. */
  static python(script: string): Peer {
    return new Peer(process.env["CAUSEWAY_PYTHON"] ?? "python3", fileURLToPath(new URL(script, import.meta.url)));
  }

  /** A C program of this folder, compiled here and now; null without a compiler. */
  static c(source: string): Peer | null {
    const folder = mkdtempSync(join(tmpdir(), "causeway-"));
    try {
      const program = join(folder, "program");
      const path = fileURLToPath(new URL(source, import.meta.url));
      const { status } = spawnSync("cc", ["-O2", path, "-o", program, "-ldl"], { stdio: "inherit" });
      return status === 0 ? new Peer(program) : null;
    } finally {
      rmSync(folder, { recursive: true }); // what runs keeps what it runs
    }
  }

  /** What it says next; null if it does not run. */
  async hear(): Promise<unknown> {
    const next = await Promise.race([this.#lines.next(), this.#failed]);
    return next === null || next.done === true ? null : JSON.parse(next.value);
  }

  /** What it answers to a question. */
  ask(question: unknown): Promise<unknown> {
    this.#process.stdin.write(`${JSON.stringify(question)}\n`);
    return this.hear();
  }

  /** Lets it end. */
  close(): void {
    this.#process.stdin.end();
  }

  /** Lets it end. */
  [Symbol.dispose](): void {
    this.close();
  }
}

/** What was measured in rounds: of each its median. */
export class Rounds {
  readonly #medians: number[] = [];

  /** Adds a round. */
  add(times: readonly number[]): void {
    this.#medians.push(median(times));
  }

  /** The fastest round's: what else runs on a machine slows things down, and never makes any faster. */
  get best(): number {
    return Math.min(...this.#medians);
  }

  /** The median of all rounds. */
  get median(): number {
    return median(this.#medians);
  }
}

/** The one in the middle. */
export function median(values: readonly number[]): number {
  return values.toSorted((one, two) => one - two)[values.length >> 1] ?? NaN;
}
