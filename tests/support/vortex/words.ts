/** Words of 8 to 64 bits as bigints, and as the little-endian bytes that codecs work on. */
import { fc } from "../property.ts";
import type { Bits } from "../../../src/vortex/numeric/words.ts";

/** Unsigned words as bytes. */
export function bytesOf(words: readonly bigint[], bits: number): Uint8Array<ArrayBuffer> {
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
  let state = BigInt(seed >>> 0) + 1n;
  return Array.from({ length }, () => {
    state = BigInt.asUintN(64, state * 6364136223846793005n + 1442695040888963407n);
    const mixed = BigInt.asUintN(64, (state ^ state >> 29n) * 0xbf58476d1ce4e5b9n);
    return BigInt.asUintN(bits, mixed ^ mixed >> 32n);
  });
}
