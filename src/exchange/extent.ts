/**
 * The memory that a foreign array vouches for.
 *
 * @module
 */
import type { StridedLayout } from "../layout/mod.ts";
import { ExchangeError } from "./error.ts";

/** A range of memory, and where offset 0 of a layout lies in it. */
export interface Extent {
  /** Address of the first byte; 0n if there are none. */
  readonly ptr: bigint;
  /** Bytes. */
  readonly size: number;
  /** Bytes from `ptr` to offset 0 of the layout. */
  readonly offset: number;
}

/**
 * The memory from the lowest element of a layout to its highest, and not a byte more.
 *
 * @param data address of offset 0 of the layout
 * @param what the array, for messages: `a DLPack tensor`
 * @throws {ExchangeError} if elements lie at NULL or outside of memory
 */
export function extentOf(layout: StridedLayout, data: bigint, what: string): Extent {
  if (layout.volume === 0) return { ptr: 0n, size: 0, offset: 0 };
  if (data === 0n) {
    throw new ExchangeError(`Cannot import ${what} of ${layout.volume} elements: its data pointer is NULL`);
  }
  const [min, max] = layout.offsetBounds;
  const before = 0 - Math.floor(min * layout.itemsize);
  const size = before + Math.ceil((max + 1) * layout.itemsize);
  const ptr = data - BigInt(before);
  if (ptr <= 0n || ptr + BigInt(size) > 1n << 64n) {
    throw new ExchangeError(
      `Cannot import ${what} of ${size} bytes from ${before} before address ${data}: they lie outside of memory`,
    );
  }
  return { ptr, size, offset: before };
}
