/**
 * Ranges of addresses that may overlap, found by the bytes that they overlap. They are kept by their length, to a power
 * of two, and those of one length in the order of their starts: so each list is searched from the first one that can
 * reach the bytes.
 *
 * @module
 */
import type { Interval } from "./interval_set.ts";

/** Ranges, which may overlap. */
export class RangeIndex<T extends Interval> {
  /** By a length that all in the list are below, and at least half as long as. */
  readonly #lists = new Map<number, T[]>();

  /** @param items the first ones, in any order: they are sorted, so that each is added at an end */
  constructor(items: readonly T[] = []) {
    for (const item of items.toSorted((one, other) => one.start - other.start)) this.add(item);
  }

  /** All of them, in no order. */
  get all(): T[] {
    return [...this.#lists.values()].flat();
  }

  /** Adds a range. */
  add(item: T): void {
    const below = 2 ** (Math.floor(Math.log2(item.end - item.start)) + 1);
    const list = this.#lists.getOrInsertComputed(below, () => []);
    const last = list.at(-1);
    if (last === undefined || last.start <= item.start) list.push(item);
    else list.splice(firstAfter(list, item.start), 0, item);
  }

  // law checker/RangeIndex.overlapping: checker/range_index
  /** Those that have a byte in common with a range, in no order. */
  overlapping(start: number, end: number): T[] {
    const found: T[] = [];
    for (const [below, list] of this.#lists) {
      for (let i = firstAfter(list, start - below); i < list.length; i++) {
        const one = list[i];
        if (one === undefined || one.start >= end) break;
        if (one.end > start) found.push(one);
      }
    }
    return found;
  }
}

/** Index of the first range that starts after an address, in a list in the order of starts. */
function firstAfter(list: readonly Interval[], address: number): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const one = list[middle];
    if (one !== undefined && one.start <= address) low = middle + 1;
    else high = middle;
  }
  return low;
}
