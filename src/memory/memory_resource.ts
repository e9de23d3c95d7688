/**
 * The base class of memory allocators, and what they have in common.
 *
 * @module
 */
import type { CudaStream } from "../device/mod.ts";
import { noSize, type OptionNames, show, showGiven } from "../layout/mod.ts";
import { MemoryBuffer } from "./memory_buffer.ts";

/** Options of {@linkcode MemoryResource.allocate}. */
export interface AllocateOptions {
  /** The stream on which the memory is allocated and freed: its home stream. Host resources need none. */
  readonly stream?: CudaStream;
  /** The buffer's name in errors, reports and the console. Default: none. */
  readonly name?: string;
}

/** The names of {@linkcode AllocateOptions}. */
export const allocateOptionNames: OptionNames<AllocateOptions> = { stream: true, name: true };

/** A source of memory. Subclass it to bring your own allocator: an object that only has its members is refused. */
export abstract class MemoryResource {
  /** For the compiler alone: it would take any object with the members below, and any class that implements them. */
  declare protected readonly isSubclass: true;
  /** Whether kernels can use the memory. */
  abstract readonly isDeviceAccessible: boolean;
  /** Whether the host can use the memory. */
  abstract readonly isHostAccessible: boolean;

  /**
   * Allocates memory. Its contents are undefined. A size of 0 is valid and has address 0n.
   *
   * @param bytes how many
   * @throws {RangeError} if `bytes` is not a safe integer of at least 0
   */
  abstract allocate(bytes: number, options?: AllocateOptions): MemoryBuffer;
}

/**
 * Gives a new buffer the requested name; an invalid name closes the buffer.
 *
 * @throws {TypeError} if it is not a string, or is empty
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

// law memory/checkSize: memory/host_memory_resource
/**
 * Throws unless `bytes` is a valid size. For implementations of {@linkcode MemoryResource.allocate}.
 *
 * @throws {RangeError} if it is not a safe integer of at least 0
 * @throws {TypeError} if it is not a number
 */
export function checkSize(bytes: number): void {
  if (!Number.isSafeInteger(bytes) || bytes < 0) {
    throw noSize(`allocate ${show(bytes)} bytes`, bytes);
  }
}

// law memory/allocateFrom: view/create
/**
 * Memory of a resource, which may be a program's own.
 *
 * @throws {TypeError} if it makes no open buffer of at least so many bytes
 */
export function allocateFrom(resource: MemoryResource, bytes: number, options: AllocateOptions): MemoryBuffer {
  const buffer: unknown = resource.allocate(bytes, options);
  if (buffer instanceof MemoryBuffer && !buffer.isClosed && buffer.size >= bytes) return buffer;
  const got = buffer instanceof MemoryBuffer
    ? buffer.isClosed ? "a closed one" : `one of ${buffer.size} bytes`
    : showGiven(buffer);
  if (buffer instanceof MemoryBuffer) buffer.close();
  throw new TypeError(
    `Cannot use ${showGiven(resource)}: expected allocate(${bytes}) to return a MemoryBuffer of ${bytes} bytes, got ` +
      `${got}. MemoryBuffer.fromAllocation() makes one`,
  );
}
