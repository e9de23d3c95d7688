/**
 * Where new memory comes from.
 *
 * @module
 */
import type { Bytes } from "./wire/source.ts";

/**
 * Makes bytes, all zero, at the start of an ArrayBuffer of their own, whose size is a multiple of 8.
 *
 * @throws {VortexError} if they are more than the limit of the call leaves
 */
export type Allocate = (bytes: number) => Bytes;
