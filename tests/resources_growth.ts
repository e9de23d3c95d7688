/**
 * What `resources_child.ts` prints.
 *
 * @module
 */

/** Growth per cycle in each of several windows, least first. */
export interface Growth {
  /** Bytes that the C allocator has given out. */
  readonly native: readonly number[];
  /** Bytes that JavaScript's values take. */
  readonly script: readonly number[];
  /** Bytes of resident memory. */
  readonly resident: readonly number[];
  /** Open file descriptors. */
  readonly descriptors: readonly number[];
}
