/**
 * Copies on a GPU that messages wait for. They take microseconds, and a stream's own way to say that it is done, through
 * a host function and a descriptor, takes longer and stops the stream meanwhile: so the worker looks for itself between
 * two calls of UCX, and asks the stream to wake it up only before it sleeps.
 *
 * @module
 */
import type { CudaEvent, CudaStream } from "../device/mod.ts";

/** A copy that was enqueued. */
export class PendingCopy {
  readonly stream: CudaStream;
  /** Recorded behind it. */
  readonly event: CudaEvent;
  #isDone = false;

  constructor(stream: CudaStream, event: CudaEvent) {
    this.stream = stream;
    this.event = event;
  }

  // law ucx/PendingCopy.outcome: ucx/pool_staging
  /** What has become of it: null if it is done, undefined if it is not. To ask CUDA takes 1.5 us: once it is done, it is. */
  outcome(): Error | null | undefined {
    try {
      this.#isDone ||= this.event.isDone;
      return this.#isDone ? null : undefined;
    } catch (error) {
      return error as Error; // a CudaError
    }
  }
}

/** Called when a copy is done, or with what has become of it. */
type Settle = (failure: Error | null) => void;

interface Waiting {
  readonly copy: PendingCopy;
  readonly settle: Settle;
  /** When it began to be waited for, by `performance.now()`. */
  readonly since: number;
}

/** The copies of one worker. */
export class PendingCopies {
  /** Of each stream, in the order in which they will be done. */
  readonly #queues = new Map<CudaStream, Waiting[]>();
  /** Streams that wake the worker up. */
  readonly #watched = new Set<CudaStream>();

  get isEmpty(): boolean {
    return this.#queues.size === 0;
  }

  /** Takes on a copy. */
  add(copy: PendingCopy, settle: Settle): void {
    const waiting = { copy, settle, since: performance.now() };
    this.#queues.getOrInsertComputed(copy.stream, () => []).push(waiting);
  }

  // law ucx/PendingCopies.look: ucx/pool_staging
  /** Settles what is done. @returns how many are */
  look(): number {
    let count = 0;
    for (const [stream, queue] of this.#queues) {
      let done = 0;
      for (const { copy, settle } of queue) {
        const failure = copy.outcome();
        if (failure === undefined) break; // nor is what was enqueued after it
        settle(failure);
        done++;
      }
      if (done === queue.length) this.#queues.delete(stream);
      else if (done > 0) queue.splice(0, done);
      count += done;
    }
    return count;
  }

  /** Whether the worker had better look than sleep: one has been waited for less than so many milliseconds. */
  areDueWithin(patience: number): boolean {
    const now = performance.now();
    return this.#queues.values().some((queue) => queue.some(({ since }) => now - since < patience));
  }

  // law ucx/PendingCopies.wakeBy: ucx/pool_staging
  /** Has the streams wake the worker up, each once. */
  wakeBy(wake: () => void): void {
    for (const stream of this.#queues.keys()) {
      if (this.#watched.has(stream)) continue;
      this.#watched.add(stream);
      const woken = () => {
        this.#watched.delete(stream);
        wake();
      };
      stream.completed().then(woken, woken); // what has failed, its event says
    }
  }

  /** Forgets all of them. */
  clear(): void {
    this.#queues.clear();
  }
}
