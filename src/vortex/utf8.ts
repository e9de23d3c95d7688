/**
 * UTF-8 validation: every decoded string is checked once.
 *
 * @module
 */
import { nodeBuiltin } from "../ffi/mod.ts";

/** Whether bytes are valid UTF-8. */
export function isUtf8(bytes: Uint8Array): boolean {
  return bytes.length === 0 || nodeBuiltin("node:buffer").isUtf8(bytes);
}

/** Whether bytes are ASCII: then so is every part, which is text. Takes a tenth of the time of checks by part. */
export function isAscii(bytes: Uint8Array): boolean {
  return bytes.length === 0 || nodeBuiltin("node:buffer").isAscii(bytes);
}

/** Whether a byte continues a character that an earlier byte began. */
function isInside(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}

/** Texts in one contiguous run of bytes. All of it is checked on first use, which is faster than checking each text. */
export class TextBytes {
  readonly #bytes: Uint8Array;
  #isText: boolean | null = null;

  /** @param bytes may hold more than the texts; the rest may be anything */
  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  // law vortex/TextBytes.holds: vortex/core/contradictions
  /** Whether the bytes from `start` to before `end` are UTF-8. */
  holds(start: number, end: number): boolean {
    if (start === end) return true;
    this.#isText ??= isUtf8(this.#bytes);
    if (!this.#isText) return isUtf8(this.#bytes.subarray(start, end));
    return !isInside(this.#bytes[start]) && !isInside(this.#bytes[end]);
  }
}
