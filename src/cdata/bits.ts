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
import { countSet } from "./count_bits.ts";

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
