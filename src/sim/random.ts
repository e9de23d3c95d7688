/**
 * Reproducible random choices: the same seed gives the same ones on every machine.
 *
 * @module
 */

/** A sequence of numbers determined by a seed (the generator is xorshift32, seeded through a multiplicative hash). */
export class Random {
  #state: number;

  /** @param seed any integer */
  constructor(seed: number) {
    // Neighbouring seeds must not begin alike, and xorshift must not begin at 0.
    this.#state = Math.imul((seed | 0) ^ 0x9e37_79b9, 0x85eb_ca6b) | 1;
    for (let i = 0; i < 4; i++) this.next();
  }

  /** The next number: at least 0, less than 1. */
  next(): number {
    let x = this.#state;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.#state = x;
    return (x >>> 0) / 2 ** 32;
  }

  /** An integer: at least 0, less than `count`. */
  below(count: number): number {
    return Math.floor(this.next() * count);
  }

  /** True with this probability. */
  chance(probability: number): boolean {
    return this.next() < probability;
  }
}
