/**
 * How a stream of bytes with an end is laid out in UCX's, which has none: chunks, each behind its length, a number of 8
 * bytes, little-endian. The same number is the end, or says that the writer has given up.
 *
 * @module
 */

/** Bytes before a chunk. */
export const headBytes = 8;

/** What stands there when the writer has closed its stream. */
export const endMark = 0n;

/** What stands there when the writer has aborted its stream. */
export const abortMark = 2n ** 64n - 1n;

/**
 * Bytes that a writer may be ahead of what the reader's program has taken, and the longest chunk. UCX takes in whatever
 * comes: without it a slow reader would need memory for everything. Both sides have to know it.
 */
export const streamWindow: number = 1 << 20;

/** Bytes that may wait in a WritableStream before it says that it is full. */
export const queuedBytes: number = 1 << 16;
