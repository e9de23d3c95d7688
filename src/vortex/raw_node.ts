/**
 * Nodes as they are read, before anybody knows what they mean: from a file, a message or a tuple.
 *
 * @module
 */
import type { MemoryBuffer } from "../memory/mod.ts";
import type { VortexDType } from "./dtype.ts";
import type { Bytes } from "./wire/source.ts";

/** Memory that somebody has handed over, of the host or of a device. */
export interface HandedBuffer {
  /** Bytes. */
  readonly size: number;
  /** The memory. */
  readonly memory: MemoryBuffer;
  /** Its bytes on the host: what a device has is copied at first need, in order. */
  hostBytes(): Bytes;
}

/** A buffer of a node. Bytes may lie at any address. */
export type RawBuffer = Bytes | HandedBuffer;

/** A node of which nothing was checked but that it can be read. */
export interface RawNode {
  /** The encoding, by its serialized id. */
  readonly id: string;
  /** What the encoding says of itself. */
  readonly metadata: Bytes;
  /** The buffers, or only how many there are, where a tree is described and not handed over. */
  readonly buffers: readonly RawBuffer[] | number;
  readonly children: readonly RawNode[];
  /** What the node says of itself; null in files and messages, where it follows from the node above. */
  readonly outer: { readonly dtype: VortexDType; readonly length: number } | null;
}

/** The bytes of a buffer on the host. */
export function hostBytesOf(buffer: RawBuffer): Bytes {
  return buffer instanceof Uint8Array ? buffer : buffer.hostBytes();
}

/** Bytes of a buffer. */
export function sizeOf(buffer: RawBuffer): number {
  return buffer instanceof Uint8Array ? buffer.length : buffer.size;
}
