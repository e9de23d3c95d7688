/**
 * Validity stored as an array of booleans.
 *
 * @module
 */
import { allSet, bitmapFrom } from "../bits.ts";
import type { CanonicalArray } from "../canonical.ts";
import type { Allocate, Bytes } from "../wire/source.ts";

/** One bit per element, or null if all are valid. */
export function validityOf(array: CanonicalArray | null, allocate: Allocate): Bytes | null {
  if (array === null) return null;
  if (array.kind !== "bool") throw new TypeError(`Expected truth values, got ${array.kind}`);
  const { bits, offset, length } = array;
  return allSet(bits, offset, length) ? null : bitmapFrom(bits, offset, length, allocate);
}
