/**
 * Choices drawn from one number: so that a program is a list of numbers, which fast-check can shrink.
 *
 * @module
 */

/** The digits of a number. */
export class Dice {
  #left: number;

  constructor(number: number) {
    this.#left = number;
  }

  /** A digit: at least 0, less than `count`. */
  below(count: number): number {
    const digit = this.#left % count;
    this.#left = Math.floor(this.#left / count);
    return digit;
  }

  /** One of a list; undefined if it is empty. */
  of<T>(from: readonly T[]): T | undefined {
    return from.length === 0 ? undefined : from[this.below(from.length)];
  }
}
