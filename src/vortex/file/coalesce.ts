/**
 * Which reads fetch a set of byte ranges: neighbours are read together, because a request costs more than a few
 * unwanted bytes.
 *
 * @module
 */
import { show } from "../../layout/mod.ts";

/** A contiguous range of bytes in a file. */
export interface ByteRange {
  /** Offset of the first byte. */
  readonly offset: number;
  /** Number of bytes. */
  readonly length: number;
}

/** A read, and the ranges that it covers, by their index in the given list. */
export interface PlannedRead extends ByteRange {
  readonly parts: readonly number[];
}

/** What may be read together. */
export interface CoalesceOptions {
  /** Largest number of unwanted bytes between two ranges that is cheaper than a separate read. */
  readonly gap: number;
  /** Maximum bytes of a read, except for a single range that is larger. */
  readonly largest: number;
}

/** @throws {RangeError} unless it is a number of bytes: with NaN no two reads would be joined */
export function checkGap(gap: number): number {
  if (typeof gap === "number" && gap >= 0) return gap;
  throw new RangeError(`Expected gap to be a number of bytes, 0 or more, got ${show(gap)}`);
}

// law vortex/coalesce: vortex/file/coalesce
/**
 * Plans the reads for ranges, which may overlap.
 *
 * @param ranges in the order in which they are needed
 * @returns reads in the order in which their first range is needed. Every range lies in exactly one of them, except
 *   empty ranges, which need no read
 */
export function coalesce(ranges: readonly ByteRange[], { gap, largest }: CoalesceOptions): PlannedRead[] {
  const wanted = ranges.map((range, part) => ({ ...range, part })).filter(({ length }) => length > 0)
    .sort((one, other) => one.offset - other.offset || one.length - other.length);
  const reads: { offset: number; end: number; parts: number[] }[] = [];
  for (const { offset, length, part } of wanted) {
    const end = offset + length;
    const last = reads.at(-1);
    const joined = last === undefined ? 0 : Math.max(last.end, end) - last.offset;
    if (last !== undefined && offset - last.end <= gap && (joined <= largest || end <= last.end)) {
      last.end = Math.max(last.end, end);
      last.parts.push(part);
    } else {
      reads.push({ offset, end, parts: [part] });
    }
  }
  return reads.map(({ offset, end, parts }) => ({ offset, length: end - offset, parts: parts.sort((a, b) => a - b) }))
    .sort((one, other) => (one.parts[0] ?? 0) - (other.parts[0] ?? 0));
}
