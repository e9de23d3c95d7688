/**
 * Arrays with other nulls, or as their dtype has it.
 *
 * @module
 */
import type { Allocate } from "../allocator.ts";
import { bothValid } from "../bits.ts";
import type { CanonicalArray } from "../canonical.ts";
import type { VortexDType } from "../dtype.ts";
import type { Bytes } from "../wire/source.ts";
import { flatten } from "./flatten.ts";

/** The same elements under a dtype that differs in nothing but where it has nulls, or is a map's beside a list's. */
export function retyped(array: CanonicalArray, dtype: VortexDType): CanonicalArray {
  if (array.dtype === dtype) return array;
  const same = { ...array, dtype } as CanonicalArray; // the kind is the same, which the caller has seen to
  return same.kind === "extension" && dtype.kind === "extension"
    ? { ...same, storage: retyped(same.storage, dtype.storage) }
    : same;
}

/**
 * The same elements, of which only those can be valid that a bitmap has.
 *
 * @param dtype the result's: nullable
 * @param valid null: all
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
