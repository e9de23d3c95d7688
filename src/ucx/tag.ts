/**
 * Tags: what a receiver matches messages by.
 *
 * @module
 */

/** A mask that compares all bits of a tag. */
export const everyBit = 0xffff_ffff_ffff_ffffn;

/**
 * A tag or a mask as it was given.
 *
 * @throws {RangeError} if it has more than 64 bits: UCX would silently see the lowest ones
 */
export function checkTag(what: "tag" | "mask", value: bigint): bigint {
  if (value < 0n || value > everyBit) throw new RangeError(`Cannot use ${value} as a ${what}: expected 0 to 2^64 - 1`);
  return value;
}

/** Checks what a receive matches messages by; the usual values need no check. @throws {RangeError} as checkTag */
export function checkMatch(tag: bigint, mask: bigint): void {
  if (tag !== 0n) checkTag("tag", tag);
  if (mask !== everyBit) checkTag("mask", mask);
}
