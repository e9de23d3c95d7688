/**
 * What an address or a handle can be.
 *
 * @module
 */

/** Behind the last address: addresses and handles have 64 bits. */
export const addressEnd: bigint = 1n << 64n;

/** Whether a number can be an address or a handle. Whether anything is there nobody says. */
export function isAddress(value: bigint): boolean {
  return value >= 0n && value < addressEnd;
}
