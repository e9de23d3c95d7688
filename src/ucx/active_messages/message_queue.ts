/**
 * Items that wait to be taken, and takers that wait for items.
 *
 * @module
 */
import type { TimeLimit } from "../limit.ts";

/** How many places of items that were taken are kept at most. */
const maxTakenPlaces = 1024;

/** A queue between a callback and an asynchronous loop. */
export class MessageQueue<T> {
  /** Items not yet taken, from the index of the first one on: V8 moves all others when it is removed. */
  #here: (T | undefined)[] = [];
  #first = 0;
  readonly #takers: ((next: T | null) => void)[] = [];
  readonly #retain: (() => () => void) | null;
  readonly #turn: (() => Promise<void> | null) | null;
  /** Ends what {@linkcode #retain} began; set while a taker waits. */
  #release: (() => void) | null = null;
  #isOver = false;
  #failure: Error | null = null;

  /**
   * @param retain keeps the process alive while a taker waits, until the function that it returns is called
   * @param turn lets the event loop turn, if it is time to, between two items of a loop
   */
  constructor(retain: (() => () => void) | null = null, turn: (() => Promise<void> | null) | null = null) {
    this.#retain = retain;
    this.#turn = turn;
  }

  /** How many items are not yet taken. */
  get size(): number {
    return this.#here.length - this.#first;
  }

  /** Items not yet taken. */
  get waiting(): readonly T[] {
    return this.#here.slice(this.#first) as T[]; // those that were taken are before
  }

  /** Adds an item. @returns whether it was accepted: nothing is, once the queue has ended */
  push(item: T): boolean {
    return this.#add(item, () => this.#here.push(item));
  }

  // law ucx/MessageQueue.putBack: ucx/message_queue
  /** Makes an item that was taken the next one again. @returns whether it was accepted: not once the queue has ended */
  putBack(item: T): boolean {
    return this.#add(item, () => {
      if (this.#first > 0) this.#here[--this.#first] = item;
      else this.#here.unshift(item);
    });
  }

  /** Gives an item to the first taker, or stores it. */
  #add(item: T, store: () => void): boolean {
    if (this.#isOver) return false;
    const take = this.#takers.shift();
    if (take === undefined) store();
    else take(item);
    this.#releaseIfIdle();
    return true;
  }

  /** The next item; null if there will be no more. If the signal aborts first, the next item goes to the next taker. */
  next(signal?: AbortSignal): Promise<T | null> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    const item = this.#takeFirst();
    if (item !== undefined || this.#isOver) return Promise.resolve(item ?? null);
    const { promise, resolve, reject } = Promise.withResolvers<T | null>();
    const abort = () => {
      const at = this.#takers.indexOf(take);
      if (at >= 0) this.#takers.splice(at, 1);
      this.#releaseIfIdle();
      reject(signal?.reason);
    };
    const take = (next: T | null) => {
      signal?.removeEventListener("abort", abort);
      resolve(next);
    };
    signal?.addEventListener("abort", abort);
    this.#release ??= this.#retain?.() ?? null;
    this.#takers.push(take);
    return promise;
  }

  // law ucx/MessageQueue.takeFirst: ucx/message_queue
  /** Removes the first item. */
  #takeFirst(): T | undefined {
    if (this.size === 0) return undefined;
    const item = this.#here[this.#first];
    this.#here[this.#first++] = undefined;
    if (this.size === 0 || this.#first === maxTakenPlaces) {
      this.#here = this.#here.slice(this.#first);
      this.#first = 0;
    }
    return item;
  }

  // law ucx/MessageQueue.iterate: ucx/message_queue
  /**
   * The items, until there will be no more; then it throws the failure that ended the queue, if any. An item that
   * arrives after `return` was called, even while a `next` is pending, goes to the next taker.
   *
   * @param limit makes the limit of each wait, and the function that clears it
   */
  iterate(limit: () => TimeLimit = noLimit): AsyncIterableIterator<T> {
    const returned = new AbortController();
    const done = { done: true, value: undefined } as const;
    return {
      next: async () => {
        if (returned.signal.aborted) return done;
        const { signal, clear } = limit();
        const stop = signal === undefined ? returned.signal : AbortSignal.any([signal, returned.signal]);
        over: try {
          const isHere = this.size > 0;
          const value = await this.next(stop);
          if (value === null) break over;
          const turn = isHere && this.#turn !== null ? this.#turn() : null;
          if (turn !== null) await turn; // items that are here would never let the event loop turn
          return { done: false, value };
        } catch (error) {
          if (returned.signal.aborted) return done;
          throw error;
        } finally {
          clear();
        }
        returned.abort();
        if (this.#failure !== null) throw this.#failure;
        return done;
      },
      return: () => {
        returned.abort();
        return Promise.resolve(done);
      },
      [Symbol.asyncIterator]() {
        return this;
      },
    };
  }

  /** Takes all queued items, or those that match a predicate. */
  takeAll(fits: (item: T) => boolean = () => true): T[] {
    const { take = [], keep = [] } = Object.groupBy(this.waiting, (item) => fits(item) ? "take" : "keep");
    this.#here = keep;
    this.#first = 0;
    return take;
  }

  /**
   * Ends the queue. Queued items can still be taken.
   *
   * @param failure what {@linkcode iterate} throws when all items are taken
   */
  end(failure: Error | null = null): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#failure = failure;
    for (const take of this.#takers.splice(0)) take(null);
    this.#releaseIfIdle();
  }

  #releaseIfIdle(): void {
    if (this.#takers.length > 0) return;
    this.#release?.();
    this.#release = null;
  }
}

function noLimit(): TimeLimit {
  return { clear: () => {} };
}
