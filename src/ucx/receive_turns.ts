/**
 * Serializes receives of several parts: two that could match the same message never run at once, because a part of one
 * would be taken for the header of the other.
 *
 * @module
 */
import { everyBit, type Match } from "./tag.ts";

/** A receive that has its turn, or waits for it. */
interface Turn extends Match {
  /** Settles when it and all turns before it are over. */
  readonly over: Promise<void>;
}

/** The turns of a worker's receives. */
export class ReceiveTurns {
  /** For each tag that is compared in all bits, the last receive. */
  readonly #exact = new Map<bigint, Turn>();
  /** For each other tag and mask, the last receive. */
  readonly #masked = new Map<string, Turn>();

  // law ucx/ReceiveTurns.take: ucx/message_parts, ucx/limits
  /**
   * Takes the next turn.
   *
   * @returns what it has to wait for, if anything, and a function that passes the turn on when `after` has settled
   */
  take(
    { tag, mask }: Match,
  ): { before: Promise<unknown> | undefined; pass(after: Promise<unknown> | undefined): void } {
    const isExact = mask === everyBit;
    const { promise: over, resolve } = Promise.withResolvers<void>();
    const turn: Turn = { tag, mask, over };
    const key = isExact ? "" : `${tag & mask} ${mask}`;
    const same = isExact ? this.#exact.get(tag) : undefined;
    const rivals = [
      ...(same === undefined ? [] : [same]),
      ...(isExact ? [] : this.#exact.values()),
      ...this.#masked.values(),
    ].filter((other) => ((other.tag ^ tag) & other.mask & mask) === 0n);
    if (isExact) this.#exact.set(tag, turn);
    else this.#masked.set(key, turn);
    const before = rivals.length === 0 ? undefined : Promise.all(rivals.map((other) => other.over));
    const pass = (after: Promise<unknown> | undefined) => {
      void Promise.allSettled([before, after]).then(() => {
        if (this.#exact.get(tag) === turn) this.#exact.delete(tag);
        if (this.#masked.get(key) === turn) this.#masked.delete(key);
        resolve();
      });
    };
    return { before, pass };
  }
}
