/**
 * What has come and waits to be taken, and who waits for what is to come.
 *
 * @module
 */

/** A queue between a callback and an asynchronous loop. */
export class MessageQueue<T> {
  readonly #here: T[] = [];
  readonly #takers: ((next: T | null) => void)[] = [];
  readonly #retain: (() => () => void) | null;
  /** Ends what {@linkcode #retain} began, while somebody waits. */
  #release: (() => void) | null = null;
  #isOver = false;
  #failure: Error | null = null;

  /** @param retain keeps the process alive while somebody waits, until what it returns is called */
  constructor(retain: (() => () => void) | null = null) {
    this.#retain = retain;
  }

  /** What nobody has taken. */
  get waiting(): readonly T[] {
    return this.#here;
  }

  /** Adds an item. @returns whether it was taken on: nothing is, once the queue is over */
  push(item: T): boolean {
    if (this.#isOver) return false;
    const take = this.#takers.shift();
    if (take === undefined) this.#here.push(item);
    else take(item);
    this.#releaseIfIdle();
    return true;
  }

  /** The next item; null if there will be none. With a signal that aborts first, what comes is for the next taker. */
  next(signal?: AbortSignal): Promise<T | null> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    const item = this.#here.shift();
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

  // law ucx/MessageQueue.iterate: ucx/message_queue
  /**
   * The items, until there will be none; then it throws the failure that the queue has ended with, if any. An item that
   * comes after `return` was called, also while a `next` is pending, is for the next taker.
   *
   * @param limit a limit of each wait, and what takes it back
   */
  iterate(limit: () => { signal?: AbortSignal; clear: () => void } = noLimit): AsyncIterableIterator<T> {
    const returned = new AbortController();
    const done = { done: true, value: undefined } as const;
    return {
      next: async () => {
        if (returned.signal.aborted) return done;
        const { signal, clear } = limit();
        const stop = signal === undefined ? returned.signal : AbortSignal.any([signal, returned.signal]);
        try {
          const value = await this.next(stop);
          if (value !== null) return { done: false, value };
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

  /** Takes all that is here, or what fits a condition. */
  takeAll(fits: (item: T) => boolean = () => true): T[] {
    const { take = [], keep = [] } = Object.groupBy(this.#here.splice(0), (item) => fits(item) ? "take" : "keep");
    this.#here.push(...keep);
    return take;
  }

  /**
   * Nothing comes any more. What is here can still be taken.
   *
   * @param failure what {@linkcode iterate} throws when all is taken
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

function noLimit(): { clear: () => void } {
  return { clear: () => {} };
}
