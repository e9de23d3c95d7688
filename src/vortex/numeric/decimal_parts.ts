import { smallWords, words32 } from "./words.ts";
import type { Bits } from "./words.ts";

/** A column of integers that are parts of wider integers. */
export interface Part {
  /** The words. */
  readonly bytes: Uint8Array;
  readonly bits: Bits;
}

// law vortex/numeric.joinPartsInto: vortex/numeric/decimal_parts
/**
 * Joins 128- or 256-bit integers from their most significant part, which is signed, and one to three unsigned parts
 * that occupy 64 bits each, most significant first.
 *
 * @param out one integer of `width` bytes per row
 */
export function joinPartsInto(out: Uint8Array, width: 16 | 32, first: Part, lower: readonly Part[]): void {
  const to = words32(out);
  const stride = width >> 2;
  const sign = 32 - Math.min(first.bits, 32);
  const [top, isLong] = [smallWords(first.bytes, first.bits), first.bits === 64];
  const place = 2 * lower.length;
  const length = to.length / stride;
  for (let row = 0; row < length; row++) {
    const low = isLong ? top[2 * row] ?? 0 : (top[row] ?? 0) << sign >> sign;
    const high = isLong ? top[2 * row + 1] ?? 0 : low >> 31;
    to[row * stride + place] = low;
    to[row * stride + place + 1] = high;
    for (let word = place + 2; word < stride; word++) to[row * stride + word] = high >> 31;
  }
  for (const [index, { bytes, bits }] of lower.entries()) {
    const at = 2 * (lower.length - 1 - index);
    const from = smallWords(bytes, bits);
    for (let row = 0; row < length; row++) {
      to[row * stride + at] = bits === 64 ? from[2 * row] ?? 0 : from[row] ?? 0;
      to[row * stride + at + 1] = bits === 64 ? from[2 * row + 1] ?? 0 : 0;
    }
  }
}
