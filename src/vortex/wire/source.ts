/**
 * Bytes from any source, with the context that errors about them need.
 *
 * @module
 */
import { VortexError } from "../error.ts";

/** Bytes over all or part of an ArrayBuffer, which is never shared or resizable. */
export type Bytes = Uint8Array<ArrayBuffer>;

/**
 * Allocates zeroed bytes at the start of a separate ArrayBuffer whose size is a multiple of 8.
 *
 * @throws {VortexError} if they exceed what is left of the call's limit
 */
export type Allocate = (bytes: number) => Bytes;

/** No bytes. */
export const noBytes: Bytes = new Uint8Array(0);

/** The source of bytes, and how many tables in them may still be visited. */
export class WireSource {
  /** The bytes. */
  readonly bytes: Bytes;
  /** Reads numbers from the bytes; all are little-endian. */
  readonly view: DataView<ArrayBuffer>;
  /** The node or part of a file that the bytes belong to, for errors. */
  readonly path: string;
  /** What the bytes are: `dtype`. */
  readonly what: string;
  #left: number;

  /** @param visits how many tables may be visited: offsets can lead to the same table repeatedly */
  constructor(bytes: Bytes, path: string, what: string, visits: number) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.path = path;
    this.what = what;
    this.#left = visits;
  }

  /** Counts a visit to a table. @throws {VortexError} if there were too many */
  visit(): void {
    if (this.#left-- <= 0) this.fail("it has more tables than the limit allows");
  }

  /** @throws {VortexError} always */
  fail(why: string): never {
    throw new VortexError(this.path, `Cannot read the ${this.what}: ${why}`);
  }
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Bytes as text, or null if they are not UTF-8. */
export function textOf(bytes: Uint8Array): string | null {
  try {
    return decoder.decode(bytes);
  } catch {
    return null;
  }
}

/** The bytes under a view of a buffer, not copied. */
export function bytesOf({ buffer, byteOffset, byteLength }: ArrayBufferView<ArrayBuffer>): Bytes {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

// law vortex/checkThere: public/untyped
/** Throws a TypeError if memory was transferred: the engine's own errors do not say whose it was, or there is none. */
export function checkThere(memory: ArrayBufferLike): void {
  if (!(memory instanceof ArrayBuffer) || !memory.detached) return;
  throw new TypeError(
    "Cannot read Vortex data in an ArrayBuffer that was transferred: it is gone. Transfer a copy, bytes.slice()",
  );
}

/** A copy of bytes whose memory may be shared or resized; other bytes uncopied. @throws {TypeError} if they are gone */
export function ownBytes(bytes: Uint8Array): Bytes {
  const { buffer } = bytes;
  checkThere(buffer);
  if (buffer instanceof ArrayBuffer && !buffer.resizable) return new Uint8Array(buffer, bytes.byteOffset, bytes.length);
  return new Uint8Array(bytes);
}
