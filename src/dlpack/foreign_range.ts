/**
 * The memory range of a foreign array.
 *
 * @module
 */
import { addressEnd } from "../ffi/mod.ts";
import type { StridedLayout } from "../layout/mod.ts";
import { ExchangeError } from "../order/mod.ts";

/** A range of memory, and where offset 0 of a layout lies in it. */
export interface ForeignRange {
  /** Address of the first byte; 0n if there are none. */
  readonly ptr: bigint;
  /** Bytes. */
  readonly size: number;
  /** Bytes from `ptr` to offset 0 of the layout. */
  readonly offset: number;
}

const nothing: ForeignRange = { ptr: 0n, size: 0, offset: 0 };

/** Below this no layout reaches the end of memory, because it spans at most 2^52 bytes. Adding bigints is slow. */
const farEnough = addressEnd - (1n << 53n);

// law dlpack/foreignRange: dlpack/import, dlpack/array_interface, dlpack/fuzz
/**
 * The memory from the lowest element of a layout to its highest.
 *
 * @param data address of offset 0 of the layout
 * @param what the array, for messages: `a DLPack tensor`
 * @throws {ExchangeError} if elements lie at NULL or outside of memory
 */
export function foreignRange(layout: StridedLayout, data: bigint, what: string): ForeignRange {
  if (layout.volume === 0) return nothing;
  if (data === 0n) {
    throw new ExchangeError(`Cannot import ${what} of ${layout.volume} elements: its data pointer is NULL`);
  }
  const { minOffset: min, maxOffset: max } = layout;
  const before = min === 0 ? 0 : 0 - wholeBytes(min, layout.itemsize);
  const size = before - wholeBytes(-max - 1, layout.itemsize);
  const ptr = before === 0 ? data : data - BigInt(before);
  if ((before !== 0 && ptr <= 0n) || (data > farEnough && ptr + BigInt(size) > addressEnd)) {
    throw new ExchangeError(
      `Cannot import ${what} of ${size} bytes from ${before} before address ${data}: they lie outside of memory`,
    );
  }
  return { ptr, size, offset: before };
}

// law dlpack/wholeBytes: dlpack/import, dlpack/array_interface, dlpack/fuzz
/**
 * Bytes of so many elements, rounded down. For packed elements in eights, which take whole bytes: a fraction of 2^52
 * elements has more bits than a number holds.
 */
function wholeBytes(elements: number, itemsize: number): number {
  if (itemsize >= 1) return elements * itemsize;
  const eights = Math.floor(elements / 8);
  return eights * (8 * itemsize) + Math.floor((elements - 8 * eights) * itemsize);
}
