/**
 * How a byte stream with an end is framed in UCX's stream, which has none: chunks, each preceded by its length, a
 * number of 8 bytes, little-endian. Special values of that number mark the end, or that the writer has aborted.
 *
 * @module
 */

/** Size of the length before a chunk, in bytes. */
export const headBytes = 8;

/** The length that marks a stream that its writer has closed. */
export const endMark = 0n;

/** The length that marks a stream that its writer has aborted. */
export const abortMark = 2n ** 64n - 1n;

/**
 * How many bytes a writer may be ahead of what the reader's program has taken, and the longest chunk. UCX buffers
 * whatever arrives: without this limit a slow reader would need memory for everything. Both sides must agree on it.
 */
export const streamWindow: number = 1 << 20;

/** Bytes that may wait in a WritableStream before it reports that it is full. */
export const queuedBytes: number = 1 << 16;
