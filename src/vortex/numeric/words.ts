/**
 * Numbers as this shelf sees them: words of 8 to 64 bits in plain bytes, whose meaning only the last step knows.
 *
 * Bytes given to a codec begin at a multiple of the word's size, as the buffers of a node do.
 *
 * @module
 */

/** Bits of a word. */
export type Bits = 8 | 16 | 32 | 64;

/** Unsigned numbers that say where something is: patches, ends of runs, codes. */
export type Indices = Uint8Array | Uint16Array | Uint32Array | BigUint64Array;

/**
 * Bytes as 32-bit words; a word of 64 bits is two of them. No codec here moves numbers as floats or as bigints: one
 * engine changes the bits of a NaN that way, and takes a hundred times as long for a bigint.
 */
export function words32(bytes: Uint8Array): Int32Array {
  return new Int32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength >> 2);
}

/** Bytes as 16-bit words. */
export function words16(bytes: Uint8Array): Uint16Array {
  return new Uint16Array(bytes.buffer, bytes.byteOffset, bytes.byteLength >> 1);
}

/** An index as a number: of 64 bits every one below 2^53 exactly, and the rest near enough to be out of bounds. */
export function indexAt(indices: Indices, position: number): number {
  return Number(indices[position] ?? 0);
}
