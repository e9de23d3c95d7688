/**
 * The byte order of native memory.
 *
 * @module
 */

/** The byte order of both architectures, in DataView's terms. */
export const littleEndian = true;
