/**
 * Non-overlapping ranges of addresses, found by address in logarithmic time.
 *
 * Addresses are numbers here: those of user space are below 2^53, and comparing bigints would cost most of a call's
 * budget.
 *
 * @module
 */

/** A range of addresses. */
export interface Interval {
  readonly start: number;
  /** The address after its last byte. */
  readonly end: number;
}

/** Ranges in ascending order. */
export class IntervalSet<T extends Interval> {
  readonly #list: T[] = [];

  /** The number of ranges. */
  get count(): number {
    return this.#list.length;
  }

  /** The ranges in ascending order. Must not change while it is iterated. */
  get all(): readonly T[] {
    return this.#list;
  }

  /** Index of the first range that ends after an address: the one that contains it, if any does. */
  indexAt(address: number): number {
    const list = this.#list;
    let low = 0;
    let high = list.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const one = list[middle];
      if (one !== undefined && one.end <= address) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The range at an index. */
  at(index: number): T | undefined {
    return this.#list[index];
  }

  /** The range that contains an address. */
  find(address: number): T | undefined {
    const one = this.#list[this.indexAt(address)];
    return one !== undefined && one.start <= address ? one : undefined;
  }

  /** Adds a range that overlaps none of the others. */
  add(item: T): void {
    const last = this.#list.at(-1);
    if (last === undefined || last.end <= item.start) this.#list.push(item);
    else this.#list.splice(this.indexAt(item.start), 0, item);
  }

  /** Replaces `count` ranges from an index on by others in the same place. */
  replace(index: number, count: number, ...items: readonly T[]): void {
    this.#list.splice(index, count, ...items);
  }

  /** Removes a range. */
  remove(item: T): void {
    const at = this.indexAt(item.start);
    if (this.#list[at] === item) this.#list.splice(at, 1);
  }

  /** Removes every range that overlaps this one. */
  removeOverlapping(start: number, end: number): void {
    const at = this.indexAt(start);
    let count = 0;
    for (let one = this.#list[at]; one !== undefined && one.start < end; one = this.#list[at + count]) count++;
    if (count > 0) this.#list.splice(at, count);
  }

  /** Keeps only the ranges that pass. */
  retain(keep: (item: T) => boolean): void {
    const kept = this.#list.filter(keep);
    this.#list.length = 0;
    for (const one of kept) this.#list.push(one);
  }
}
