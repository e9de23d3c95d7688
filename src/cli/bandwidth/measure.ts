/**
 * Measures with the device's own clock, between two events around many copies.
 *
 * @module
 */
import { medianOf } from "../median.ts";
import { isSticky } from "../../driver/mod.ts";
import { type Bench, isFullOf, type Seat } from "./bench.ts";
import type { Lane, Measurement } from "./measurements.ts";

/** How long to measure. */
export interface Effort {
  /** Copies between the two events. */
  readonly iterations: number;
  /** How often this is repeated: the median counts. */
  readonly samples: number;
}

/** Bandwidths in GB/s (10^9 bytes a second), by row and column. */
export interface Measured {
  readonly name: string;
  readonly title: string;
  readonly rows: readonly string[];
  readonly columns: readonly string[];
  /** null where there is nothing to copy between, or these copies are not possible. */
  readonly gigabytesPerSecond: readonly (readonly (number | null)[])[];
  /** Of all cells that have a value; null if none has. */
  readonly sum: number | null;
  readonly median: number | null;
  readonly min: number | null;
  readonly max: number | null;
  /** Why the measurement was aborted; null if it was not. */
  readonly problem: string | null;
}

/** How many cells a measurement fills. */
export function cellsOf({ rows }: Measurement, devices: number): number {
  return rows === "devices" ? devices * (devices - 1) : devices;
}

/**
 * Fills the table of a measurement. An error becomes its `problem`, because the other measurements may succeed.
 *
 * @param done called after each cell
 * @throws {CudaError} if the devices' contexts are lost
 */
export async function measureAll(one: Measurement, bench: Bench, effort: Effort, done: () => void): Promise<Measured> {
  const { seats } = bench;
  const [firstSeat] = seats;
  const rows = one.rows === "devices" ? seats : firstSeat === undefined ? [] : [firstSeat];
  const names = seats.map(({ device }) => `GPU ${device.ordinal}`);
  const cells: (number | null)[][] = rows.map(() => seats.map(() => null));
  let problem: string | null = null;
  try {
    for (const [i, row] of rows.entries()) {
      for (const [j, column] of seats.entries()) {
        if (one.rows === "devices" && row === column) continue;
        const lanes = one.lanes(bench, row, column);
        if (lanes !== null && cells[i] !== undefined) cells[i][j] = await measure(lanes, bench, effort);
        done();
      }
    }
  } catch (error) {
    if (isSticky(error)) throw error;
    problem = error instanceof Error ? error.message : String(error);
  }
  const { name, title } = one;
  const rowNames = one.rows === "devices" ? names : [one.rows === "host" ? "host" : "itself"];
  return { name, title, rows: rowNames, columns: names, gigabytesPerSecond: cells, ...statisticsOf(cells), problem };
}

/** The total bandwidth of simultaneous copies, in GB/s. */
async function measure(lanes: readonly Lane[], { size, seats }: Bench, effort: Effort): Promise<number> {
  const [main, ...others] = lanes;
  if (main === undefined) throw new RangeError("Expected at least one lane of copies, got none");
  for (const { to, stream } of lanes) {
    if (to.isHostAccessible) to.fill(0);
    else to.fill(0, { stream: homeOf(to, seats) ?? stream });
  }
  for (const { device } of seats) device.synchronize();
  const times: number[] = [];
  for (let i = 0; i < effort.samples; i++) times.push(time(main, others, effort.iterations));
  for (const { to, mark } of lanes) {
    if (!await isFullOf(mark, to)) {
      throw new Error("The copied bytes did not arrive as they were sent");
    }
  }
  return lanes.length * effort.iterations * size / medianOf(times) / 1e6;
}

/** The stream of the device that a buffer is on. */
function homeOf(buffer: Lane["to"], seats: readonly Seat[]) {
  return seats.find(({ destination }) => destination === buffer)?.stream;
}

/** Milliseconds for this many copies of each lane, from the start of the first to the end of the last. */
function time(main: Lane, others: readonly Lane[], iterations: number): number {
  const { device } = main.stream;
  using start = device.createEvent({ timing: true });
  using end = device.createEvent({ timing: true });
  // Warms up, and keeps the device busy while this thread enqueues the measured copies, so that it never waits for
  // them.
  for (const { copy } of [main, ...others]) copy();
  for (const { stream } of others) main.stream.wait(stream);
  main.copy();
  main.stream.record(start);
  for (const { stream } of others) stream.wait(start);
  for (let i = 0; i < iterations; i++) {
    for (const { copy } of [main, ...others]) copy();
  }
  for (const { stream } of others) main.stream.wait(stream);
  main.stream.record(end);
  end.synchronize();
  return end.millisecondsSince(start);
}

function statisticsOf(cells: readonly (readonly (number | null)[])[]) {
  const values = cells.flat().filter((value) => value !== null);
  if (values.length === 0) return { sum: null, median: null, min: null, max: null };
  return {
    sum: values.reduce((sum, value) => sum + value, 0),
    median: medianOf(values),
    min: Math.min(...values),
    max: Math.max(...values),
  };
}
