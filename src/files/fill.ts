/**
 * Brings bytes of a file into memory, block by block: to memory that the host can use at once, to a device through two
 * pinned blocks, of which one is filled while the other travels.
 *
 * @module
 */
import type { CudaDevice, CudaStream } from "../device/mod.ts";
import { showGiven, slice } from "../layout/mod.ts";
import { type MemoryBuffer, PinnedMemoryResource } from "../memory/mod.ts";
import { hostReady, noteElementAccess } from "../order/mod.ts";
import { StridedMemoryView } from "../view/mod.ts";
import { type ByteSource, readFully } from "./source.ts";

/** Bytes that are read at a time: a multiple of the size of every element. */
export const blockBytes = 8 * 2 ** 20;

/** Is told how far a file is read or written, in bytes of elements. */
export type Progress = (done: number, total: number) => unknown;

/** @throws {TypeError} if it is no function */
export function checkProgress(progress: Progress | undefined): void {
  if (progress === undefined || typeof progress === "function") return;
  throw new TypeError(`Expected onProgress to be a function (done, total) => ..., got ${showGiven(progress)}`);
}

// law files/fill: files/device
/**
 * Fills a buffer with what a source has next. Settles when that is read; for device memory, what is left to be copied
 * comes before whatever its home stream does next.
 *
 * @param swapped bytes of a number whose order is to be turned; 0 for none
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
  const bytes = buffer.bytes();
  for (let at = 0; at < bytes.length; at += blockBytes) {
    const block = bytes.subarray(at, at + blockBytes);
    await readBlock(source, block, swapped);
    progress?.(at + block.length, bytes.length);
  }
}

/** One half of the way to a device: what is in its block is copied on its stream. */
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
    // Streams of their own: the host waits for the copy out of one block, and not for that out of the other.
    const stream = stack.use(device.createStream());
    return { stream, block: stack.use(pinned.allocate(Math.min(size, blockBytes), { stream })) };
  });
  for (let at = 0; at < size; at += blockBytes) {
    const lane = lanes[at / blockBytes % lanes.length];
    if (lane === undefined) return; // there is one at least
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

/** Reads a block, and turns the bytes of its numbers: as a copy between two layouts, of which one runs backwards. */
async function readBlock(source: ByteSource, into: Uint8Array<ArrayBuffer>, swapped: number): Promise<void> {
  if (swapped === 0) return await readFully(source, into);
  const raw = new Uint8Array(into.length);
  await readFully(source, raw);
  const shape = [into.length / swapped, swapped];
  const from = StridedMemoryView.fromTypedArray(raw, { shape }).sliced("...", slice(null, null, -1));
  StridedMemoryView.fromTypedArray(into, { shape }).copyFrom(from);
}
