/**
 * Disjoint address ranges, each with a value.
 *
 * @module
 */

interface Entry<T> {
  readonly start: bigint;
  readonly end: bigint;
  readonly value: T;
}

/** Values by address range: lookup of an address takes logarithmic time. */
export class IntervalMap<T> {
  readonly #ranges: Entry<T>[] = [];

  /** All values, by ascending address. */
  *values(): Generator<T> {
    for (const { value } of this.#ranges) yield value;
  }

  /** Adds a range that overlaps none of the others. */
  add(start: bigint, bytes: number, value: T): void {
    this.#ranges.splice(this.#after(start), 0, { start, end: start + BigInt(bytes), value });
  }

  /** Removes the range that begins at `start`, if there is one. */
  remove(start: bigint): void {
    const at = this.#after(start) - 1;
    if (this.#ranges[at]?.start === start) this.#ranges.splice(at, 1);
  }

  /** The value whose range holds the address. */
  find(address: bigint): T | undefined {
    const range = this.#ranges[this.#after(address) - 1];
    return range !== undefined && address < range.end ? range.value : undefined;
  }

  // law sim/IntervalMap.overlaps: sim/memory
  /** Whether a range overlaps one of those in the map. */
  overlaps(start: bigint, bytes: number): boolean {
    const before = this.#ranges[this.#after(start) - 1];
    const next = this.#ranges[this.#after(start)];
    return (before !== undefined && start < before.end) || (next !== undefined && next.start < start + BigInt(bytes));
  }

  /** Index of the first range that begins after the address. */
  #after(address: bigint): number {
    let low = 0;
    let high = this.#ranges.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const range = this.#ranges[middle];
      if (range !== undefined && range.start <= address) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
