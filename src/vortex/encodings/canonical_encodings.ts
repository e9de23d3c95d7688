/**
 * The encodings of this shelf.
 *
 * @module
 */
import type { VortexEncoding } from "../encoding.ts";
import { boolEncoding, byteBoolEncoding, nullEncoding, primitiveEncoding } from "./null_bool_primitive.ts";

/** Encodings that are near to Arrow's own forms, and those that put others together. */
export const canonicalEncodings: readonly VortexEncoding[] = [
  nullEncoding,
  boolEncoding,
  byteBoolEncoding,
  primitiveEncoding,
];
