/**
 * What statistics say about a filter: whether some rows can be skipped.
 *
 * @module
 */
import type { ColumnTest, Predicate, VortexComparison } from "./filter.ts";
import { type ColumnValue, compareBytes, compareWith, type Literal, type ValueOrder } from "./literal.ts";

/** What is known about the values of a column in some rows. Missing properties are unknown. */
export interface ColumnBounds {
  /** Total number of rows. */
  readonly rows: number;
  /** Lower bound of the values that are neither null nor NaN. */
  readonly min?: ColumnValue | undefined;
  /** Upper bound of the values that are neither null nor NaN. */
  readonly max?: ColumnValue | undefined;
  /** Number of nulls. */
  readonly nullCount?: number | undefined;
  /** Number of floats that are NaN. */
  readonly nanCount?: number | undefined;
}

// law vortex/isFalsified: vortex/file/prune
/**
 * Whether no row can make a predicate true.
 *
 * @param boundsOf what is known about a column, or null
 */
export function isFalsified(
  predicate: Predicate,
  boundsOf: (path: readonly number[]) => ColumnBounds | null,
): boolean {
  if (predicate.kind !== "test") {
    const isPartFalsified = (part: Predicate) => isFalsified(part, boundsOf);
    return predicate.kind === "and" ? predicate.parts.some(isPartFalsified) : predicate.parts.every(isPartFalsified);
  }
  const bounds = boundsOf(predicate.path);
  return bounds !== null && isTestFalsified(predicate.test, bounds);
}

// law vortex/isTestFalsified: vortex/file/prune
function isTestFalsified(test: ColumnTest, bounds: ColumnBounds): boolean {
  const { rows, nullCount, min, max } = bounds;
  if (test.op === "is_null") return nullCount === 0;
  if (nullCount === rows) return true; // no other test is true for a null
  switch (test.kind) {
    case "null":
      return false;
    case "compare":
      return isComparisonFalsified(test.op, test.literal, bounds);
    case "list": {
      const { literals, op } = test;
      // Of the literals that are not below all values, if any, the least decides: if it is above them, so are the rest.
      let [first, last] = [0, literals.length - 1];
      while (first < last) {
        const middle = (first + last) >>> 1;
        const literal = literals[middle];
        if (literal !== undefined && at(min, literal, -0) === 1) first = middle + 1;
        else last = middle;
      }
      const literal = literals[first];
      return literal !== undefined && isComparisonFalsified(op === "in" ? "==" : "!=", literal, bounds);
    }
    case "prefix": {
      const { prefix } = test;
      const starts = (value: ColumnValue | undefined) =>
        value instanceof Uint8Array && compareBytes(value.subarray(0, prefix.length), prefix) === 0;
      if (test.op === "not_starts_with") return starts(min) && starts(max); // then so does everything between them
      if (min instanceof Uint8Array && compareBytes(min.subarray(0, prefix.length), prefix) > 0) return true;
      return max instanceof Uint8Array && compareBytes(max, prefix) < 0;
    }
  }
}

// law vortex/isComparisonFalsified: vortex/file/prune
function isComparisonFalsified(
  op: VortexComparison,
  literal: Literal,
  { min, max, nanCount }: ColumnBounds,
): boolean {
  // NaN is not within the bounds, but compares as less or greater than everything.
  if (literal.order === "float" && nanCount !== 0) return false;
  const low = at(min, literal, -0);
  const high = at(max, literal, 0);
  switch (op) {
    case "==":
      return low === 1 || high === -1 || !literal.isExact;
    case "!=":
      return low === 0 && high === 0;
    case "<":
      return low === 1 || low === 0;
    case "<=":
      return low === 1;
    case ">":
      return high === -1 || high === 0;
    case ">=":
      return high === -1;
  }
}

/**
 * Compares a bound with a literal; undefined if the bound is unknown. A zero may have lost its sign when the bound was
 * computed, so the outer of the two zeros is assumed.
 */
function at(bound: ColumnValue | undefined, literal: Literal, zero: number): -1 | 0 | 1 | undefined {
  if (bound === undefined || !isOf(bound, literal.order)) return undefined;
  return compareWith(literal.order === "float" && bound === 0 ? zero : bound, literal);
}

/** Whether a value belongs to an order; a bound that is NaN bounds nothing. */
function isOf(value: ColumnValue, order: ValueOrder): boolean {
  switch (order) {
    case "bytes":
      return value instanceof Uint8Array;
    case "bool":
      return typeof value === "boolean";
    default:
      return (typeof value === "number" && !Number.isNaN(value)) || typeof value === "bigint";
  }
}
