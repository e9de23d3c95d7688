/**
 * Packs numbers of any width contiguously, lowest bit first: bit by bit, so that it is easy to trust.
 *
 * @module
 */

/** Packs numbers. */
export class BitWriter {
  readonly #bits: number[] = [];

  /** Adds the lowest bits of a number. */
  write(value: bigint | number, bits: number): void {
    const number = BigInt(value);
    for (let i = 0; i < bits; i++) this.#bits.push(Number(number >> BigInt(i) & 1n));
  }

  /** Pads the last byte with zeros. */
  align(): void {
    while (this.#bits.length % 8 !== 0) this.#bits.push(0);
  }

  /** All bytes so far. */
  bytes(): Uint8Array<ArrayBuffer> {
    this.align();
    return Uint8Array.from(
      { length: this.#bits.length / 8 },
      (_, i) => this.#bits.slice(i * 8, i * 8 + 8).reduce((byte, bit, place) => byte | bit << place, 0),
    );
  }
}
