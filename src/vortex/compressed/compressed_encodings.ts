/**
 * The encodings of this folder.
 *
 * @module
 */
import type { VortexEncoding } from "../encoding.ts";
import { pcoEncoding, zstdEncoding } from "./encodings.ts";

/** Encodings that use general-purpose compressors. */
export const compressedEncodings: readonly VortexEncoding[] = [zstdEncoding, pcoEncoding] as readonly VortexEncoding[];
