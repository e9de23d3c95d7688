/**
 * Arrays with a different dtype or different nulls.
 *
 * @module
 */
import { bothValid } from "../bits.ts";
import type { CanonicalArray } from "../canonical.ts";
import type { VortexDType } from "../dtype.ts";
import type { Allocate, Bytes } from "../wire/source.ts";
import { flatten } from "./flatten.ts";

/** The same elements under a dtype that differs only in nullability, or in being a map instead of a list. */
export function retyped(array: CanonicalArray, dtype: VortexDType): CanonicalArray {
  if (array.dtype === dtype) return array;
  const same = { ...array, dtype } as CanonicalArray; // the caller guarantees the same kind
  return same.kind === "extension" && dtype.kind === "extension"
    ? { ...same, storage: retyped(same.storage, dtype.storage) }
    : same;
}

/**
 * The same elements; those whose bit in a bitmap is clear become null.
 *
 * @param dtype the result's dtype: nullable
 * @param valid null if all are valid
 */
export function masked(
  array: CanonicalArray,
  dtype: VortexDType,
  valid: Bytes | null,
  allocate: Allocate,
): CanonicalArray {
  const plain = retyped(flatten(array, allocate), dtype);
  if (valid === null || plain.kind === "null") return plain;
  const validity = bothValid(plain.validity, valid, plain.length, allocate);
  if (plain.kind !== "extension") return { ...plain, validity };
  return { ...plain, validity, storage: masked(plain.storage, plain.dtype.storage, valid, allocate) };
}
