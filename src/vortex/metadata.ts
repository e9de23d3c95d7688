/**
 * Arrays as trees of tuples, which a session of Vortex in Python describes its arrays by.
 *
 * @module
 */
import type { MemoryBuffer } from "../memory/mod.ts";

/**
 * A buffer of a tuple: bytes, memory of this package, or a `VortexBufferExport` of a producer, in a capsule of Python or
 * by its address.
 */
export type VortexMetadataBuffer = Uint8Array | MemoryBuffer | { readonly descriptor: bigint } | object;

/**
 * An array: its encoding's serialized id, its dtype as a flatbuffer, its length, what its encoding says of itself, its
 * buffers or only how many there are, its children.
 */
export type VortexMetadata = readonly [
  id: string,
  dtype: Uint8Array,
  length: number | bigint,
  metadata: Uint8Array,
  buffers: readonly VortexMetadataBuffer[] | number,
  children: readonly VortexMetadata[],
];
