/** Shared by all operations on shapes and strides: the type, the limits, the checks and the formatting for errors. */
import { isOfOtherCopy } from "./package_copy.ts";

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

/** Formats extents or strides as Python does: `(4, 5)`, `(20,)`, `()`. */
export function formatShape(values: readonly unknown[]): string {
  return show(values);
}

/** The most values of an array that an error message shows, and how deep arrays in it are shown. */
const [mostShown, deepestShown] = [100, 3];

// law layout/show: layout/show
/**
 * Formats any value for an error message: strings quoted, bigints with their n. It does not fail, whatever the value
 * is: the message would be lost.
 */
export function show(value: unknown): string {
  try {
    return shownAt(value, 0);
  } catch {
    return "a value that cannot be shown"; // a revoked proxy, an own toString that throws
  }
}

const ofOtherCopy = " of another copy of this package: this program has loaded two";

function shownAt(value: unknown, depth: number): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "function") return isOfOtherCopy(value) ? `a PyObject${ofOtherCopy}` : "a function";
  if (Array.isArray(value)) return depth < deepestShown ? shownArray(value, depth + 1) : "an array";
  if (typeof value === "object" && value !== null && Object.hasOwn(value, "toString") === false) {
    const name = Object.getPrototypeOf(value)?.constructor?.name;
    const copy = isOfOtherCopy(value) ? ofOtherCopy : "";
    if (typeof name === "string" && name !== "") return `an instance of ${name}${copy}`;
    const tag = Object.prototype.toString.call(value).slice("[object ".length, -1); // of a generator, which has no name
    return tag === "Object" ? "an object" : `an instance of ${tag}`;
  }
  return String(value);
}

function shownArray(values: readonly unknown[], depth: number): string {
  const shown = Array.from(values.slice(0, mostShown), (value) => shownAt(value, depth)); // of holes, too
  if (values.length > mostShown) shown.push("...");
  return values.length === 1 ? `(${shown[0]},)` : `(${shown.join(", ")})`;
}

// law layout/falseFor: public/two_copies
/**
 * What `equals` of a class returns for a value that is no instance of it: false.
 *
 * @param wayOut makes an instance of one of another copy of this package
 * @throws {TypeError} for objects of another copy, which may be equal
 */
export function falseFor(other: unknown, wayOut: string): false {
  if (isOfOtherCopy(other)) throw new TypeError(`Cannot compare with ${show(other)}. ${wayOut} is one of this copy`);
  return false;
}

/** As {@linkcode show}, for values that may be anything: omits a function's source and long strings. */
export function showGiven(value: unknown): string {
  if (typeof value === "string" && value.length > 40) return `a string of ${value.length} characters`;
  const shown = show(value);
  return shown.startsWith("(") ? "an array" : shown; // nothing else is shown in parentheses
}

// law layout/notInteger: layout/strided_layout_errors
/**
 * The error for a value that is not the whole number it should be.
 *
 * @param what the value's name and, if applicable, its position: `extent of axis 2`
 * @param rule what it should be: `a non-negative integer`
 * @returns a TypeError if the value is not a number at all, otherwise a RangeError
 */
export function notInteger(what: string, rule: string, value: unknown): Error {
  const limit = Number.isInteger(value) && !Number.isSafeInteger(value) ? " of at most 53 bits" : "";
  const message = `Expected ${what} to be ${rule}${limit}, got ${show(value)}`;
  return typeof value === "number" ? new RangeError(message) : new TypeError(message);
}

// law layout/noSize: cuda/bad_input
/**
 * The error for a value that is not a valid number of bytes.
 *
 * @param doing what fails: `allocate 10n bytes`, with the value as {@linkcode show} formats it
 * @returns a TypeError if the value is not a number at all, otherwise a RangeError
 */
export function noSize(doing: string, value: unknown): Error {
  const message = `Cannot ${doing}: expected a safe integer of at least 0`;
  if (typeof value === "number") return new RangeError(message);
  const way = typeof value === "bigint" && isSize(value) ? `: Number(${value}n) is one` : "";
  return new TypeError(`${message}, got ${value === null ? "null" : `a ${typeof value}`}${way}`);
}

function isSize(value: bigint): boolean {
  return value >= 0n && value <= Number.MAX_SAFE_INTEGER;
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
