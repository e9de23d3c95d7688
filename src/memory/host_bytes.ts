/**
 * The bytes of a buffer as a host array.
 *
 * @module
 */
import { ffiPort } from "../ffi/mod.ts";
import type { MemoryBuffer } from "./memory_buffer.ts";

/**
 * The buffers behind the arrays that `bytesOf` returned: such an array keeps the memory alive. Without this the
 * finalizer would free it as soon as the buffer itself is collected.
 */
const buffers = new WeakMap<ArrayBuffer, MemoryBuffer>();

// law memory/bytesOf: memory/memory_buffer, memory/cuda_core_buffer, memory/device_memory_resource,
//   memory/driver_memory_resource, memory/collection, sim/behaviours, view/strided_memory_view,
//   memory/memory_programs
/** An array over host-accessible memory of a buffer. It keeps the buffer from being collected. */
export function bytesOf(buffer: MemoryBuffer, ptr: bigint): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(ffiPort().memory(ptr, buffer.size));
  buffers.set(bytes.buffer, buffer);
  return bytes;
}

// law memory/endsWithWorker: order/worker_end
/** Whether memory with this owner ends with this Worker: see {@linkcode MemoryBuffer.endsWithWorker}. */
export function endsWithWorker(owner: unknown): boolean {
  if (!ffiPort().isWorker) return false;
  const memory = ArrayBuffer.isView(owner) ? owner.buffer : owner;
  return memory instanceof ArrayBuffer && !(buffers.get(memory)?.endsWithWorker === false);
}
