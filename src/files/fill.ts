/**
 * Reads bytes of a file into memory, block by block: directly into host-accessible memory, into device memory through
 * two pinned blocks, one of which is filled while the other is copied.
 *
 * @module
 */
import type { CudaDevice, CudaStream } from "../device/mod.ts";
import { showGiven, slice } from "../layout/mod.ts";
import { type MemoryBuffer, PinnedMemoryResource, placeOf } from "../memory/mod.ts";
import { hostReady, noteElementAccess } from "../order/mod.ts";
import { StridedMemoryView } from "../view/mod.ts";
import { type ByteSource, readFully } from "./source.ts";

/** Bytes read at a time: a multiple of every element size. */
export const blockBytes = 8 * 2 ** 20;

/** Receives how much of a file has been read or written, in bytes of elements. */
export type Progress = (done: number, total: number) => unknown;

/** @throws {TypeError} if it is not a function */
export function checkProgress(progress: Progress | undefined): void {
  if (progress === undefined || typeof progress === "function") return;
  throw new TypeError(`Expected onProgress to be a function (done, total) => ..., got ${showGiven(progress)}`);
}

// law files/fill: files/device
/**
 * Fills a buffer with a source's next bytes. Settles once they are read; for device memory, copies still pending are
 * ordered before whatever its home stream does next.
 *
 * @param swapped bytes per number whose byte order must be reversed; 0 for none
 */
export async function fill(
  buffer: MemoryBuffer,
  source: ByteSource,
  swapped: number,
  progress: Progress | undefined,
): Promise<void> {
  const { size, device } = buffer;
  progress?.(0, size);
  if (size === 0) return;
  if (device === null || buffer.isHostAccessible) return await fillHost(buffer, source, swapped, progress);
  await fillDevice(buffer, device, source, swapped, progress);
}

async function fillHost(
  buffer: MemoryBuffer,
  source: ByteSource,
  swapped: number,
  progress: Progress | undefined,
): Promise<void> {
  await hostReady(buffer);
  const whole = bytesOf(buffer, 0, buffer.size);
  noteElementAccess(whole, true, "readNpy()");
  const { size } = buffer;
  for (let at = 0; at < size; at += blockBytes) {
    const length = Math.min(blockBytes, size - at);
    const place = placeOf(buffer, at, length);
    const block = new Uint8Array(place.memory, place.at, length);
    await readBlock(source, block, swapped);
    progress?.(at + length, size);
  }
}

/** One of the alternating lanes to a device: its block is copied on its stream. */
interface Lane {
  readonly stream: CudaStream;
  readonly block: MemoryBuffer;
}

async function fillDevice(
  buffer: MemoryBuffer,
  device: CudaDevice,
  source: ByteSource,
  swapped: number,
  progress: Progress | undefined,
): Promise<void> {
  const { size } = buffer;
  using stack = new DisposableStack();
  const pinned = new PinnedMemoryResource(device);
  const count = size > blockBytes ? 2 : 1;
  const lanes = Array.from({ length: count }, (): Lane => {
    // A separate stream each: the host waits for the copy out of one block, but not out of the other.
    const stream = stack.use(device.createStream());
    return { stream, block: stack.use(pinned.allocate(Math.min(size, blockBytes), { stream })) };
  });
  for (let at = 0; at < size; at += blockBytes) {
    const lane = lanes[at / blockBytes % lanes.length];
    if (lane === undefined) return; // there is always at least one
    const length = Math.min(blockBytes, size - at);
    await hostReady(lane.block);
    const block = bytesOf(lane.block, 0, length);
    noteElementAccess(block, true, "readNpy()");
    await readBlock(source, lane.block.bytes().subarray(0, length), swapped);
    bytesOf(buffer, at, length).copyFrom(block, { stream: lane.stream });
    progress?.(at + length, size);
  }
}

function bytesOf(buffer: MemoryBuffer, offset: number, length: number): StridedMemoryView {
  return StridedMemoryView.fromBuffer(buffer, { shape: [length], dtype: "uint8", offset });
}

/** Reads a block and reverses the bytes of its numbers: as a copy between two layouts, one of which runs backwards. */
async function readBlock(source: ByteSource, into: Uint8Array<ArrayBuffer>, swapped: number): Promise<void> {
  if (swapped === 0) return await readFully(source, into);
  const raw = new Uint8Array(into.length);
  await readFully(source, raw);
  const shape = [into.length / swapped, swapped];
  const from = StridedMemoryView.fromTypedArray(raw, { shape }).sliced("...", slice(null, null, -1));
  StridedMemoryView.fromTypedArray(into, { shape }).copyFrom(from);
}
