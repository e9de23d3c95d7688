/**
 * Nested JavaScript arrays as the values of an array.
 *
 * @module
 */
import { type Complex, DType, type DTypeName, type Scalar, showGiven, type TypedArray } from "../layout/mod.ts";
import { describe, isTypedArray } from "./from.ts";

/** Nested arrays of values, of uniform depth and length; the innermost may be typed arrays. */
export type NestedValues<V extends Scalar = Scalar> = readonly (V | NestedValues<V>)[] | TypedArray;

/** Nested arrays of values only. */
export type NestedScalars<V extends Scalar> = readonly (V | NestedScalars<V>)[];

/** A typed array, or nested arrays of them. */
export type NestedTypedArrays<A extends TypedArray> = A | readonly NestedTypedArrays<A>[];

/** The dtype that a value has by default: see {@linkcode dtypeOfValue}. */
export type DTypeNameOfValue<V> = V extends number ? "float64"
  : V extends bigint ? "int64"
  : V extends boolean ? "bool"
  : V extends Complex ? "complex128"
  : DTypeName;

type Row = readonly unknown[] | TypedArray;

const typedArray = Object.getPrototypeOf(Uint8Array.prototype) as object;

/** The number of items of a row: of a typed array its own, whatever a subclass or a property says. */
function countOf(row: Row): number {
  return isTypedArray(row) ? Number(Reflect.get(typedArray, "length", row)) : row.length;
}

function isRow(value: unknown): value is Row {
  return Array.isArray(value) || isTypedArray(value);
}

// law view/nestedValues: view/create
/**
 * The shape of nested arrays, by the first item at each depth.
 *
 * @throws {TypeError} if it is not an array
 */
export function shapeOf(nested: unknown): number[] {
  if (!isRow(nested)) throw new TypeError(`Expected an array or nested arrays, got ${describe(nested)}`);
  const shape: number[] = [];
  for (let row: unknown = nested; isRow(row); row = row[0]) {
    shape.push(countOf(row));
    if (shape.length > 64) {
      throw new RangeError("Expected at most 64 axes of nested arrays, got more: does one contain itself?");
    }
  }
  return shape;
}

/**
 * The scalars of nested arrays, in C order.
 *
 * @throws {RangeError} if an array differs in length or depth from the first of its axis; the message says where
 */
export function flatValues(nested: unknown, shape: readonly number[]): unknown[] {
  const values: unknown[] = [];
  const collect = (item: unknown, path: readonly number[]): void => {
    const expected = shape[path.length];
    const where = `[${path.join("][")}]`;
    if (expected === undefined) {
      if (isRow(item)) throw new RangeError(`Expected a value at ${where}, got an array: all must have the same depth`);
      values.push(item);
      return;
    }
    if (!isRow(item)) throw new RangeError(`Expected an array of ${expected} at ${where}, got ${typeof item}`);
    const count = countOf(item);
    if (count !== expected) throw new RangeError(`Expected an array of ${expected} at ${where}, got one of ${count}`);
    for (let at = 0; at < expected; at++) collect(item[at], [...path, at]);
  };
  collect(nested, []);
  return values;
}

// law view/dtypeOfNested: view/create
/**
 * The default dtype of nested arrays of uniform depth: that of the typed arrays, or the dtype that holds the first
 * value.
 *
 * @throws {TypeError} if typed arrays differ in type: one might not hold the values of the others
 */
export function dtypeOfNested(nested: unknown): DType {
  let row = nested;
  while (Array.isArray(row)) row = row[0];
  if (!isTypedArray(row)) return dtypeOfValue(row);
  const dtype = DType.fromTypedArray(row);
  const compare = (item: unknown): void => {
    if (Array.isArray(item)) return item.forEach(compare);
    const other = isTypedArray(item) ? DType.fromTypedArray(item) : dtype;
    if (other.name === dtype.name) return;
    throw new TypeError(
      `Expected typed arrays of one type, got ${dtype.name} and ${other.name}: name the dtype, as in ` +
        `fromArray(values, "${dtype.name}")`,
    );
  };
  compare(nested);
  return dtype;
}

/**
 * The dtype that holds a JavaScript value exactly.
 *
 * @throws {TypeError} for an object that is no complex number: the dtype of one would be misleading in an error
 */
export function dtypeOfValue(value: unknown): DType {
  switch (typeof value) {
    case "bigint":
      return DType.from("int64");
    case "boolean":
      return DType.from("bool");
    case "object":
      if (value !== null && "re" in value) return DType.from("complex128"); // if it is not complex, writing it throws
      throw new TypeError(`Expected a number, a bigint, a boolean or { re, im }, got ${showGiven(value)}`);
    default:
      return DType.from("float64");
  }
}
