/**
 * Numbers of any bit width, packed without gaps, starting at the lowest bit of the first byte.
 *
 * @module
 */
import type { Fail } from "../../error.ts";

/**
 * Zero bytes after the packed bytes. A batch is read without bounds checks and checked afterwards: 256 symbols of
 * 14 bits and 256 offsets of 64 bits fit within this padding.
 */
const PADDING = 4096;

/** Reads from a zero-padded copy of the bytes. */
export class BitReader {
  /** The bytes, followed by `PADDING` zeros. */
  readonly view: DataView<ArrayBuffer>;
  /** The byte that holds the next bit. */
  byte = 0;
  /** The index of the next bit in that byte, 0 to 7. */
  bit = 0;
  readonly #size: number;
  readonly #what: string;
  readonly #fail: Fail;

  /** @param what names the bytes in errors */
  constructor(bytes: Uint8Array, what: string, fail: Fail) {
    const padded = new Uint8Array(bytes.length + PADDING);
    padded.set(bytes);
    this.view = new DataView(padded.buffer);
    this.#size = bytes.length;
    this.#what = what;
    this.#fail = fail;
  }

  /** The number of bits left. */
  get left(): number {
    return (this.#size - this.byte) * 8 - this.bit;
  }

  /** Reads a number of at most 32 bits. */
  read(bits: number): number {
    if (bits > this.left) this.#tooShort();
    const low = this.view.getUint32(this.byte, true);
    const high = this.view.getUint32(this.byte + 4, true);
    const { bit } = this;
    this.advance(bits);
    const word = bit === 0 ? low : low >>> bit | high << (32 - bit);
    return bits === 0 ? 0 : (word << (32 - bits)) >>> (32 - bits);
  }

  /** Reads a number of 16, 32 or 64 bits as two words, the lower one first. */
  readWords(bits: number): readonly [low: number, high: number] {
    const low = this.read(Math.min(bits, 32));
    return [low, bits > 32 ? this.read(bits - 32) : 0];
  }

  /** Skips bits that were read directly from `view`. */
  advance(bits: number): void {
    const to = this.bit + bits;
    this.byte += to >>> 3;
    this.bit = to & 7;
  }

  // law vortex/compressed/BitReader: vortex/compressed/pco, vortex/compressed/malformed
  /** Fails if more was read than there is. */
  check(): void {
    if (this.left < 0) this.#tooShort();
  }

  /** Advances to the next byte boundary; the skipped bits must be zero. */
  align(): void {
    if (this.bit === 0) return;
    if (this.read(8 - this.bit) !== 0) {
      this.#fail(`${this.#what} has bits set between two parts, where zeros are expected`);
    }
  }

  #tooShort(): never {
    return this.#fail(`${this.#what} is truncated after ${this.#size} bytes`);
  }
}
