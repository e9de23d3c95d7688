/**
 * How a decoder of bytes reports invalid data: it knows no nodes, so its caller says where the bytes are.
 *
 * @module
 */

/** Throws the error of the node whose bytes are being decoded, with this text. */
export type Fail = (problem: string) => never;
