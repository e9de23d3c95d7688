/**
 * Tags: what a receiver matches messages by.
 *
 * @module
 */
import { show } from "../layout/mod.ts";

/** A mask that compares all bits of a tag. */
export const everyBit = 0xffff_ffff_ffff_ffffn;

// law ucx/checkTag: ucx/limits
/**
 * Checks a tag or a mask, and returns it.
 *
 * @throws {RangeError} if it has more than 64 bits: UCX would silently use the lowest ones
 * @throws {TypeError} if it is not a bigint
 */
export function checkTag(what: "tag" | "mask", value: bigint): bigint {
  if (typeof value !== "bigint") throw new TypeError(`Cannot use ${show(value)} as a ${what}: expected a bigint`);
  if (value < 0n || value > everyBit) throw new RangeError(`Cannot use ${value} as a ${what}: expected 0 to 2^64 - 1`);
  return value;
}

/** Checks the tag and mask of a receive; the usual values need no check. @throws {RangeError} as checkTag */
export function checkMatch(tag: bigint, mask: bigint): void {
  if (tag !== 0n) checkTag("tag", tag);
  if (mask !== everyBit) checkTag("mask", mask);
}

/** A program's options for the tag of a message that it sends. */
export interface SendTag {
  readonly tag?: bigint;
  readonly exact?: boolean;
}

/** A program's options for the tags of messages that it receives. */
export interface ReceiveTag extends SendTag {
  readonly mask?: bigint;
}

/** What UCX matches messages by. */
export interface Match {
  readonly tag: bigint;
  readonly mask: bigint;
}

/** How a program's tag options become tags on the wire. */
export interface TagRule {
  /** @throws {RangeError} if the tag has more than 64 bits @throws {TypeError} if an option does not apply here */
  toSend(given: SendTag): bigint;
  /**
   * The tag to match, by the bits of `given.mask`, or all: returning both would allocate an object.
   *
   * @throws as {@linkcode toSend}
   */
  toReceive(given: ReceiveTag): bigint;
}

// law ucx/plainTags: ucx/ucxx_protocol, ucx/endpoint
/** Tags that go over the wire unchanged. */
export const plainTags: TagRule = {
  toSend({ tag = 0n, exact }) {
    if (exact !== undefined) throw noHash();
    if (tag !== 0n) checkTag("tag", tag);
    return tag;
  },
  toReceive({ tag = 0n, mask = everyBit, exact }) {
    if (exact !== undefined) throw noHash();
    checkMatch(tag, mask);
    return tag;
  },
};

function noHash(): TypeError {
  return new TypeError(
    'Cannot use { exact }: it is for a worker with the protocol "ucxx"; Causeway\'s own tags are always exact',
  );
}
