/**
 * The parts of an array, which is how everything below views sees it. Every view is an `ArrayParts`.
 *
 * @module
 */
import { bytesBefore, bytesFrom, type DType, noSize, show, type StridedLayout } from "../layout/mod.ts";
import type { MemoryBuffer } from "../memory/mod.ts";

/** Memory and the elements in it. */
export interface ArrayParts {
  /** The memory. */
  readonly buffer: MemoryBuffer;
  /** Bytes from the start of the buffer to offset 0 of the layout. */
  readonly offset: number;
  /** Where the elements lie. */
  readonly layout: StridedLayout;
  /** The type of the elements. */
  readonly dtype: DType;
  /** Whether writes are refused. */
  readonly readonly: boolean;
}

/** Closes an import. */
export interface Closeable {
  close(): void;
}

/**
 * Makes an array from the parts of an import, whose layout lies inside the buffer. Separate parameters: an object of
 * all parts would be one more allocation per import.
 *
 * @param imported what closing the array closes: the buffer, or an import that comprises more; null for nothing
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
 * Address of the first element; 0n if there are no elements.
 *
 * @throws {TypeError} if the buffer is closed
 */
export function firstAddress({ buffer, offset, layout }: Pick<ArrayParts, "buffer" | "offset" | "layout">): bigint {
  const { ptr } = buffer;
  if (layout.volume === 0) return 0n;
  const before = offset + layout.sliceOffsetInBytes;
  return before === 0 ? ptr : ptr + BigInt(before);
}

/** Throws a TypeError if the buffer is closed: without elements, nothing else would. */
export function checkOpen(array: ArrayParts): void {
  firstAddress(array);
}

/** Bytes that the elements take without gaps. */
export function byteCount({ layout }: Pick<ArrayParts, "layout">): number {
  return Math.ceil(layout.volume * layout.itemsize);
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
  const start = offset - bytesBefore(layout);
  const end = offset + bytesFrom(layout);
  if (start < 0 || end > buffer.size) {
    throw new RangeError(
      `Cannot view bytes ${start} to ${end} of a buffer of ${buffer.size}: the layout reaches outside it. ` +
        `Expected at least ${end} bytes${start < 0 ? ` and an offset of at least ${offset - start}` : ""}.`,
    );
  }
}

/** The error for a layout whose itemsize differs from that of the element type. */
export function noItemsize({ itemsize }: StridedLayout, dtype: DType): RangeError {
  return new RangeError(
    `Cannot view elements of ${itemsize} bytes as ${dtype.name}: expected an itemsize of ${dtype.itemsize}`,
  );
}
