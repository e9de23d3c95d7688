/**
 * What has come and waits to be taken, and who waits for what is to come.
 *
 * @module
 */

/** A queue between a callback and an asynchronous loop. */
export class MessageQueue<T> implements AsyncIterable<T> {
  readonly #here: T[] = [];
  readonly #takers: ((next: T | null) => void)[] = [];
  #isOver = false;

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
    return true;
  }

  /** The next item; null if there will be none. */
  next(): Promise<T | null> {
    const item = this.#here.shift();
    if (item !== undefined || this.#isOver) return Promise.resolve(item ?? null);
    const { promise, resolve } = Promise.withResolvers<T | null>();
    this.#takers.push(resolve);
    return promise;
  }

  /** Nothing comes any more. What is here can still be taken. */
  end(): void {
    this.#isOver = true;
    for (const take of this.#takers.splice(0)) take(null);
  }

  /** The items, until there will be none. */
  async *[Symbol.asyncIterator](): AsyncIterator<T> {
    for (let next = await this.next(); next !== null; next = await this.next()) yield next;
  }
}
