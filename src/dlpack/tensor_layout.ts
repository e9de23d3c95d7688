/**
 * Where the elements of a foreign tensor lie.
 *
 * @module
 */
import { readForeign } from "../ffi/mod.ts";
import { cachedLayout, cacheLayout, MAX_NDIM, StridedLayout } from "../layout/mod.ts";
import { ExchangeError } from "../order/mod.ts";
import type { TensorFields } from "./struct.ts";

/** Not imported: see `ffi/endian.ts`. */
const littleEndian = true;

/** Extents and strides of the tensor being read. The arrays are reused. */
const extents: number[] = Array.from({ length: MAX_NDIM }, () => 0);
const steps: number[] = Array.from({ length: MAX_NDIM }, () => 0);

/**
 * Reads the layout of a tensor.
 *
 * @throws {ExchangeError} if these extents and strides make no valid layout
 */
export function readLayout(fields: TensorFields, itemsize: number): StridedLayout {
  const { ndim, shape, strides, stridesAfterShape } = fields;
  if (ndim > 0) {
    const bytes = readForeign(shape, stridesAfterShape + 8 * ndim);
    readInt64s(bytes, 0, ndim, extents);
    if (stridesAfterShape > 0) readInt64s(bytes, stridesAfterShape, ndim, steps);
    else if (strides !== 0n) readInt64s(readForeign(strides, 8 * ndim), 0, ndim, steps);
  }
  const given = fields.hasStrides ? steps : null;
  return cachedLayout(extents, given, ndim, itemsize, 1) ?? newLayout(ndim, given, itemsize);
}

/**
 * Values beyond 2^53 are rounded. Small ones are stored without arithmetic: a computed value may be stored as a
 * floating-point number, which changes the kind of array.
 */
function readInt64s(bytes: DataView, from: number, count: number, values: number[]): void {
  for (let i = 0; i < count; i++) {
    const low = bytes.getInt32(from + i * 8, littleEndian);
    const high = bytes.getInt32(from + i * 8 + 4, littleEndian);
    values[i] = high === low >> 31 ? low : high * 2 ** 32 + (low >>> 0);
  }
}

/** A layout of the extents that were read. */
function newLayout(ndim: number, strides: readonly number[] | null, itemsize: number): StridedLayout {
  try {
    // The constructor rejects numbers that were rounded.
    const layout = new StridedLayout(
      extents.slice(0, ndim),
      strides === null ? null : strides.slice(0, ndim),
      itemsize,
    );
    cacheLayout(layout, strides !== null);
    return layout;
  } catch (error) {
    throw refused(error);
  }
}

/** A tensor that the layout room rejects cannot be imported either. */
export function refused(cause: unknown): ExchangeError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new ExchangeError(`Cannot import a DLPack tensor: ${why}`, { cause });
}
