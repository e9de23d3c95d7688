/**
 * Memory that a memory resource has allocated.
 *
 * @module
 */
import { type CudaDevice, CudaStream, expectDevice } from "../device/mod.ts";
import { showGiven } from "../layout/mod.ts";
import type { MemoryKind } from "../order/mod.ts";
import type { BufferDescriptor } from "./buffer_descriptor.ts";
import { checkRange } from "./foreign_memory.ts";
import type { MemoryPool } from "./memory_pool.ts";

/** What a memory resource passes to a new buffer. */
export interface Allocation {
  /** Address of the first byte; 0n if there are no bytes. */
  readonly ptr: bigint;
  /** Bytes. */
  readonly size: number;
  /** The device in whose context it was allocated, or null for ordinary host memory. */
  readonly device: CudaDevice | null;
  /** Default: `device` if there is one, else `host`. */
  readonly kind?: MemoryKind;
  /** The home stream; null if there is none. */
  readonly stream: CudaStream | null;
  /** What keeps foreign memory alive. */
  readonly owner?: unknown;
  /**
   * Frees the memory. Called once, when the buffer is closed and no longer pinned, or has been collected: so it must
   * not reference the buffer, nor share a scope with a function that does.
   *
   * @param stream the home stream at that time
   */
  readonly free: (ptr: bigint, stream: CudaStream | null) => void;
  /**
   * Describes the memory for another process, or throws a TypeError that says why it cannot be shared. It must not
   * reference the buffer either. Default: device memory is described as driver memory without a pool.
   */
  readonly describe?: (ptr: bigint, size: number) => BufferDescriptor;
  /** The pool that it was allocated from. */
  readonly pool?: MemoryPool | null;
}

const doing = "Cannot make a buffer";

// law memory/checkAllocation: cuda/bad_input
/**
 * Throws unless an allocation, which a program's own resource may have made, has what a buffer needs.
 *
 * @throws {TypeError} if a member is missing or of another kind
 * @throws {RangeError} if there is no such memory
 */
export function checkAllocation(allocation: Allocation): void {
  if (typeof allocation !== "object" || allocation === null) {
    throw new TypeError(
      `${doing}: expected an allocation, as { ptr, size, device: null, stream: null, free }, got ${
        showGiven(allocation)
      }`,
    );
  }
  const { ptr, size, device, stream, free } = allocation;
  checkRange(ptr, size);
  if (device !== null) expectDevice(device, `${doing}, whose device may be null`);
  if (stream !== null && !(stream instanceof CudaStream)) {
    throw new TypeError(
      `${doing}: expected stream to be a CudaStream, or null if it has no home stream, got ${showGiven(stream)}`,
    );
  }
  if (typeof free !== "function") {
    throw new TypeError(`${doing}: expected free to be a function, which frees the memory, got ${showGiven(free)}`);
  }
}
