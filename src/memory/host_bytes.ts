/**
 * The bytes of a buffer as a host array.
 *
 * @module
 */
import { noteNewHostMemory } from "../driver/mod.ts";
import { ffiPort, ownSize, tooLongForArray } from "../ffi/mod.ts";
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

// law memory/lenderOfBytes: memory/lender
/** The buffer whose memory an ArrayBuffer is over, if {@linkcode bytesOf} or {@linkcode placeOf} made it; else null. */
export function lenderOfBytes(memory: ArrayBuffer): MemoryBuffer | null {
  return buffers.get(memory) ?? null;
}

/** ArrayBuffers whose memory the observers of the host know. */
const noted = new WeakSet<ArrayBuffer>();

// law memory/noteArrayBuffer: checker/new_host_memory
/**
 * Notes an ArrayBuffer, once, as new memory: if another one was at its address, that was collected. One over a buffer's
 * memory is none.
 */
export function noteArrayBuffer(memory: ArrayBuffer): void {
  if (noted.has(memory) || buffers.has(memory) || memory.resizable) return;
  noted.add(memory);
  noteNewHostMemory(ffiPort().addressOf(memory), ownSize(memory));
}

/** The arrays over parts of buffers that are larger than any array, by where they begin. */
const parts = new WeakMap<MemoryBuffer, Map<number, ArrayBuffer>>();

// law memory/placeOf: memory/large_memory
/**
 * Where bytes of host-accessible memory are in an array, which is over a part of a buffer that is larger than any array
 * of this runtime. Like that of {@linkcode MemoryBuffer.bytes}, the array keeps the buffer from being collected, and
 * closing the buffer empties it.
 *
 * Such a buffer has an array every half of the longest, twice as long as their distance: few arrays, of which one has
 * any part that is not longer than half. A longer part has its own, if need be.
 *
 * @param start of the part, which lies within the buffer
 * @param most bytes of an array
 * @throws {TypeError} as {@linkcode MemoryBuffer.bytes} does
 * @throws {RangeError} if the part is longer than any array
 */
export function placeOf(
  buffer: MemoryBuffer,
  start: number,
  length: number,
  most: number = ffiPort().maxArrayBytes,
): { readonly memory: ArrayBuffer; readonly at: number } {
  if (buffer.size <= most || !buffer.isHostAccessible) {
    const { buffer: memory, byteOffset } = buffer.bytes();
    return { memory, at: byteOffset + start };
  }
  const { ptr, size } = buffer;
  if (length > most) throw tooLongForArray(length, most);
  const even = start - start % (most / 2);
  const first = start + length <= even + most ? even : start;
  const those = parts.getOrInsertComputed(buffer, () => new Map());
  let memory = those.get(first);
  if (memory?.detached !== false) {
    memory = ffiPort().memory(ptr + BigInt(first), Math.min(most, size - first));
    buffers.set(memory, buffer);
    those.set(first, memory);
  }
  return { memory, at: start - first };
}

/** Bytes of host-accessible memory: see {@linkcode placeOf}. */
export function partOf(buffer: MemoryBuffer, start: number, length: number, most?: number): DataView<ArrayBuffer> {
  const { memory, at } = placeOf(buffer, start, length, most);
  return new DataView(memory, at, length);
}

/** Whether one array of this runtime can have that many bytes of memory. */
export function fitsArray(bytes: number): boolean {
  return bytes < 2 ** 31 || bytes <= ffiPort().maxArrayBytes; // as in every runtime, for copies of a few elements
}

/** Empties the arrays that {@linkcode placeOf} made of a buffer: it is closed. */
export function emptyParts(buffer: MemoryBuffer): void {
  for (const memory of parts.get(buffer)?.values() ?? []) if (!memory.detached) memory.transfer(); // moves no bytes
}

// law memory/endsWithWorker: order/worker_end
/** Whether memory with this owner ends with this Worker: see {@linkcode MemoryBuffer.endsWithWorker}. */
export function endsWithWorker(owner: unknown): boolean {
  if (!ffiPort().isWorker) return false;
  const memory = ArrayBuffer.isView(owner) ? owner.buffer : owner;
  return memory instanceof ArrayBuffer && !(buffers.get(memory)?.endsWithWorker === false);
}
