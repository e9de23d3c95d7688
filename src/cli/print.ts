/**
 * Standard output of the command line. Bun's `console.log` ignores a disk that is full, and the command would have
 * succeeded without its report.
 *
 * @module
 */
import { writeSync } from "node:fs";

const standardOutput = 1;

function toStandardOutput(bytes: Uint8Array, from: number): number {
  return writeSync(standardOutput, bytes, from);
}

/**
 * Prints a line.
 *
 * @throws {Error} the system's, if it cannot be written. A reader who has seen enough, as `head`, is none
 */
export function print(text: string, write: (bytes: Uint8Array, from: number) => number = toStandardOutput): void {
  const bytes = new TextEncoder().encode(`${text}\n`);
  for (let done = 0; done < bytes.length;) {
    try {
      done += write(bytes, done);
    } catch (error) {
      const { code } = error as { readonly code?: unknown }; // of the system
      if (code === "EPIPE") return;
      if (code !== "EAGAIN") throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1); // a full pipe that does not block
    }
  }
}
