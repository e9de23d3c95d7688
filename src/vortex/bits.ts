/**
 * Bitmaps: one bit per element, least significant bit of each byte first.
 *
 * @module
 */
import { countSet } from "../cdata/mod.ts";
import type { CanonicalArray } from "./canonical.ts";
import type { Allocate, Bytes } from "./wire/source.ts";

/** Number of bytes that `bits` bits occupy. */
export function bytesForBits(bits: number): number {
  return Math.ceil(bits / 8);
}

// law vortex/bitAt: vortex/numeric/words
/** Whether a bit is set. */
export function bitAt(bits: Uint8Array, at: number): boolean {
  return ((bits[Math.floor(at / 8)] ?? 0) >>> (at % 8) & 1) !== 0;
}

/** Whether a row is valid. @param validity null if every row is */
export function isValid(validity: Uint8Array | null, row: number): boolean {
  return validity === null || bitAt(validity, row);
}

/** Truth values as a validity: one bit per element, or null if all are valid. */
export function validityOf(array: CanonicalArray | null, allocate: Allocate): Bytes | null {
  if (array === null) return null;
  if (array.kind !== "bool") throw new TypeError(`Expected truth values, got ${array.kind}`);
  const { bits, offset, length } = array;
  return countSet(bits, offset, length) === length ? null : bitmapFrom(bits, offset, length, allocate);
}

// law vortex/bitmapFrom: vortex/core/ops
/** Bits starting at `offset` as a bitmap from bit 0: a view of the same bytes if `offset` is a multiple of 8. */
export function bitmapFrom(bits: Bytes, offset: number, length: number, allocate: Allocate): Bytes {
  const [first, shift, size] = [Math.floor(offset / 8), offset % 8, bytesForBits(length)];
  if (shift === 0) return bits.subarray(first, first + size);
  const out = allocate(size);
  const last = bits.length - 1;
  for (let i = 0; i < size; i++) {
    const at = first + i;
    out[i] = (bits[at] ?? 0) >>> shift | (at < last ? (bits[at + 1] ?? 0) << (8 - shift) : 0);
  }
  return out;
}

// law vortex/copyBits: vortex/core/ops
/** Copies bits into a range whose bits are still 0. */
export function copyBits(from: Uint8Array, offset: number, to: Uint8Array, at: number, length: number): void {
  if (offset % 8 === 0 && at % 8 === 0) {
    const whole = Math.floor(length / 8);
    to.set(from.subarray(offset / 8, offset / 8 + whole), at / 8);
    for (let i = whole * 8; i < length; i++) setBit(from, offset + i, to, at + i);
    return;
  }
  let i = 0;
  for (; i < length && (at + i) % 8 !== 0; i++) setBit(from, offset + i, to, at + i);
  const shift = (offset + i) % 8;
  let target = (at + i) / 8;
  for (let source = Math.floor((offset + i) / 8); length - i >= 8; i += 8, source++, target++) {
    to[target] = (from[source] ?? 0) >>> shift | (shift === 0 ? 0 : (from[source + 1] ?? 0) << (8 - shift));
  }
  for (; i < length; i++) setBit(from, offset + i, to, at + i);
}

function setBit(from: Uint8Array, offset: number, to: Uint8Array, at: number): void {
  const byte = Math.floor(at / 8);
  to[byte] = (to[byte] ?? 0) | ((from[Math.floor(offset / 8)] ?? 0) >>> (offset % 8) & 1) << (at % 8);
}

/** Sets `length` bits starting at `at`. */
export function fillBits(to: Uint8Array, at: number, length: number): void {
  let i = at;
  const end = at + length;
  for (; i < end && i % 8 !== 0; i++) to[Math.floor(i / 8)] = (to[Math.floor(i / 8)] ?? 0) | 1 << (i % 8);
  const whole = Math.floor((end - i) / 8);
  to.fill(0xff, i / 8, i / 8 + whole);
  for (i += whole * 8; i < end; i++) to[Math.floor(i / 8)] = (to[Math.floor(i / 8)] ?? 0) | 1 << (i % 8);
}

/** The elements that are valid in both bitmaps. Null means that all are valid. */
export function bothValid(one: Bytes | null, other: Bytes | null, length: number, allocate: Allocate): Bytes | null {
  if (one === null || other === null || one === other) return one ?? other;
  const out = allocate(bytesForBits(length));
  for (let i = 0; i < out.length; i++) out[i] = (one[i] ?? 0) & (other[i] ?? 0);
  return out;
}
