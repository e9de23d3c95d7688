/**
 * What an address or a handle can be.
 *
 * @module
 */

/** One past the last address: addresses and handles have 64 bits. */
export const addressEnd: bigint = 1n << 64n;

/** Whether a number can be an address or a handle at all; it says nothing about what is there. */
export function isAddress(value: bigint): boolean {
  return value >= 0n && value < addressEnd;
}
