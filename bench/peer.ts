/**
 * A process that a benchmark compares itself with, request by request, and measurements in rounds: the two alternate,
 * because everything on the machine is slower at times.
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

/** The head of a report: the runtime, the machine and its load, and the peer's versions. */
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
  /** Settles if the program cannot be started: one runtime then ends its output and the other does not. */
  readonly #failed: Promise<null>;

  /** Starts the program, with arguments. */
  constructor(program: string, ...args: string[]) {
    this.#process = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"] });
    this.#failed = new Promise((resolve) => {
      this.#process.on("error", ({ message }) => {
        console.error(message);
        resolve(null);
      });
    });
    this.#process.stdin.on("error", () => {}); // a program that does not run answers nothing, which is detected below
    this.#lines = createInterface({ input: this.#process.stdout })[Symbol.asyncIterator]();
  }

  /** Starts a script of this folder, with the interpreter that `CAUSEWAY_PYTHON` names. */
  static python(script: string): Peer {
    return new Peer(process.env["CAUSEWAY_PYTHON"] ?? "python3", fileURLToPath(new URL(script, import.meta.url)));
  }

  /** Compiles and starts a C program of this folder; null without a compiler. */
  static c(source: string): Peer | null {
    const folder = mkdtempSync(join(tmpdir(), "causeway-"));
    try {
      const program = join(folder, "program");
      const path = fileURLToPath(new URL(source, import.meta.url));
      const { status } = spawnSync("cc", ["-O2", path, "-o", program, "-ldl"], { stdio: "inherit" });
      return status === 0 ? new Peer(program) : null;
    } finally {
      rmSync(folder, { recursive: true }); // a running process keeps its executable
    }
  }

  /** Its next message; null if it does not run. */
  async hear(): Promise<unknown> {
    const next = await Promise.race([this.#lines.next(), this.#failed]);
    return next === null || next.done === true ? null : JSON.parse(next.value);
  }

  /** Its answer to a question. */
  ask(question: unknown): Promise<unknown> {
    this.#process.stdin.write(`${JSON.stringify(question)}\n`);
    return this.hear();
  }

  /** Closes its standard input, so that it exits. */
  close(): void {
    this.#process.stdin.end();
  }

  /** Closes its standard input, so that it exits. */
  [Symbol.dispose](): void {
    this.close();
  }
}

/** Measurements in rounds: the median of each. */
export class Rounds {
  readonly #medians: number[] = [];

  /** Adds a round. */
  add(times: readonly number[]): void {
    this.#medians.push(median(times));
  }

  /** The median of the fastest round: other load slows a machine down, and never makes it faster. */
  get best(): number {
    return Math.min(...this.#medians);
  }

  /** The median of all rounds. */
  get median(): number {
    return median(this.#medians);
  }
}

/** The middle value. */
export function median(values: readonly number[]): number {
  return values.toSorted((one, two) => one - two)[values.length >> 1] ?? NaN;
}
