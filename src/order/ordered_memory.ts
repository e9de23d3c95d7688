/**
 * What ordering needs to know about memory: these few properties of a buffer, and for an array where its elements lie.
 *
 * @module
 */
import type { CudaDevice, CudaStream } from "../device/mod.ts";
import type { StridedLayout } from "../layout/mod.ts";

/**
 * Where memory is and what can use it: ordinary host memory; device memory; host memory that devices can use, too;
 * memory that migrates between them.
 */
export type MemoryKind = "host" | "device" | "pinned" | "managed";

/** Memory whose use is ordered on a stream. Every buffer is this. */
export interface OrderedMemory {
  /** Address of the first byte. */
  readonly ptr: bigint;
  /** Bytes. */
  readonly size: number;
  /** Where it is and what can use it. */
  readonly kind: MemoryKind;
  /** The device whose memory it is; null for host memory. */
  readonly device: CudaDevice | null;
  /** The home stream, on which it is freed; null if there is none. */
  readonly stream: CudaStream | null;
  /** What keeps foreign memory alive; undefined for memory that was allocated here. */
  readonly owner: unknown;
  /** The pool that it was allocated from. */
  readonly pool: { isReachedBy(device: CudaDevice): boolean } | null;
  /** Keeps it allocated until `unpin` is called once. */
  pin(): void;
  /** Ends one `pin`. */
  unpin(): void;
}

/** Elements in memory whose use is ordered. Every view is this. */
export interface OrderedElements {
  readonly buffer: OrderedMemory;
  /** Bytes from the start of the buffer to offset 0 of the layout. */
  readonly offset: number;
  readonly layout: StridedLayout;
}
