/**
 * Values in error messages, also those that another copy of this package has made. All rooms use this.
 *
 * Copies of this package in one process are of two versions, under two names, or loaded again by a runtime that watches
 * files (`bun --hot`). The classes of one copy know nothing of the objects of another, which look the same.
 *
 * @module
 */

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
  if (typeof value === "object" && value !== null && !Object.hasOwn(value, "toString")) {
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

/** The member of every object that is shown by `showAs`: which copy made it. */
export const packageCopy: symbol = Symbol.for("causeway.copy");

/** What it is in this copy. */
export const thisCopy: object = Object.freeze({});

// law layout/isOfOtherCopy: public/two_copies
/** Whether another copy of this package made an object. */
export function isOfOtherCopy(value: unknown): boolean {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return false;
  try {
    const copy: unknown = Reflect.get(value, packageCopy);
    return copy !== undefined && copy !== thisCopy;
  } catch {
    return false; // a proxy that was revoked, or whose handler throws
  }
}
