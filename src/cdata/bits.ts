/**
 * The bytes and bits of buffers in host memory.
 *
 * @module
 */
import { type ArrayParts, byteCount } from "../copy/mod.ts";
import { partOf } from "../memory/mod.ts";
import { hostWaitsToRead } from "../order/mod.ts";
import type { ArrowNode } from "./array_node.ts";
import { hasValidity } from "./buffers.ts";

/** No bytes. */
export const empty: DataView<ArrayBuffer> = new DataView(new ArrayBuffer(0));

// law cdata/hostBytes: arrow/host_order
/**
 * The bytes of a buffer, after waiting for its home stream, which page-locked and managed memory has.
 *
 * @param call the call that reads them, as the checker's reports name it
 * @throws {TypeError} for device memory, and after the buffer was closed
 */
export function hostBytes(array: ArrayParts, call = "array.get()"): DataView<ArrayBuffer> {
  const size = byteCount(array);
  if (size === 0) return empty;
  const bytes = partOf(array.buffer, array.offset + array.layout.sliceOffset, size);
  hostWaitsToRead(array, call);
  return bytes;
}

/** A bit of a bitmap, least significant bit first. */
export function bitOf(bytes: DataView, at: number): boolean {
  return (bytes.getUint8(Math.floor(at / 8)) >>> (at % 8) & 1) !== 0;
}

/** Whether an element is null. The index is not checked. */
export function isNullAt(
  { type, offset, buffers: [bitmap = null], knownNullCount }: ArrowNode,
  index: number,
): boolean {
  if (!hasValidity(type)) return type.kind === "null"; // in an encoded array, the values have the nulls
  return bitmap !== null && knownNullCount !== 0 && !bitOf(hostBytes(bitmap), offset + index);
}

/**
 * The number of nulls according to the validity bitmap.
 *
 * @throws {TypeError} if it is in device memory, or closed
 */
export function countNulls({ buffers: [bitmap = null], offset, length }: ArrowNode): number {
  if (bitmap === null || length === 0) return 0;
  const { buffer, byteOffset, byteLength } = hostBytes(bitmap, "array.nullCount");
  return length - countSet(new Uint8Array(buffer, byteOffset, byteLength), offset, length);
}

/** Number of set bits in each byte value. */
const counts = new Uint8Array(256);
for (let byte = 1; byte < 256; byte++) counts[byte] = (counts[byte >> 1] ?? 0) + (byte & 1);

/** How many of the `length` bits of a bitmap starting at `offset` are set. */
export function countSet(bits: Uint8Array, offset: number, length: number): number {
  if (length === 0) return 0;
  const [first, last] = [Math.floor(offset / 8), Math.floor((offset + length - 1) / 8)];
  const [head, tail] = [0xff << (offset % 8) & 0xff, 0xff >>> (7 - (offset + length - 1) % 8)];
  if (first === last) return counts[(bits[first] ?? 0) & head & tail] ?? 0;
  let count = (counts[(bits[first] ?? 0) & head] ?? 0) + (counts[(bits[last] ?? 0) & tail] ?? 0);
  let at = first + 1;
  if (last - at >= 64) {
    // Word by word: byte by byte takes four times as long.
    for (; (bits.byteOffset + at) % 4 !== 0; at++) count += counts[bits[at] ?? 0] ?? 0;
    const words = new Uint32Array(bits.buffer, bits.byteOffset + at, Math.floor((last - at) / 4));
    for (let i = 0; i < words.length; i++) count += wordCount(words[i] ?? 0);
    at += 4 * words.length;
  }
  for (; at < last; at++) count += counts[bits[at] ?? 0] ?? 0;
  return count;
}

function wordCount(word: number): number {
  word -= word >>> 1 & 0x5555_5555;
  word = (word & 0x3333_3333) + (word >>> 2 & 0x3333_3333);
  return Math.imul(word + (word >>> 4) & 0x0f0f_0f0f, 0x0101_0101) >>> 24;
}
