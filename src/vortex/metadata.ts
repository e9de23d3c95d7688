/**
 * Arrays as trees of tuples, as a Vortex session in Python describes them.
 *
 * @module
 */
import type { MemoryBuffer } from "../memory/mod.ts";

/**
 * A buffer in a tuple: bytes, this package's memory, or a producer's `VortexBufferExport`, in a Python capsule or by
 * its address.
 */
export type VortexMetadataBuffer = Uint8Array | MemoryBuffer | { readonly descriptor: bigint } | object;

/**
 * An array: its encoding's serialized id, its dtype as a flatbuffer, its length, its encoding's metadata, its buffers
 * or only their number, its children.
 */
export type VortexMetadata = readonly [
  id: string,
  dtype: Uint8Array,
  length: number | bigint,
  metadata: Uint8Array,
  buffers: readonly VortexMetadataBuffer[] | number,
  children: readonly VortexMetadata[],
];
