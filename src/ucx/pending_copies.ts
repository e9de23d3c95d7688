/**
 * GPU copies that messages wait for. They take microseconds, and a stream's own completion signal, through a host
 * function and a descriptor, takes longer and stalls the stream meanwhile: so the worker polls them between two calls
 * into UCX, and asks the stream to wake it only before it sleeps.
 *
 * @module
 */
import type { CudaEvent, CudaStream } from "../device/mod.ts";

/** An enqueued copy. */
export class PendingCopy {
  readonly stream: CudaStream;
  /** Recorded after it. */
  readonly event: CudaEvent;
  #isDone = false;

  constructor(stream: CudaStream, event: CudaEvent) {
    this.stream = stream;
    this.event = event;
  }

  // law ucx/PendingCopy.outcome: ucx/pool_staging
  /**
   * Its outcome: null if it is done, undefined if it is not. A CUDA query takes 1.5 us: once done, it is not repeated.
   */
  outcome(): Error | null | undefined {
    try {
      this.#isDone ||= this.event.isDone;
      return this.#isDone ? null : undefined;
    } catch (error) {
      return error as Error; // a CudaError
    }
  }
}

/** Called when a copy is done, with its failure if it has failed. */
type Settle = (failure: Error | null) => void;

interface Waiting {
  readonly copy: PendingCopy;
  readonly settle: Settle;
  /** When the wait for it began, by `performance.now()`. */
  readonly since: number;
}

/** The copies of one worker. */
export class PendingCopies {
  /** Per stream, in the order in which they will complete. */
  readonly #queues = new Map<CudaStream, Waiting[]>();
  /** Streams that will wake the worker. */
  readonly #watched = new Set<CudaStream>();

  get isEmpty(): boolean {
    return this.#queues.size === 0;
  }

  /** Adds a copy. */
  add(copy: PendingCopy, settle: Settle): void {
    const waiting = { copy, settle, since: performance.now() };
    this.#queues.getOrInsertComputed(copy.stream, () => []).push(waiting);
  }

  // law ucx/PendingCopies.look: ucx/pool_staging
  /** Settles completed copies. @returns how many */
  look(): number {
    let count = 0;
    for (const [stream, queue] of this.#queues) {
      let done = 0;
      for (const { copy, settle } of queue) {
        const failure = copy.outcome();
        if (failure === undefined) break; // later ones are pending, too
        settle(failure);
        done++;
      }
      if (done === queue.length) this.#queues.delete(stream);
      else if (done > 0) queue.splice(0, done);
      count += done;
    }
    return count;
  }

  /**
   * Whether the worker should poll rather than sleep: a copy has been pending for less than `patience` milliseconds.
   */
  areDueWithin(patience: number): boolean {
    const now = performance.now();
    return this.#queues.values().some((queue) => queue.some(({ since }) => now - since < patience));
  }

  // law ucx/PendingCopies.wakeBy: ucx/pool_staging
  /** Makes the streams wake the worker, each once. */
  wakeBy(wake: () => void): void {
    for (const stream of this.#queues.keys()) {
      if (this.#watched.has(stream)) continue;
      this.#watched.add(stream);
      const woken = () => {
        this.#watched.delete(stream);
        wake();
      };
      stream.completed().then(woken, woken); // the event reports a failure
    }
  }

  /** Forgets all copies. */
  clear(): void {
    this.#queues.clear();
  }
}
