/** Words of 8 to 64 bits as bigints, and as the little-endian bytes that codecs work on. */
import { fc } from "../property.ts";
import type { Bits } from "../../../src/vortex/numeric/words.ts";

/** Unsigned words of any multiple of 8 bits as bytes. */
export function bytesOf(words: readonly bigint[], bits: number): Uint8Array<ArrayBuffer> {
  if (bits === 64) return new Uint8Array(new BigUint64Array(words).buffer);
  if (bits <= 32) {
    const numbers = new (bits === 8 ? Uint8Array : bits === 16 ? Uint16Array : Uint32Array)(words.length);
    for (const [index, word] of words.entries()) numbers[index] = Number(BigInt.asUintN(bits, word));
    return new Uint8Array(numbers.buffer);
  }
  const bytes = new Uint8Array(words.length * bits / 8);
  for (const [index, word] of words.entries()) {
    for (let byte = 0; byte < bits / 8; byte++) {
      bytes[index * bits / 8 + byte] = Number(BigInt.asUintN(8, word >> BigInt(8 * byte)));
    }
  }
  return bytes;
}

/** Bytes as unsigned words. */
export function wordsOf(bytes: Uint8Array, bits: number): bigint[] {
  const step = bits / 8;
  return Array.from({ length: bytes.length / step }, (_, index) => {
    let word = 0n;
    for (let byte = step - 1; byte >= 0; byte--) word = word << 8n | BigInt(bytes[index * step + byte] ?? 0);
    return word;
  });
}

/** A width of words. */
export const anyBits: fc.Arbitrary<Bits> = fc.constantFrom(8, 16, 32, 64);

/** Many words of some bits from one seed: fast-check's own arrays of thousands take too long. */
export function randomWords(seed: number, length: number, bits: number): bigint[] {
  const halves = new Uint32Array(2 * length);
  let state = seed >>> 0;
  for (let i = 0; i < halves.length; i++) {
    state = (state + 0x9e3779b9) >>> 0;
    const mixed = Math.imul(Math.imul(state ^ state >>> 16, 0x85ebca6b) ^ state >>> 13, 0xc2b2ae35);
    halves[i] = mixed ^ mixed >>> 16;
  }
  return Array.from(new BigUint64Array(halves.buffer), (word) => BigInt.asUintN(bits, word));
}
