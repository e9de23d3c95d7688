/**
 * The encodings that this package knows.
 *
 * @module
 */
import { pcoEncoding, zstdEncoding } from "./compressed/encodings.ts";
import type { VortexEncoding } from "./encoding.ts";
import {
  chunkedEncoding,
  constantEncoding,
  dictEncoding,
  maskedEncoding,
  sequenceEncoding,
} from "./encodings/composed.ts";
import { decimalEncoding } from "./encodings/decimal.ts";
import {
  extensionEncoding,
  fixedSizeListEncoding,
  listEncoding,
  listViewEncoding,
  mapEncoding,
  structEncoding,
} from "./encodings/nested.ts";
import { boolEncoding, byteBoolEncoding, nullEncoding, primitiveEncoding } from "./encodings/null_bool_primitive.ts";
import { varBinEncoding, varBinViewEncoding } from "./encodings/text.ts";
import { alpEncoding } from "./numeric/alp.ts";
import { alpRdEncoding } from "./numeric/alp_rd.ts";
import { dateTimePartsEncoding } from "./numeric/date_time_parts.ts";
import { decimalPartsEncoding, decimalPartsV2Encoding } from "./numeric/decimal_parts.ts";
import { deltaEncoding } from "./numeric/delta.ts";
import {
  bitPackedEncoding,
  bitPackedV2Encoding,
  forEncoding,
  forV2Encoding,
  zigzagEncoding,
} from "./numeric/integers.ts";
import { rleEncoding } from "./numeric/rle.ts";
import { runEndEncoding } from "./numeric/run_end.ts";
import { patchedEncoding, sparseEncoding } from "./numeric/sparse.ts";
import { fsstEncoding, onPairEncoding } from "./strings/encodings.ts";

/** Encodings that shrink numbers, and encodings of arrays of any dtype that rely on numbers. */
export const numericEncodings = [
  forEncoding,
  forV2Encoding,
  zigzagEncoding,
  bitPackedEncoding,
  bitPackedV2Encoding,
  alpEncoding,
  alpRdEncoding,
  runEndEncoding,
  deltaEncoding,
  rleEncoding,
  sparseEncoding,
  patchedEncoding,
  dateTimePartsEncoding,
  decimalPartsEncoding,
  decimalPartsV2Encoding,
] as readonly VortexEncoding[];

/** All encodings: those close to Arrow's own layouts, or composed of others, first. */
export const defaultEncodings = [
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
  ...numericEncodings,
  fsstEncoding,
  onPairEncoding,
  zstdEncoding,
  pcoEncoding,
] as readonly VortexEncoding[];
