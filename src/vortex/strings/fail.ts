/**
 * How a decoder of bytes says that they are wrong: it knows of no nodes, so whoever calls it says where the bytes are.
 *
 * @module
 */

/** Throws the error of the node whose bytes are decoded, with this text. */
export type Fail = (problem: string) => never;
