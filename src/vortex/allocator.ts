/**
 * Where new memory comes from.
 *
 * @module
 */
import type { Bytes } from "./wire/source.ts";

/**
 * Allocates zeroed bytes at the start of a separate ArrayBuffer whose size is a multiple of 8.
 *
 * @throws {VortexError} if they exceed what is left of the call's limit
 */
export type Allocate = (bytes: number) => Bytes;
