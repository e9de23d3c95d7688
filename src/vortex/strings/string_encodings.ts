/**
 * The encodings of this folder.
 *
 * @module
 */
import type { VortexEncoding } from "../encoding.ts";
import { fsstEncoding, onPairEncoding } from "./encodings.ts";

/** Encodings of strings that use tables of codes. */
export const stringEncodings: readonly VortexEncoding[] = [fsstEncoding, onPairEncoding] as readonly VortexEncoding[];
