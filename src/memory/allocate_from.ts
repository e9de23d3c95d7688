/**
 * Memory of any resource.
 *
 * @module
 */
import { showGiven } from "../layout/mod.ts";
import { MemoryBuffer } from "./memory_buffer.ts";
import type { AllocateOptions, MemoryResource } from "./memory_resource.ts";

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
