/**
 * The byte order of native memory.
 *
 * @module
 */

/**
 * The byte order of both architectures, in DataView's terms. Files on hot paths have it as a constant of their own:
 * Deno folds that, and not one that is imported, with which each access takes 1 to 2 ns more.
 */
export const littleEndian = true;
