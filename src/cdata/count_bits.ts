/**
 * Counting the set bits of a bitmap, least significant bit of each byte first.
 *
 * @module
 */

/** Number of set bits in each byte value. */
const counts = new Uint8Array(256);
for (let byte = 1; byte < 256; byte++) counts[byte] = (counts[byte >> 1] ?? 0) + (byte & 1);

/** How many of the `length` bits starting at `offset` are set. */
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
