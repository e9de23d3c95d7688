/**
 * The memory range of a foreign array.
 *
 * @module
 */
import { endsBeyondMemory } from "../ffi/mod.ts";
import type { StridedLayout } from "../layout/mod.ts";
import { ExchangeError } from "../order/mod.ts";

// law dlpack/bytesBefore: dlpack/import, dlpack/array_interface, dlpack/fuzz
/** Bytes from the lowest element of a layout to its offset 0. */
export function bytesBefore({ minOffset, itemsize }: StridedLayout): number {
  return minOffset === 0 ? 0 : 0 - wholeBytes(minOffset, itemsize);
}

/** Bytes from offset 0 of a layout to the end of its highest element. */
export function bytesFrom({ maxOffset, itemsize }: StridedLayout): number {
  return 0 - wholeBytes(-maxOffset - 1, itemsize);
}

// law dlpack/foreignStart: dlpack/import, dlpack/array_interface, dlpack/fuzz
/**
 * The start of the memory of a layout's elements.
 *
 * @param data address of offset 0 of the layout
 * @param before {@linkcode bytesBefore} of the layout
 * @param size of the memory, in bytes
 * @param what the array, for messages: `a DLPack tensor`
 * @returns address of the first byte; 0n if there are none
 * @throws {ExchangeError} if elements lie at NULL or outside of memory
 */
export function foreignStart(layout: StridedLayout, data: bigint, before: number, size: number, what: string): bigint {
  if (layout.volume === 0) return 0n;
  if (data === 0n) throw isNull(layout, what);
  const ptr = before === 0 ? data : data - BigInt(before);
  if ((before !== 0 && ptr <= 0n) || endsBeyondMemory(ptr, size)) {
    throw isOutside(data, before, size, what);
  }
  return ptr;
}

function isNull({ volume }: StridedLayout, what: string): ExchangeError {
  return new ExchangeError(`Cannot import ${what} of ${volume} elements: its data pointer is NULL`);
}

function isOutside(data: bigint, before: number, size: number, what: string): ExchangeError {
  return new ExchangeError(
    `Cannot import ${what} of ${size} bytes from ${before} before address ${data}: they lie outside of memory`,
  );
}

/** Bytes of that many elements, rounded down. */
function wholeBytes(elements: number, itemsize: number): number {
  return itemsize >= 1 ? elements * itemsize : packedBytes(elements, itemsize);
}

// law dlpack/packedBytes: dlpack/import, dlpack/array_interface, dlpack/fuzz
/**
 * Bytes of packed elements, by groups of eight, which take whole bytes: a fraction of 2^52 elements exceeds a number's
 * precision.
 */
function packedBytes(elements: number, itemsize: number): number {
  const eights = Math.floor(elements / 8);
  return eights * (8 * itemsize) + Math.floor((elements - 8 * eights) * itemsize);
}
