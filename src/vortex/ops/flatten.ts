/**
 * Expands dictionaries and runs to plain elements.
 *
 * @module
 */
import type { Allocate } from "../wire/source.ts";
import type { CanonicalArray, PrimitiveArray } from "../canonical.ts";
import { allNull } from "./fill.ts";
import { fillRuns, indexArray, type Indices, takeOf } from "./take.ts";

// law vortex/flatten: vortex/core/ops
/** Expands an array to plain elements. Arrays that are already plain are returned as is, nested arrays included. */
export function flatten(array: CanonicalArray, allocate: Allocate): CanonicalArray {
  if (array.kind === "dictionary") {
    if (array.values.length === 0) return allNull(array.dtype, array.length, allocate); // no code can be valid
    const taken = takeOf(array.values, indicesOf(array.codes), array.validity, allocate);
    return flatten({ ...taken, dtype: array.dtype } as CanonicalArray, allocate); // of the same kind
  }
  if (array.kind === "runEnd") {
    const runs = indexArray(allocate, array.length, array.values.length);
    fillRuns(array.ends, runs);
    return flatten(takeOf(array.values, runs, null, allocate), allocate);
  }
  return array;
}

/** Codes as indices; they are never u64, as decoding narrows them. */
function indicesOf({ values }: PrimitiveArray): Indices {
  if (values instanceof Uint8Array || values instanceof Uint16Array || values instanceof Uint32Array) return values;
  throw new TypeError(`Expected unsigned codes of up to 32 bits, got ${values.constructor.name}`);
}
