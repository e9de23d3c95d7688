/**
 * Filters: which rows are wanted, as a user writes it, and as bound to the columns of a file.
 *
 * @module
 */
import { namesNear, show } from "../../layout/mod.ts";
import type { VortexDType } from "../dtype.ts";
import { showDType } from "../dtype.ts";
import { distinctLiterals, type Literal, literalOf, type LiteralValue, prefixOf } from "./literal.ts";

/** Comparison operators. */
export type VortexComparison = "==" | "!=" | "<" | "<=" | ">" | ">=";

/** A column: its name, or the names that lead to a field inside structs. */
export type VortexColumn = string | readonly string[];

/**
 * Which rows are wanted: those for which the filter is true. As in SQL, a comparison with a null is neither true nor
 * false, so such a row is not wanted, even under a `not`.
 *
 * Numbers of any width compare by their exact values. Floats follow the total order of IEEE 754, as in PyVortex:
 * -NaN < -Infinity < ... < -0 < 0 < ... < Infinity < NaN. Texts follow the order of their UTF-8 bytes. Dates and times
 * compare with a `Date` or with the stored number; decimals with a number, a bigint, or exactly with a string such as
 * `"12.50"`.
 *
 * @example
 * ```ts
 * import type { VortexFilter } from "@causeway/causeway/vortex";
 *
 * const filter: VortexFilter = {
 *   and: [
 *     { column: "fare", op: ">", value: 10 },
 *     { or: [{ column: "city", op: "==", value: "Paris" }, { column: "city", op: "is_null" }] },
 *   ],
 * };
 * console.log(Object.keys(filter)); // [ "and" ]
 * ```
 */
export type VortexFilter =
  | { readonly column: VortexColumn; readonly op: VortexComparison; readonly value: LiteralValue }
  | { readonly column: VortexColumn; readonly op: "in"; readonly value: readonly LiteralValue[] }
  | { readonly column: VortexColumn; readonly op: "starts_with"; readonly value: string | Uint8Array }
  | { readonly column: VortexColumn; readonly op: "is_null" | "is_not_null" }
  | { readonly and: readonly VortexFilter[] }
  | { readonly or: readonly VortexFilter[] }
  | { readonly not: VortexFilter };

/** A test of one column. */
export type ColumnTest =
  | { readonly kind: "compare"; readonly op: VortexComparison; readonly literal: Literal }
  | {
    readonly kind: "list";
    readonly op: "in" | "not_in";
    /** At least one, exact, distinct and in ascending order. */
    readonly literals: readonly Literal[];
  }
  | { readonly kind: "prefix"; readonly op: "starts_with" | "not_starts_with"; readonly prefix: Uint8Array }
  | { readonly kind: "null"; readonly op: "is_null" | "is_not_null" };

/** A filter with resolved columns and without negations, so that only what is true matters. */
export type Predicate =
  | { readonly kind: "and" | "or"; readonly parts: readonly Predicate[] }
  | {
    readonly kind: "test";
    /** Indices of the fields that lead to the column, from the root of the file. Empty means the root itself. */
    readonly path: readonly number[];
    readonly dtype: VortexDType;
    readonly test: ColumnTest;
  };

/** The negation of each comparison. */
const opposite: Readonly<Record<VortexComparison, VortexComparison>> = {
  "==": "!=",
  "!=": "==",
  "<": ">=",
  ">=": "<",
  ">": "<=",
  "<=": ">",
};

// law vortex/bindFilter: vortex/file/filter, vortex/file/files
/**
 * Binds a filter to the columns of a dtype.
 *
 * @throws {TypeError} if it is not a filter, a column does not exist, or a value cannot be compared with a column's
 */
export function bindFilter(filter: VortexFilter, dtype: VortexDType): Predicate {
  const side = withoutNot({ filter, negated: false });
  const group = groupOf(side);
  return group === null ? bindTest(side, dtype) : bindGroup(group, dtype, 0);
}

/** A filter, and whether its opposite is meant. */
interface Side {
  readonly filter: VortexFilter;
  readonly negated: boolean;
}

/** How deep `and` and `or` may be in each other, where each is a call within a call, and `not` in `not`. */
const mostNested = 500;
/** How many parts an `and` or an `or` may be put together from: one that is a part of itself would have no end. */
const mostParts = 1 << 20;

function bindTest({ filter, negated }: Side, dtype: VortexDType): Predicate {
  if (!("column" in filter) || !("op" in filter)) throw noFilter(filter);
  const { path, dtype: of } = columnOf(filter.column, dtype);
  const test = (test: ColumnTest): Predicate => ({ kind: "test", path, dtype: of, test });
  const where = `the column ${nameOf(filter.column)} of ${showDType(of)}`;
  switch (filter.op) {
    case "is_null":
    case "is_not_null":
      only(filter, "column", "op");
      return test({ kind: "null", op: (filter.op === "is_null") === negated ? "is_not_null" : "is_null" });
    case "starts_with":
      only(filter, "column", "op", "value");
      return test({
        kind: "prefix",
        op: negated ? "not_starts_with" : "starts_with",
        prefix: prefixOf(filter.value, of, where),
      });
    case "in": {
      const { value } = only(filter, "column", "op", "value");
      if (!Array.isArray(value)) throw new TypeError(`Cannot filter by "in" with ${show(value)}: expected an array`);
      const literals = distinctLiterals(value.map((one: LiteralValue) => literalOf(one, of, where)));
      if (literals.length > 0) return test({ kind: "list", op: negated ? "not_in" : "in", literals });
      // No value is in an empty list, but a null is not outside it either.
      return negated ? test({ kind: "null", op: "is_not_null" }) : { kind: "or", parts: [] };
    }
    default: {
      const { op } = filter;
      if (!Object.hasOwn(opposite, op)) throw noFilter(filter);
      const literal = literalOf(only(filter, "column", "op", "value").value, of, where);
      return test({ kind: "compare", op: negated ? opposite[op] : op, literal });
    }
  }
}

/** The filter within any number of `not`. */
function withoutNot({ filter, negated }: Side): Side {
  for (let times = 0;; times++) {
    if (typeof filter !== "object" || filter === null) throw noFilter(filter);
    if (!("not" in filter)) return { filter, negated };
    if (times > mostNested) throw tooNested();
    [filter, negated] = [only(filter, "not").not, !negated];
  }
}

/** An `and` or an `or`, whichever it is with its negation taken in. */
interface Group {
  readonly kind: "and" | "or";
  readonly parts: readonly Side[];
}

/** The parts of an `and` or an `or`; null for a test. */
function groupOf({ filter, negated }: Side): Group | null {
  const isAnd = "and" in filter;
  if (!isAnd && !("or" in filter)) return null;
  const parts: unknown = isAnd ? only(filter, "and").and : only(filter, "or").or;
  if (!Array.isArray(parts)) throw noFilter(parts);
  return { kind: isAnd === negated ? "or" : "and", parts: parts.map((filter: VortexFilter) => ({ filter, negated })) };
}

// law vortex/bindGroup: vortex/file/filter
/** A group within a group of the same kind is part of it: so a filter may be built up one by one, however long. */
function bindGroup({ kind, parts }: Group, dtype: VortexDType, depth: number): Predicate {
  if (depth > mostNested) throw tooNested();
  const bound: Predicate[] = [];
  const left = parts.toReversed();
  let count = left.length;
  for (let part = left.pop(); part !== undefined; part = left.pop()) {
    const side = withoutNot(part);
    const group = groupOf(side);
    if (group === null) bound.push(bindTest(side, dtype));
    else if (group.kind !== kind) bound.push(bindGroup(group, dtype, depth + 1));
    else {
      count += group.parts.length;
      if (count > mostParts) throw tooNested();
      for (const inner of group.parts.toReversed()) left.push(inner);
    }
  }
  return { kind, parts: bound };
}

function tooNested(): TypeError {
  return new TypeError(
    `Cannot filter by "and", "or" and "not" that are in each other more than ${mostNested} deep, or have more than ` +
      `${mostParts} parts: is the filter a part of itself? Else write it flatter, or compare with a list by "in".`,
  );
}

/** Requires a filter with these keys only: any other key would be silently ignored. */
function only<Filter extends object>(filter: Filter, ...keys: readonly string[]): Filter {
  if (Object.keys(filter).length !== keys.length || !keys.every((key) => key in filter)) throw noFilter(filter);
  return filter;
}

// law vortex/columnOf: vortex/file/filter
/** Finds a column. @throws {TypeError} if it does not exist, or there are several with that name */
export function columnOf(column: VortexColumn, root: VortexDType): {
  readonly path: readonly number[];
  readonly dtype: VortexDType;
} {
  const names = typeof column === "string" ? [column] : column;
  if (!Array.isArray(names)) throw new TypeError(`Cannot use ${show(column)} as a column: expected a name`);
  const path: number[] = [];
  let dtype = root;
  for (const name of names) {
    if (dtype.kind !== "struct") {
      throw new TypeError(`There is no column ${nameOf(column)}: ${showDType(dtype)} has no fields`);
    }
    const index = dtype.names.indexOf(name);
    const field = dtype.fields[index];
    if (field === undefined) {
      throw new TypeError(`There is no column ${nameOf(column)}${namesNear(name, dtype.names, "columns")}`);
    }
    if (dtype.names.lastIndexOf(name) !== index) {
      throw new TypeError(`There are several columns ${nameOf(column)}: the name is ambiguous`);
    }
    path.push(index);
    dtype = field;
  }
  return { path, dtype };
}

function nameOf(column: VortexColumn): string {
  return typeof column === "string" ? show(column) : column.map(show).join(".");
}

function noFilter(value: unknown): TypeError {
  return new TypeError(
    `Cannot filter by ${describe(value)}: expected { column, op, value } with one of the operators ` +
      `${Object.keys(opposite).join(" ")} in starts_with, ` +
      "{ column, op } with is_null or is_not_null, { and: [...] }, { or: [...] } or { not: ... }, and nothing else",
  );
}

function describe(value: unknown): string {
  if (typeof value !== "object" || value === null) return show(value);
  const parts = Object.entries(value).map(([name, one]) => `${name}: ${typeof one === "object" ? "..." : show(one)}`);
  return `{ ${parts.join(", ")} }`;
}

/** The columns that a predicate tests, as indices of the fields that lead to them. */
export function columnsOf(predicate: Predicate): (readonly number[])[] {
  if (predicate.kind === "test") return [predicate.path];
  const all = predicate.parts.flatMap(columnsOf);
  return all.filter((path, at) => all.findIndex((other) => `${other}` === `${path}`) === at);
}
