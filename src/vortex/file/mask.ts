/**
 * Filters on rows that were read.
 *
 * @module
 */
import { bitAt } from "../bits.ts";
import type { CanonicalArray } from "../canonical.ts";
import type { ColumnTest, Predicate } from "./filter.ts";
import { compareBytes, compareWith, type Literal } from "./literal.ts";
import { valueAt } from "./zones.ts";

// law vortex/matches: vortex/file/files
/** A byte for each row: 1 where a predicate is true. */
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

/** The numbers of the rows that a predicate is true of. */
export function matchingRows(predicate: Predicate, array: CanonicalArray): Uint32Array {
  const mask = matches(predicate, array);
  let count = 0;
  for (const one of mask) count += one;
  const rows = new Uint32Array(count);
  let to = 0;
  for (let i = 0; i < mask.length; i++) if (mask[i] === 1) rows[to++] = i;
  return rows;
}

/** A column inside of structs, and the structs that it is in. */
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
      const { prefix, op } = what;
      for (let i = 0; i < mask.length; i++) {
        const value = isNull(i) ? undefined : valueAt(array, i);
        if (!(value instanceof Uint8Array)) continue;
        const starts = compareBytes(value.subarray(0, prefix.length), prefix) === 0;
        mask[i] = Number(starts === (op === "starts_with"));
      }
      return mask;
    }
    case "compare": {
      const { literal } = what;
      const accepted = places[what.op] ?? [];
      const places32 = fastPlaces(array, literal);
      for (let i = 0; i < mask.length; i++) {
        if (isNull(i)) continue;
        let place: number | undefined;
        if (places32 !== null) place = places32(i);
        else {
          const value = valueAt(array, i);
          if (value === undefined) continue;
          place = compareWith(value, literal);
        }
        if (accepted.includes(place)) mask[i] = 1;
      }
      return mask;
    }
  }
}

/** Where a value may stand beside the literal. */
const places: Readonly<Record<string, readonly number[]>> = {
  "==": [0],
  "!=": [-1, 1],
  "<": [-1],
  "<=": [-1, 0],
  ">": [1],
  ">=": [0, 1],
};

/** Compares integers of up to 32 bits as numbers; null for all others. */
function fastPlaces(array: CanonicalArray, literal: Literal): ((row: number) => -1 | 0 | 1) | null {
  if (array.kind !== "primitive" || literal.order !== "number") return null;
  const { values } = array;
  if (values instanceof BigInt64Array || values instanceof BigUint64Array) return null;
  const wanted = Number(literal.value); // rounded only beyond what 32 bits hold
  const equal = literal.isExact ? 0 : -1;
  return (row) => {
    const value = values[row] ?? 0;
    return value < wanted ? -1 : value > wanted ? 1 : equal;
  };
}
