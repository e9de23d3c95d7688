/**
 * What statistics say about a filter: whether some rows can be left unread.
 *
 * @module
 */
import type { ColumnTest, Predicate } from "./filter.ts";
import { type ColumnValue, compareBytes, compareWith, type Literal, type ValueOrder } from "./literal.ts";

/** What is known of the values of a column in some rows. What is missing is not known. */
export interface ColumnBounds {
  /** Rows in all. */
  readonly rows: number;
  /** No value that is neither null nor NaN is less. */
  readonly min?: ColumnValue | undefined;
  /** No value that is neither null nor NaN is greater. */
  readonly max?: ColumnValue | undefined;
  /** How many are null. */
  readonly nullCount?: number | undefined;
  /** How many floats are NaN. */
  readonly nanCount?: number | undefined;
}

// law vortex/isFalsified: vortex/file/prune
/**
 * Whether no row can make a predicate true.
 *
 * @param boundsOf what is known of a column, or null
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
  if (nullCount === rows) return true; // of a null, nothing else is true
  switch (test.kind) {
    case "null":
      return false;
    case "compare":
      return isComparisonFalsified(test.op, test.literal, bounds);
    case "prefix": {
      const { prefix } = test;
      const starts = (value: ColumnValue | undefined) =>
        value instanceof Uint8Array && compareBytes(value.subarray(0, prefix.length), prefix) === 0;
      if (test.op === "not_starts_with") return starts(min) && starts(max); // and so does what lies between
      if (min instanceof Uint8Array && compareBytes(min.subarray(0, prefix.length), prefix) > 0) return true;
      return max instanceof Uint8Array && compareBytes(max, prefix) < 0;
    }
  }
}

// law vortex/isComparisonFalsified: vortex/file/prune
function isComparisonFalsified(
  op: "==" | "!=" | "<" | "<=" | ">" | ">=",
  literal: Literal,
  { min, max, nanCount }: ColumnBounds,
): boolean {
  // NaN is in no bounds, but compares as less or greater than everything.
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
 * Where a bound stands beside a literal; undefined if it is not known. A zero may have lost its sign when the bound was
 * found, so it is the outer one of the two.
 */
function at(bound: ColumnValue | undefined, literal: Literal, zero: number): -1 | 0 | 1 | undefined {
  if (bound === undefined || !isOf(bound, literal.order)) return undefined;
  return compareWith(literal.order === "float" && bound === 0 ? zero : bound, literal);
}

/** Whether a value is one of that order; a bound that is NaN bounds nothing. */
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
