/**
 * Whether a copy of ordinary host memory is staged, and how: pure, so that it can be tested without a device.
 *
 * @module
 */
import { maxPageCalls } from "../native/mod.ts";

/** How host memory is staged. */
export interface StagingPlan {
  /** Native threads that copy. */
  readonly threads: number;
  /** Chunks in flight: copied by threads, waiting for the bus, or on it. */
  readonly slots: number;
  /** Bytes of one transfer over the bus. */
  readonly chunk: number;
  /** Bytes of a chunk that one thread copies at a time. */
  readonly piece: number;
}

const MiB = 2 ** 20;

/** Size in bytes from which staging is faster, if the ring and the threads exist already. */
export const worthStaging: number = 4 * MiB;

/**
 * Size in bytes from which one copy amortises allocating the pinned memory and starting the threads: 16 ms on an H200's
 * host. Smaller copies are staged once a device has copied this much in total.
 */
export const worthStarting: number = 64 * MiB;

/**
 * Pinned memory for chunks per device, in bytes. With much more, data would be evicted from the processor's caches
 * before the bus has read it.
 */
export const ringBytes: number = 32 * MiB;

/** The most chunks in flight, however small they are. */
export const maxSlots = 16;

/** Pieces of a chunk: enough for every thread. */
const piecesOfChunk = 8;

// law memory/callsOf: memory/staging
/** The most calls for a chunk: copies of its pieces, and page creation for another chunk. */
export function callsOf({ chunk, piece }: Pick<StagingPlan, "chunk" | "piece">): number {
  return Math.ceil(chunk / piece) + maxPageCalls(chunk);
}

/** Chunk size of large copies, in bytes. */
const largest = 8 * MiB;

/** The most calls for a chunk of any plan made here. */
export const maxCalls: number = callsOf({ chunk: largest, piece: largest / piecesOfChunk });

/**
 * As many threads as saturate the bus. Each copies 6 to 10 GB/s on the host of an H200, and more threads gain nothing.
 */
const maxThreads = 8;

/** With fewer threads staging gains little: the driver alone is about as fast as two threads. */
const fewestThreads = 4;

/**
 * Decides whether a copy of ordinary host memory is staged, and how.
 *
 * @param cpus number of processors that this process may use
 * @returns null if the driver alone is at least as fast
 */
export function planStaging(bytes: number, cpus: number): StagingPlan | null {
  const threads = Math.min(maxThreads, cpus);
  if (bytes < worthStaging || threads < fewestThreads) return null;
  // The bus is idle while the first chunk is filled and the last one drained: so small copies use small chunks.
  const chunk = bytes < 16 * MiB ? MiB : bytes < worthStarting ? 2 * MiB : largest;
  return { threads, slots: Math.min(maxSlots, ringBytes / chunk), chunk, piece: chunk / piecesOfChunk };
}
