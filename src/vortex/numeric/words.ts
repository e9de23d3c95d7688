/**
 * Numbers as this folder treats them: words of 8 to 64 bits in plain bytes, which only the last step interprets.
 *
 * Bytes passed to a codec are aligned to the word size, as the buffers of a node are.
 *
 * @module
 */
import type { Indices } from "../ops/take.ts";

export type { Indices };

/** Bits of a word. */
export type Bits = 8 | 16 | 32 | 64;

// law vortex/numeric.words: vortex/numeric/words
/**
 * Bytes as 32-bit words; a 64-bit word is two of them. No codec here moves numbers as floats or bigints: one engine
 * changes the bits of a NaN that way, and takes a hundred times as long for a bigint.
 */
export function words32(bytes: Uint8Array): Int32Array {
  return new Int32Array(bytes.buffer, bytes.byteOffset, Math.floor(bytes.byteLength / 4));
}

/** Bytes as 16-bit words. */
function words16(bytes: Uint8Array): Uint16Array {
  return new Uint16Array(bytes.buffer, bytes.byteOffset, Math.floor(bytes.byteLength / 2));
}

/** Bytes as words of at most 32 bits. */
export function smallWords(bytes: Uint8Array, bits: Bits): Uint8Array | Uint16Array | Int32Array {
  return bits === 8 ? bytes : bits === 16 ? words16(bytes) : words32(bytes);
}

// law vortex/numeric.indicesOf: vortex/numeric/patches
/**
 * Unsigned words as indices. 64-bit words become floats: exact below 2^53, and beyond that out of bounds anyway.
 */
export function indicesOf(bytes: Uint8Array, bits: Bits): Indices {
  if (bits === 8) return bytes;
  if (bits === 16) return words16(bytes);
  const halves = new Uint32Array(bytes.buffer, bytes.byteOffset, Math.floor(bytes.byteLength / 4));
  if (bits === 32) return halves;
  const indices = new Float64Array(Math.floor(halves.length / 2));
  for (let index = 0; index < indices.length; index++) {
    indices[index] = (halves[2 * index] ?? 0) + 0x1_0000_0000 * (halves[2 * index + 1] ?? 0);
  }
  return indices;
}
