/**
 * An array, as everything below views sees it: its parts. Every view is one.
 *
 * @module
 */
import { type DType, noSize, show, type StridedLayout } from "../layout/mod.ts";
import type { MemoryBuffer } from "../memory/mod.ts";

/** Memory, and what is in it. */
export interface ArrayParts {
  /** The memory. */
  readonly buffer: MemoryBuffer;
  /** Bytes from the start of the buffer to offset 0 of the layout. */
  readonly offset: number;
  /** Where the elements lie. */
  readonly layout: StridedLayout;
  /** What they are. */
  readonly dtype: DType;
  /** Whether writing to it is refused. */
  readonly readonly: boolean;
}

/** What an import is closed by. */
export interface Closeable {
  close(): void;
}

/**
 * Makes an array of parts that an import has found, whose layout lies inside the buffer. Parts one by one: an object of
 * all of them would be one more to make for each import.
 *
 * @param imported what closing the array closes: the buffer, or an import that is more than that; null for nothing
 */
export type MakeArray<T> = (
  buffer: MemoryBuffer,
  offset: number,
  layout: StridedLayout,
  dtype: DType,
  readonly: boolean,
  imported: Closeable | null,
) => T;

/**
 * Address of the first element; 0n if there are none.
 *
 * @throws {TypeError} if the buffer is closed
 */
export function firstAddress({ buffer, offset, layout }: Pick<ArrayParts, "buffer" | "offset" | "layout">): bigint {
  const { ptr } = buffer;
  if (layout.volume === 0) return 0n;
  const before = offset + layout.sliceOffsetInBytes;
  return before === 0 ? ptr : ptr + BigInt(before);
}

/** Bytes that the elements take without gaps. */
export function byteCount({ layout, dtype }: Pick<ArrayParts, "layout" | "dtype">): number {
  return Math.ceil(layout.volume * dtype.itemsize);
}

/**
 * Throws unless a layout lies inside a buffer.
 *
 * @param offset bytes from the start of the buffer to offset 0 of the layout
 * @throws {RangeError} with both sizes
 */
export function checkBounds(buffer: MemoryBuffer, offset: number, layout: StridedLayout): void {
  if (!Number.isSafeInteger(offset) || offset < 0) {
    throw noSize(`start ${show(offset)} bytes into a buffer`, offset);
  }
  if (layout.volume === 0) return;
  const { minOffset: min, maxOffset: max } = layout;
  const start = offset + min * layout.itemsize;
  const end = offset + (max + 1) * layout.itemsize;
  if (start < 0 || end > buffer.size) {
    throw new RangeError(
      `Cannot see bytes ${start} to ${end} of a buffer of ${buffer.size}: the layout reaches outside it. ` +
        `Expected at least ${Math.ceil(end)} bytes${start < 0 ? ` and an offset of at least ${offset - start}` : ""}.`,
    );
  }
}

/** The error for a layout of elements of another size than their type's. */
export function noItemsize({ itemsize }: StridedLayout, dtype: DType): RangeError {
  return new RangeError(
    `Cannot view elements of ${itemsize} bytes as ${dtype.name}: expected an itemsize of ${dtype.itemsize}`,
  );
}
