/**
 * Timing and tables, shared by the sections of the copy benchmark.
 *
 * @module
 */
import type { CudaDevice, CudaStream } from "../../mod.ts";
import { median } from "../peer.ts";

/**
 * Asks for torch's result in a section's case: gigabytes per second, or nanoseconds per call; undefined without torch.
 */
export type Torch = (section: string, question: object) => Promise<number | undefined>;

const REPEATS = 20;
const ROUNDS = 7;

/**
 * Milliseconds of warm-up: JavaScript that has run only a few times takes longer than a small copy.
 */
const WARM_UP = 50;

/** Gigabytes per second of enqueued work, by the device's clock. */
export function deviceRate(device: CudaDevice, stream: CudaStream, bytes: number, enqueue: () => void): number {
  using start = device.createEvent({ timing: true });
  using end = device.createEvent({ timing: true });
  const warm = performance.now() + WARM_UP;
  do enqueue(); while (performance.now() < warm);
  return bytes / 1e6 / median(Array.from({ length: ROUNDS }, () => {
    stream.record(start);
    for (let i = 0; i < REPEATS; i++) enqueue();
    stream.record(end).synchronize();
    return end.millisecondsSince(start) / REPEATS;
  }));
}

/** Gigabytes per second of work that has completed when it returns, by the host's clock. */
export function hostRate(bytes: number, work: () => void): number {
  work();
  return bytes / 1e6 / median(Array.from({ length: 5 }, () => {
    const start = performance.now();
    work();
    return performance.now() - start;
  }));
}

/** Begins a table. */
export function table(title: string, ...columns: readonly string[]): void {
  console.log(`\n### ${title}\n\n| ${columns.join(" | ")} |\n|${columns.map(() => "---|").join("")}`);
}

/** Prints a row of a table: numbers without decimals. */
export function row(...cells: readonly (string | number | undefined)[]): void {
  const words = cells.map((cell) => typeof cell === "number" ? cell.toFixed(0) : cell ?? "-");
  console.log(`| ${words.join(" | ")} |`);
}

/** One number as a multiple of another. */
export function ratio(one: number, other: number | undefined): string {
  return other === undefined ? "-" : (one / other).toFixed(2);
}
