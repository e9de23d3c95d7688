/**
 * The encodings of this folder.
 *
 * @module
 */
import type { VortexEncoding } from "../encoding.ts";
import { fsstEncoding, onPairEncoding } from "./encodings.ts";

/** Encodings of strings by tables of what codes stand for. */
export const stringEncodings: readonly VortexEncoding[] = [fsstEncoding, onPairEncoding] as readonly VortexEncoding[];
