/**
 * What allocates memory.
 *
 * @module
 */
import type { CudaStream } from "../device/mod.ts";
import { noSize, type OptionNames, show } from "../layout/mod.ts";
import type { MemoryBuffer } from "./memory_buffer.ts";

/** Options of {@linkcode MemoryResource.allocate}. */
export interface AllocateOptions {
  /** The stream on which the memory is allocated and freed: its home stream. Host resources need none. */
  readonly stream?: CudaStream;
  /** What errors, reports and the console call the buffer. Default: none. */
  readonly name?: string;
}

/** The names of {@linkcode AllocateOptions}. */
export const allocateOptionNames: OptionNames<AllocateOptions> = { stream: true, name: true };

/** A source of memory. Subclass it to bring your own allocator. */
export abstract class MemoryResource {
  /** Whether kernels can use the memory. */
  abstract readonly isDeviceAccessible: boolean;
  /** Whether the host can use the memory. */
  abstract readonly isHostAccessible: boolean;

  /**
   * Allocates memory. Its contents are undefined. 0 bytes are valid and have address 0n.
   *
   * @param bytes how many
   * @throws {RangeError} if `bytes` is no safe integer of at least 0
   */
  abstract allocate(bytes: number, options?: AllocateOptions): MemoryBuffer;
}

/**
 * Gives a new buffer the name that was asked for; one that is no name costs the buffer.
 *
 * @throws {TypeError} if it is no string, or an empty one
 */
export function named(buffer: MemoryBuffer, { name }: AllocateOptions): MemoryBuffer {
  if (name === undefined) return buffer;
  try {
    buffer.name = name;
  } catch (error) {
    buffer.close();
    throw error;
  }
  return buffer;
}

/** The error for a resource of no device, which a program without types may make. */
export function noDevice(name: string): TypeError {
  return new TypeError(`Cannot make a ${name} of no device: expected a CudaDevice, as cuda.device(0) is one`);
}

// law memory/checkSize: memory/host_memory_resource
/**
 * Throws unless `bytes` can be a size. For implementations of {@linkcode MemoryResource.allocate}.
 *
 * @throws {RangeError} if it is no safe integer of at least 0
 * @throws {TypeError} if it is no number
 */
export function checkSize(bytes: number): void {
  if (!Number.isSafeInteger(bytes) || bytes < 0) {
    throw noSize(`allocate ${show(bytes)} bytes`, bytes);
  }
}
