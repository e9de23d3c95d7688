/**
 * The progress of a long job: one line of a terminal, rewritten in place.
 *
 * @module
 */
import { writeSync } from "node:fs";
import process from "node:process";

/** Milliseconds between two writes. */
const pause = 100;
const cells = 40;

/** The line for a given progress. */
export function progressLine(done: number, total: number): string {
  const filled = Math.floor(cells * done / total);
  return `[${"#".repeat(filled)}${".".repeat(cells - filled)}] ${done}/${total}`;
}

/** A line on standard error, if that is a terminal: nothing is written anywhere else. */
export class ProgressLine implements Disposable {
  readonly #total: number;
  readonly #write: ((text: string) => unknown) | null;
  #last = -Infinity;
  #isShown = false;

  /** @param write where to write to. Default: standard error, if it is a terminal */
  constructor(total: number, write?: ((text: string) => unknown) | null) {
    this.#total = total;
    this.#write = write === undefined ? toTerminal() : write;
  }

  /** Updates how much is done. Cheap to call often. */
  update(done: number): void {
    if (this.#write === null) return;
    const now = performance.now();
    if (now - this.#last < pause) return;
    this.#last = now;
    this.#isShown = true;
    this.#write(`\r${progressLine(done, this.#total)}`);
  }

  /** Clears the line. */
  [Symbol.dispose](): void {
    if (this.#isShown) this.#write?.("\r\x1b[K");
    this.#isShown = false;
  }
}

function toTerminal(): ((text: string) => unknown) | null {
  return process.stderr.isTTY ? (text) => writeSync(2, text) : null;
}
