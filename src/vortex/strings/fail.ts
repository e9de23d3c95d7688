/**
 * How a decoder of bytes says that they are wrong: it knows of no nodes, so whoever calls it says where the bytes are.
 *
 * @module
 */

/** Throws the error of the node whose bytes are decoded, with this text. */
export type Fail = (problem: string) => never;

/** Gives memory of so many bytes, all zero, at an address that 8 divides; throws if a limit forbids it. */
export type Allocate = (bytes: number) => Uint8Array<ArrayBuffer>;
