/**
 * Whether a copy of ordinary host memory is staged, and how: pure, so that it can be tested without a device.
 *
 * @module
 */
import { mostPageCalls } from "../native/mod.ts";

/** How host memory is staged. */
export interface StagingPlan {
  /** Native threads that copy. */
  readonly threads: number;
  /** Chunks in flight: copied by threads, waiting for the bus, or on it. */
  readonly slots: number;
  /** Bytes that are transferred over the bus at a time. */
  readonly chunk: number;
  /** Bytes of a chunk that one thread copies at a time. */
  readonly piece: number;
}

const MiB = 2 ** 20;

/** From so many bytes on staging is faster, if the ring and the threads are there. */
export const worthStaging: number = 4 * MiB;

/**
 * From so many bytes on one copy makes up for the start of pinned memory and threads: 16 ms on an H200's host. Smaller
 * ones are staged once a device has copied as much in all.
 */
export const worthStarting: number = 64 * MiB;

/**
 * Pinned memory of a device for chunks, in bytes. Much more would leave the processor's caches before the bus has read
 * it.
 */
export const ringBytes: number = 32 * MiB;

/** The most chunks in flight, however small they are. */
export const mostSlots = 16;

/** Pieces of a chunk: enough for each of the threads. */
const piecesOfChunk = 8;

// law memory/callsOf: memory/staging
/** The most calls for a chunk: its pieces are copied, and the pages of another one made. */
export function callsOf({ chunk, piece }: Pick<StagingPlan, "chunk" | "piece">): number {
  return Math.ceil(chunk / piece) + mostPageCalls(chunk);
}

/** The chunks of large copies. */
const largest = 8 * MiB;

/** The most calls for a chunk of any plan that is made here. */
export const mostCalls: number = callsOf({ chunk: largest, piece: largest / piecesOfChunk });

/**
 * As many threads as fill the bus. Each copies 6 to 10 GB/s on the host of an H200, and more of them get no further.
 */
const mostThreads = 8;

/** With fewer threads staging gains little: the driver alone is about as fast as two. */
const fewestThreads = 4;

/**
 * Decides whether a copy of ordinary host memory is staged, and how.
 *
 * @param cpus processors that this process may use
 * @returns null if the driver alone is at least as fast
 */
export function planStaging(bytes: number, cpus: number): StagingPlan | null {
  const threads = Math.min(mostThreads, cpus);
  if (bytes < worthStaging || threads < fewestThreads) return null;
  // While the first chunk is filled and the last one emptied the bus is idle: so the chunks of small copies are small.
  const chunk = bytes < 16 * MiB ? MiB : bytes < worthStarting ? 2 * MiB : largest;
  return { threads, slots: Math.min(mostSlots, ringBytes / chunk), chunk, piece: chunk / piecesOfChunk };
}
