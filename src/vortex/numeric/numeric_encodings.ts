/**
 * The encodings of this folder.
 *
 * @module
 */
import type { VortexEncoding } from "../encoding.ts";
import { alpEncoding, alpRdEncoding } from "./floats.ts";
import { bitPackedEncoding, bitPackedV2Encoding, forEncoding, forV2Encoding, zigzagEncoding } from "./integers.ts";
import { dateTimePartsEncoding, decimalPartsEncoding, decimalPartsV2Encoding } from "./parts.ts";
import { deltaEncoding, rleEncoding, runEndEncoding } from "./runs.ts";
import { patchedEncoding, sparseEncoding } from "./sparse.ts";

/** Encodings that shrink numbers, and encodings of arrays of any dtype that rely on numbers. */
export const numericEncodings: readonly VortexEncoding[] = [
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
];
