/**
 * What an address or a handle can be.
 *
 * @module
 */

/** One past the last address: addresses and handles have 64 bits. */
export const addressEnd: bigint = 1n << 64n;

const word = new BigUint64Array(1);
const halves = new Uint32Array(word.buffer);

/** The lower 32 bits of an address, to look at its lowest ones: by operators of bigints each look makes another one. */
export function lowHalf(address: bigint): number {
  word[0] = address;
  return halves[0] ?? 0; // both architectures are little-endian
}

/** Whether a number can be an address or a handle at all; it says nothing about what is there. */
export function isAddress(value: bigint): boolean {
  return value >= 0n && value < addressEnd;
}
