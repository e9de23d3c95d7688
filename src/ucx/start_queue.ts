/**
 * Operations that wait for streams before UCX may use their memory.
 *
 * @module
 */

/** An operation that has not begun. */
interface Start {
  /** Whether its memory is ready. */
  isReady: boolean;
  begin(): void;
  /** Ends it before it has begun. */
  drop(reason: unknown): void;
}

/** What an operation waits for. */
export interface StartOptions {
  /** Settles when UCX may use the memory; null if it may at once. */
  readonly ready: Promise<void> | null;
  /** Unpins the memory. Called once if the operation never begins. */
  readonly release: () => void;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Operations that begin in the order in which they were requested: messages of one tag are sent and taken in that
 * order. An operation that waits for nothing, with none before it, begins at once.
 */
export class StartQueue {
  readonly #waiting: Start[] = [];
  /** Why it was stopped, once it was. */
  #stopped: { readonly reason: unknown } | null = null;

  /** Whether no operation waits: the next may begin at once. */
  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  // law ucx/StartQueue.add: ucx/start_queue
  /**
   * Begins an operation in its turn, when its memory is ready.
   *
   * @param begin unpins the memory when the operation has completed. It is not called once the queue was stopped
   */
  add<T>({ ready, release, signal }: StartOptions, begin: () => Promise<T>): Promise<T> {
    if (this.#stopped !== null) {
      release();
      return Promise.reject(this.#stopped.reason);
    }
    if (ready === null && this.#waiting.length === 0) return begin();
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const abort = () => this.#drop(start, signal?.reason);
    const start: Start = {
      isReady: ready === null,
      begin: () => {
        signal?.removeEventListener("abort", abort);
        try {
          resolve(begin());
        } catch (error) {
          reject(error);
        }
      },
      drop: (reason) => {
        signal?.removeEventListener("abort", abort);
        release();
        reject(reason);
      },
    };
    this.#waiting.push(start);
    signal?.addEventListener("abort", abort);
    ready?.then(() => {
      start.isReady = true;
      this.#advance();
    }, (error: unknown) => this.#drop(start, error));
    return promise;
  }

  /** Ends all operations that have not begun, and those that are still added. */
  stop(reason: unknown): void {
    this.#stopped ??= { reason };
    for (const start of this.#waiting.splice(0)) start.drop(reason);
  }

  // law ucx/StartQueue.drop: ucx/start_queue
  #drop(start: Start, reason: unknown): void {
    const at = this.#waiting.indexOf(start);
    if (at < 0) return; // it was dropped before
    this.#waiting.splice(at, 1);
    start.drop(reason);
    this.#advance(); // others may have waited only for this one
  }

  // law ucx/StartQueue.advance: ucx/start_queue
  #advance(): void {
    while (this.#waiting[0]?.isReady) this.#waiting.shift()?.begin();
  }
}
