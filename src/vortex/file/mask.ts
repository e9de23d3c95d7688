/**
 * Applies filters to rows that were read.
 *
 * @module
 */
import { bitAt } from "../bits.ts";
import type { CanonicalArray } from "../canonical.ts";
import type { ColumnTest, Predicate, VortexComparison } from "./filter.ts";
import { type RowOrder, rowOrderOf, type TextCursor, textCursor } from "./row_order.ts";

// law vortex/matches: vortex/file/files
/** One byte per row: 1 where a predicate is true. */
export function matches(predicate: Predicate, array: CanonicalArray): Uint8Array {
  if (predicate.kind === "test") return test(predicate.test, columnAt(array, predicate.path));
  const isAnd = predicate.kind === "and";
  const all = new Uint8Array(array.length).fill(Number(isAnd));
  for (const part of predicate.parts) {
    const one = matches(part, array);
    for (let i = 0; i < all.length; i++) all[i] = isAnd ? (all[i] ?? 0) & (one[i] ?? 0) : (all[i] ?? 0) | (one[i] ?? 0);
  }
  return all;
}

/** The indices of the rows for which a predicate is true. */
export function matchingRows(predicate: Predicate, array: CanonicalArray): Uint32Array {
  const mask = matches(predicate, array);
  let count = 0;
  for (const one of mask) count += one;
  const rows = new Uint32Array(count);
  let to = 0;
  for (let i = 0; i < mask.length; i++) if (mask[i] === 1) rows[to++] = i;
  return rows;
}

/** A column inside structs, and its null rows, including those of the enclosing structs. */
interface Column {
  readonly array: CanonicalArray;
  readonly isNull: (row: number) => boolean;
}

function columnAt(root: CanonicalArray, path: readonly number[]): Column {
  const masks: Uint8Array[] = [];
  let array = root;
  for (const index of path) {
    if (array.validity !== null) masks.push(array.validity);
    const field = array.kind === "struct" ? array.fields[index] : undefined;
    if (field === undefined) throw new TypeError(`There is no field ${index} in a ${array.kind}`);
    array = field;
  }
  if (array.validity !== null) masks.push(array.validity);
  const [only] = masks;
  if (array.kind === "null") return { array, isNull: () => true };
  if (only === undefined) return { array, isNull: () => false };
  if (masks.length === 1) return { array, isNull: (row) => !bitAt(only, row) };
  return { array, isNull: (row) => masks.some((mask) => !bitAt(mask, row)) };
}

function test(what: ColumnTest, { array, isNull }: Column): Uint8Array {
  const mask = new Uint8Array(array.length);
  switch (what.kind) {
    case "null":
      for (let i = 0; i < mask.length; i++) mask[i] = Number(isNull(i) === (what.op === "is_null"));
      return mask;
    case "prefix": {
      if (array.kind !== "varbinview") return mask;
      const { prefix, op } = what;
      const move = textCursor(array);
      for (let i = 0; i < mask.length; i++) {
        if (!isNull(i)) mask[i] = Number(startsWith(move(i), prefix) === (op === "starts_with"));
      }
      return mask;
    }
    case "list": {
      const { literals, op } = what;
      const isEquality = literals.length === 1; // a search among several has to know which is less
      const isAmong = amongOf(literals.map((literal) => rowOrderOf(array, literal, isEquality)));
      for (let i = 0; i < mask.length; i++) {
        if (!isNull(i)) mask[i] = Number(isAmong(i) === (op === "in"));
      }
      return mask;
    }
    case "compare": {
      const accepted = places[what.op];
      const order = rowOrderOf(array, what.literal, accepted[0] === accepted[2]);
      for (let i = 0; i < mask.length; i++) {
        const place = isNull(i) ? undefined : order(i);
        if (place !== undefined) mask[i] = accepted[place + 1] ?? 0;
      }
      return mask;
    }
  }
}

/** Whether a row equals one of some literals in ascending order, by binary search; undefined without an order. */
function amongOf(orders: readonly RowOrder[]): (row: number) => boolean | undefined {
  return (row) => {
    let first = 0;
    let end = orders.length;
    while (first < end) {
      const middle = (first + end) >>> 1;
      const place = orders[middle]?.(row);
      if (place === undefined) return undefined;
      if (place === 0) return true;
      if (place < 0) end = middle;
      else first = middle + 1;
    }
    return false;
  };
}

function startsWith({ bytes, start, size }: TextCursor, prefix: Uint8Array): boolean {
  if (size < prefix.length) return false;
  for (let i = 0; i < prefix.length; i++) if (bytes[start + i] !== prefix[i]) return false;
  return true;
}

/** Whether each operator is true for values less than the literal, equal to it, and greater. */
const places: Readonly<Record<VortexComparison, readonly [less: 0 | 1, equal: 0 | 1, greater: 0 | 1]>> = {
  "==": [0, 1, 0],
  "!=": [1, 0, 1],
  "<": [1, 0, 0],
  "<=": [1, 1, 0],
  ">": [0, 0, 1],
  ">=": [0, 1, 1],
};
