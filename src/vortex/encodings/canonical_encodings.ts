/**
 * The encodings of this folder.
 *
 * @module
 */
import type { VortexEncoding } from "../encoding.ts";
import { chunkedEncoding, constantEncoding, dictEncoding, maskedEncoding, sequenceEncoding } from "./composed.ts";
import { decimalEncoding } from "./decimal.ts";
import {
  extensionEncoding,
  fixedSizeListEncoding,
  listEncoding,
  listViewEncoding,
  mapEncoding,
  structEncoding,
} from "./nested.ts";
import { boolEncoding, byteBoolEncoding, nullEncoding, primitiveEncoding } from "./null_bool_primitive.ts";
import { varBinEncoding, varBinViewEncoding } from "./text.ts";

/** Encodings close to Arrow's own layouts, and encodings composed of others. */
export const canonicalEncodings: readonly VortexEncoding[] = [
  nullEncoding,
  boolEncoding,
  byteBoolEncoding,
  primitiveEncoding,
  decimalEncoding,
  varBinEncoding,
  varBinViewEncoding,
  structEncoding,
  listEncoding,
  listViewEncoding,
  fixedSizeListEncoding,
  mapEncoding,
  extensionEncoding,
  chunkedEncoding,
  constantEncoding,
  sequenceEncoding,
  dictEncoding,
  maskedEncoding,
] as readonly VortexEncoding[];
