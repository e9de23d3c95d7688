/**
 * Numbers of any width, packed without gaps, the lowest bit of the first byte first.
 *
 * @module
 */
import type { Fail } from "../../strings/fail.ts";

/**
 * Zeros behind the packed bytes. A batch is read without looking where the bytes end, and checked afterwards: 256
 * symbols of 14 bits and 256 offsets of 64 are less than this.
 */
const PADDING = 4096;

/** Reads from a copy of some bytes, with zeros behind it. */
export class BitReader {
  /** The bytes, and `PADDING` zeros. */
  readonly view: DataView<ArrayBuffer>;
  /** The byte with the next bit. */
  byte = 0;
  /** The next bit in that byte, 0 to 7. */
  bit = 0;
  readonly #size: number;
  readonly #what: string;
  readonly #fail: Fail;

  /** @param what whose bytes they are, for errors */
  constructor(bytes: Uint8Array, what: string, fail: Fail) {
    const padded = new Uint8Array(bytes.length + PADDING);
    padded.set(bytes);
    this.view = new DataView(padded.buffer);
    this.#size = bytes.length;
    this.#what = what;
    this.#fail = fail;
  }

  /** How many bits are left. */
  get left(): number {
    return (this.#size - this.byte) * 8 - this.bit;
  }

  /** A number of at most 32 bits. */
  read(bits: number): number {
    if (bits > this.left) this.#tooShort();
    const low = this.view.getUint32(this.byte, true);
    const high = this.view.getUint32(this.byte + 4, true);
    const { bit } = this;
    this.advance(bits);
    const word = bit === 0 ? low : low >>> bit | high << (32 - bit);
    return bits === 0 ? 0 : (word << (32 - bits)) >>> (32 - bits);
  }

  /** A number of 16, 32 or 64 bits as two words, as the last two elements of an array would be. */
  readWords(bits: number): readonly [low: number, high: number] {
    const low = this.read(Math.min(bits, 32));
    return [low, bits > 32 ? this.read(bits - 32) : 0];
  }

  /** Goes on by bits that were read from `view`. */
  advance(bits: number): void {
    const to = this.bit + bits;
    this.byte += to >>> 3;
    this.bit = to & 7;
  }

  // law vortex/compressed/BitReader: vortex/compressed/pco, vortex/compressed/malformed
  /** Checks that all that was read was there. */
  check(): void {
    if (this.left < 0) this.#tooShort();
  }

  /** Goes to the next byte's first bit; what is skipped is zero. */
  align(): void {
    if (this.bit === 0) return;
    if (this.read(8 - this.bit) !== 0) {
      this.#fail(`${this.#what} has bits set between two parts, where zeros are expected`);
    }
  }

  #tooShort(): never {
    return this.#fail(`${this.#what} has ${this.#size} bytes, which end in the middle of what they hold`);
  }
}
