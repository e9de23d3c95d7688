/** Shared by all operations on shapes and strides: the type, the limits and the checks. */
import { formatShape, notInteger, show } from "./show.ts";

/** The extents of an array, outermost axis first; `[]` is a scalar. */
export type Shape = readonly number[];

/** The most axes a layout may have, as in cuda.core and NumPy. */
export const MAX_NDIM = 64;

/**
 * The most bytes a layout may span (4 PiB). Half of the exact range of a number: an extent times its stride, which
 * operations use as the stride of a new axis, reaches at most twice as far as the last element. So no operation on a
 * valid layout can leave the exact range.
 */
export const MAX_SPAN_IN_BYTES: number = 2 ** 52;

/**
 * Reads an array at an index that the surrounding loop keeps in range.
 *
 * The compiler cannot prove that the index is in range, and a default value would turn a mistake into a wrong layout:
 * this is the one place that asserts it, instead of a `!` or a `?? 0` at every access.
 */
export function at(values: readonly number[], index: number): number {
  return values[index] as number;
}

/**
 * An array of exactly `count` numbers, for the caller to overwrite. If an outside value is -0, which no layout may
 * hold, the caller leaves the 0.
 *
 * A literal is the cheapest way to make a short array of exact size in both engines, as long as the values in it are
 * not constant: arrays of constants are shared until the first write, which then has to copy.
 */
export function arrayOf(count: number, value: number): number[] {
  // Kept short, with only the commonest lengths, so that the engines inline it into callers that need two arrays.
  if (count === 3) return [value, value, value];
  if (count === 2) return [value, value];
  if (count === 4) return [value, value, value, value];
  return rarerArrayOf(count, value);
}

function rarerArrayOf(count: number, value: number): number[] {
  switch (count) {
    case 0:
      return [];
    case 1:
      return [value];
    case 5:
      return [value, value, value, value, value];
    case 6:
      return [value, value, value, value, value, value];
    default:
      return new Array<number>(count).fill(value);
  }
}

/** Throws a TypeError unless a value that holds integers is an array. */
export function checkArray(what: string, value: unknown): void {
  if (!Array.isArray(value)) throw noArray(what, value);
}

// Errors are made in separate functions, which keeps the checks short, so that the engines inline them.

function noArray(what: string, value: unknown): TypeError {
  return new TypeError(`Expected ${what} to be an array of integers, got ${show(value)}`);
}

// law layout/checkNdim: layout/strided_layout_errors
/** Throws a RangeError if an array has more axes than a layout may have. */
export function checkNdim(ndim: number): void {
  if (ndim > MAX_NDIM) throw tooManyAxes(ndim);
}

function tooManyAxes(ndim: number): RangeError {
  return new RangeError(`Expected at most ${MAX_NDIM} dimensions, got ${ndim}`);
}

/**
 * The number of axes of a caller's shape.
 *
 * @throws {TypeError} if it is not an array
 * @throws {RangeError} if there are more than 64
 */
export function ndimOf(shape: Shape): number {
  checkArray("shape", shape);
  checkNdim(shape.length);
  return shape.length;
}

/**
 * A copy of a caller's extents.
 *
 * @throws {TypeError} if they are not an array, or one is not a number
 * @throws {RangeError} if there are more than 64, or one is negative, fractional, NaN or beyond 2^53 - 1
 */
export function copyShape(shape: Shape): number[] {
  const extents = arrayOf(ndimOf(shape), 0);
  for (let axis = 0; axis < extents.length; axis++) {
    const extent = at(shape, axis);
    checkExtent(extent, axis);
    if (extent !== 0) extents[axis] = extent; // not -0
  }
  return extents;
}

// law layout/checkExtent: layout/strided_layout_errors
/**
 * Throws unless a value is an extent.
 *
 * @throws {TypeError} if it is not a number
 * @throws {RangeError} if it is negative, fractional, NaN or beyond 2^53 - 1
 */
export function checkExtent(extent: number, axis: number): void {
  if (!(Number.isSafeInteger(extent) && extent >= 0)) throw noExtent(extent, axis);
}

function noExtent(extent: number, axis: number): Error {
  return notInteger(`extent of axis ${axis}`, "a non-negative integer", extent);
}

/**
 * The number of elements.
 *
 * @returns 0 if any extent is 0, however large the others are
 * @throws {RangeError} if it is beyond 2^53 - 1
 */
export function volumeOf(shape: Shape): number {
  let volume = 1;
  for (let axis = 0; axis < shape.length; axis++) volume *= at(shape, axis);
  return checkVolume(volume, shape);
}

// law layout/checkVolume: layout/strided_layout_errors
/**
 * The product of the extents, if it is exact.
 *
 * @param product of the extents, as multiplied
 * @returns 0 if an extent is 0, however large the others are: they may have overflowed, and infinity times zero is NaN
 * @throws {RangeError} if it is beyond 2^53 - 1
 */
export function checkVolume(product: number, shape: Shape): number {
  return product <= Number.MAX_SAFE_INTEGER ? product : emptyOrTooLarge(shape);
}

// law layout/emptyOrTooLarge: layout/strided_layout_errors
function emptyOrTooLarge(shape: Shape): number {
  if (shape.includes(0)) return 0;
  throw new RangeError(`Expected at most 2^53 - 1 elements, got shape ${formatShape(shape)}`);
}

// law layout/normalizeAxis: layout/strided_layout_errors
/**
 * Converts an axis counted from either end to an index from the front.
 *
 * @throws {TypeError | RangeError} if it is not an integer in [-ndim, ndim)
 */
export function normalizeAxis(axis: number, ndim: number): number {
  if (!Number.isSafeInteger(axis)) throw noAxis(axis, ndim);
  const fromFront = axis < 0 ? axis + ndim : axis;
  if (fromFront < 0 || fromFront >= ndim) throw noAxis(axis, ndim);
  return fromFront;
}

function noAxis(axis: number, ndim: number): Error {
  if (!Number.isSafeInteger(axis)) return notInteger("axis", "an integer", axis);
  return new RangeError(
    ndim === 0
      ? `Expected an axis of the layout, got ${axis}, but it has no axes`
      : `Expected an axis from ${-ndim} to ${ndim - 1}, got ${axis}`,
  );
}
