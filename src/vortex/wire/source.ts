/**
 * Bytes from somewhere, with what an error about them needs to say.
 *
 * @module
 */
import { VortexError } from "../error.ts";

/** Bytes that own their ArrayBuffer or lie in one, which is never shared or resizable. */
export type Bytes = Uint8Array<ArrayBuffer>;

/** No bytes. */
export const noBytes: Bytes = new Uint8Array(0);

/** Where bytes come from, and how much may still be read of what lies in them. */
export class WireSource {
  /** The bytes. */
  readonly bytes: Bytes;
  /** Reads numbers of them; all are little endian. */
  readonly view: DataView<ArrayBuffer>;
  /** The node or part of a file, for errors. */
  readonly path: string;
  /** What the bytes are: `dtype`. */
  readonly what: string;
  #left: number;

  /** @param visits tables that may be visited: offsets can lead to one table again and again */
  constructor(bytes: Bytes, path: string, what: string, visits: number) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.path = path;
    this.what = what;
    this.#left = visits;
  }

  /** Counts a table. @throws {VortexError} if there were too many */
  visit(): void {
    if (this.#left-- <= 0) this.fail("it has more tables than the limit allows");
  }

  /** @throws {VortexError} always */
  fail(why: string): never {
    throw new VortexError(this.path, `Cannot read the ${this.what}: ${why}`);
  }
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Bytes as text, or null if they are no UTF-8. */
export function textOf(bytes: Uint8Array): string | null {
  try {
    return decoder.decode(bytes);
  } catch {
    return null;
  }
}

/** The bytes of a view of a buffer, not copied. */
export function bytesOf({ buffer, byteOffset, byteLength }: ArrayBufferView<ArrayBuffer>): Bytes {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/** Copies of bytes whose memory may be shared or resized; others as they are. */
export function ownBytes(bytes: Uint8Array): Bytes {
  const { buffer } = bytes;
  if (buffer instanceof ArrayBuffer && !buffer.resizable) return new Uint8Array(buffer, bytes.byteOffset, bytes.length);
  return new Uint8Array(bytes);
}
