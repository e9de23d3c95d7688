/**
 * Nodes as read from a file, a message or a tuple, before they are interpreted.
 *
 * @module
 */
import type { MemoryBuffer } from "../memory/mod.ts";
import type { VortexDType } from "./dtype.ts";
import { type Bytes, checkThere } from "./wire/source.ts";

/** Handed-over memory, on the host or on a device. */
export interface HandedBuffer {
  /** Size in bytes. */
  readonly size: number;
  /** The memory. */
  readonly memory: MemoryBuffer;
  /** Its bytes on the host: device memory is copied on first use, in stream order. */
  hostBytes(): Bytes;
}

/** A buffer of a node. Bytes may be at any address. */
export type RawBuffer = Bytes | HandedBuffer;

/** A node that is readable but otherwise unchecked. */
export interface RawNode {
  /** The encoding's serialized id. */
  readonly id: string;
  /** The encoding's metadata. */
  readonly metadata: Bytes;
  /** The buffers, or only their number if a tree is described and not handed over. */
  readonly buffers: readonly RawBuffer[] | number;
  readonly children: readonly RawNode[];
  /** The node's own dtype and length; null in files and messages, where they follow from the parent. */
  readonly outer: { readonly dtype: VortexDType; readonly length: number } | null;
}

// law vortex/hostBytesOf: public/untyped
/** The bytes of a buffer on the host. @throws {TypeError} if they were transferred */
export function hostBytesOf(buffer: RawBuffer): Bytes {
  if (!(buffer instanceof Uint8Array)) return buffer.hostBytes();
  checkThere(buffer.buffer);
  return buffer;
}

/** Size of a buffer in bytes. */
export function sizeOf(buffer: RawBuffer): number {
  return buffer instanceof Uint8Array ? buffer.length : buffer.size;
}
