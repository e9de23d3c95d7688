/**
 * The encodings that this package knows: each folder of the room contributes a list.
 *
 * @module
 */
import { compressedEncodings } from "./compressed/compressed_encodings.ts";
import type { VortexEncoding } from "./encoding.ts";
import { canonicalEncodings } from "./encodings/canonical_encodings.ts";
import { numericEncodings } from "./numeric/numeric_encodings.ts";
import { stringEncodings } from "./strings/string_encodings.ts";

/** All encodings of this package. */
export function defaultEncodings(): readonly VortexEncoding[] {
  return [...canonicalEncodings, ...numericEncodings, ...stringEncodings, ...compressedEncodings];
}
