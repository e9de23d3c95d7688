/**
 * Operations from the call that begins them to their promise: what UCX returns, completes or has been asked to cancel.
 * When UCX is driven is in `progress.ts`.
 *
 * @module
 */
import { ucs_status_t } from "../../bindings/ucp_types.ts";
import { consumerWaitsForEvent } from "../order/mod.ts";
import { advice, UcxError } from "./error.ts";
import { atNextTurn } from "./event_loop.ts";
import type { UcpFunctions } from "./library.ts";
import { timedOut } from "./limit.ts";
import type { Operation, OperationPool } from "./operation.ts";
import { PendingCopies, type PendingCopy } from "./pending_copies.ts";
import { transferred } from "./taken_memory.ts";

/** The most calls of ucp_worker_progress at once, while they find work. */
export const maxCallsPerTurn = 64;
/** How long promises may follow each other before the event loop turns, in milliseconds. */
export const turnEvery = 1;

/** What a worker's operations need of it. */
export interface CompletionResources {
  readonly ucp: UcpFunctions;
  /** The worker's UCX handle. */
  readonly handle: bigint;
  readonly operations: OperationPool;
}

/** The operation whose promise is being made. */
let awaitedNext: Operation | null = null;

/**
 * Lets {@linkcode awaitedNext} settle a promise. One function for all: `Promise.withResolvers` takes 35 ns longer, of
 * about 600 for an awaited message.
 */
function takeSettlers(resolve: (result: unknown) => void, reject: (reason: unknown) => void): void {
  if (awaitedNext === null) return;
  awaitedNext.resolve = resolve;
  awaitedNext.reject = reject;
  awaitedNext = null;
}

/** The operations of a worker that have begun, and how each ends: once, for its caller and for UCX. */
export abstract class Completions {
  readonly #ucp: UcpFunctions;
  protected readonly worker: bigint;
  protected readonly operations: OperationPool;
  /** `ucp_worker_progress`. */
  protected readonly drive: UcpFunctions["worker"]["ucp_worker_progress"];
  /** Operations in flight, and how many of them are no longer awaited. */
  protected pending: number;
  protected abandoned: number;
  /** Copies that operations wait for. */
  protected readonly copies: PendingCopies = new PendingCopies();
  protected isStopped = false;
  /** When the event loop last turned here. */
  protected lastTurn = 0;
  #settledAtOnce = 0;
  /** Callbacks to run once all news has been handled. */
  readonly #afterNews: (() => void)[] = [];
  /** Runs after each call of ucp_worker_progress. */
  #onDriven: (() => void) | null = null;

  constructor({ ucp, handle, operations }: CompletionResources) {
    this.#ucp = ucp;
    this.worker = handle;
    this.operations = operations;
    this.drive = ucp.worker.ucp_worker_progress;
    const pending = operations.pending();
    this.pending = pending.length;
    this.abandoned = pending.filter(({ isAbandoned }) => isAbandoned).length;
  }

  /** Drives UCX soon, within a microtask: something is awaited. */
  protected abstract queueSpin(): void;

  /** Drives UCX at the next turn of the event loop. */
  protected abstract queueTurn(): void;

  /** Handles UCX's return value when an operation began: 0, a status, or the address of its request. */
  begun(operation: Operation, answer: bigint): void {
    const isOver = answer === 0n || (answer < 0n && answer >= BigInt(ucs_status_t.UCS_ERR_LAST));
    this.begunOwn(operation, isOver ? Number(answer) : 1);
  }

  /** As {@linkcode begun}, for the lower half of the return value: the request is in the operation's own memory. */
  begunOwn(operation: Operation, answer: number): void {
    operation.isBegun = true;
    if (answer === 0 || (answer < 0 && answer >= ucs_status_t.UCS_ERR_LAST)) {
      operation.end(answer);
      this.#end(operation);
      return;
    }
    this.pending++;
    this.operations.note(operation);
    this.drain(); // a receive whose message had arrived has called back already
  }

  /** As {@linkcode begun}, for an operation whose request UCX allocated. */
  begunForeign(operation: Operation, answer: bigint): void {
    if (answer > 0n || answer < BigInt(ucs_status_t.UCS_ERR_LAST)) operation.foreign = BigInt.asUintN(64, answer);
    this.begun(operation, answer);
  }

  /** The completion of an operation, as a promise. Only one caller may wait for it. */
  settled<T>(operation: Operation, signal?: AbortSignal): Promise<T> {
    if (operation.isDone) return this.#settledNow(operation) as Promise<T>; // the caller knows what it began
    awaitedNext = operation;
    const promise = new Promise<unknown>(takeSettlers) as Promise<T>;
    if (signal !== undefined) this.#endBy(operation, signal);
    this.queueSpin();
    return promise;
  }

  /** Settles when a copy is done. */
  copied(copy: PendingCopy): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.copies.add(copy, (failure) => failure === null ? resolve() : reject(failure));
    this.queueSpin();
    return promise;
  }

  // law ucx/Completions.endBy: ucx/limits
  /** Makes a signal end an operation. A separate function: one that creates closures allocates at each call. */
  #endBy(operation: Operation, signal: AbortSignal): void {
    const abort = () => this.cancel(operation, signal.reason);
    if (signal.aborted) return abort(); // no event will follow
    signal.addEventListener("abort", abort, { once: true });
    operation.disarm = () => signal.removeEventListener("abort", abort);
  }

  /**
   * The result of an operation that the caller blocked on.
   *
   * @throws {UcxError} if it has failed, or has not completed
   */
  taken(operation: Operation, timeout?: number): unknown {
    const { unblocked } = operation;
    if (!operation.isDone && unblocked !== null) {
      operation.isWaitedFor = false;
      this.abandon(operation); // UCX may return it later, or never
      throw unblocked.reason;
    }
    if (!operation.isDone) {
      const { call } = operation;
      operation.isWaitedFor = false;
      this.cancel(operation, undefined);
      throw timedOut(call, timeout ?? 0);
    }
    const failure = errorOf(operation);
    const result = failure === null ? operation.result() : undefined;
    this.operations.returnToPool(operation);
    if (failure !== null) throw unblocked === null ? failure : unblocked.reason;
    return result;
  }

  // law ucx/Completions.cancel: ucx/endpoint, ucx/lifecycle, ucx/unclosed
  /**
   * Ends an operation for its caller, at once: its promise is rejected, and UCX is asked to cancel it. Its memory stays
   * pinned until UCX is done with it.
   */
  cancel(operation: Operation, reason: unknown): void {
    if (this.isStopped || !operation.isBegun || operation.isDone || operation.isAbandoned) return;
    this.operations.hasGivenUp ||= operation.isTransfer;
    if (operation.isWaitedFor) { // the caller blocks on it
      operation.unblocked ??= { reason };
      this.#ucp.request.ucp_request_cancel(this.worker, operation.request);
      return;
    }
    const { reject, disarm } = operation;
    operation.resolve = null;
    operation.reject = null;
    operation.disarm = null;
    this.abandon(operation);
    if (operation.lands === null) {
      this.#ucp.request.ucp_request_cancel(this.worker, operation.request);
      this.drain(); // UCX returns a receive without a message before this call returns
    } else this.landed(operation); // UCX has returned it, and the copy is ordered by its stream
    disarm?.();
    reject?.(reason);
    this.queueTurn(); // the process need not stay alive for it
  }

  // law ucx/Completions.abandon: ucx/dropped
  /** Marks an operation as no longer awaited, if it is still in flight. */
  abandon(operation: Operation): void {
    if (operation.isDone || operation.isAbandoned) return;
    operation.isAbandoned = true;
    this.abandoned++;
  }

  // law ucx/Completions.cancelAllOf: ucx/endpoint, ucx/two_processes
  /** Ends all operations of an owner for their callers. */
  cancelAllOf(owner: object, reason: (operation: Operation) => unknown): void {
    for (const operation of this.operations.pending()) {
      if (operation.owner === owner) this.cancel(operation, reason(operation));
    }
  }

  /** Sets a callback for when UCX was driven, and may have new messages. */
  onDriven(act: () => void): void {
    this.#onDriven = act;
  }

  // law ucx/Completions.afterNews: ucx/endpoint
  /** Runs a callback once all current news has been handled. For UCX callbacks, inside which UCX must not be polled. */
  afterNews(act: () => void): void {
    this.#afterNews.push(act);
  }

  /** Cancels everything. @returns how many operations UCX has not returned yet */
  cancelAll(reason: unknown): number {
    for (const operation of this.operations.pending()) this.cancel(operation, reason);
    return this.pending;
  }

  // law ucx/Completions.abandonTransferred: ucx/transferred
  /** Cancels all operations whose memory was transferred; UCX forgets receives without a message. */
  protected abandonTransferred(): void {
    if (this.pending === 0) return;
    for (const operation of this.operations.transferred()) this.cancel(operation, transferred());
  }

  /** Drains completed operations from the ring. */
  protected drain(): number {
    const operations = this.operations;
    let count = 0;
    for (let operation = operations.next(); operation !== undefined; operation = operations.next()) {
      this.pending--;
      this.#end(operation);
      count++;
    }
    if (this.#onDriven !== null) this.#onDriven();
    if (!this.copies.isEmpty) count += this.copies.look();
    if (this.#afterNews.length > 0) this.#actAfterNews();
    return count;
  }

  #actAfterNews(): void {
    const callbacks = this.#afterNews.splice(0);
    for (let i = 0; i < maxCallsPerTurn && !this.isStopped && this.drive(this.worker) !== 0; i++);
    this.drain();
    for (const callback of callbacks) callback();
  }

  // law ucx/Completions.lands: ucx/pool_staging
  /** Copies received data to their destination. @returns whether that takes longer than this call */
  #lands(operation: Operation): boolean {
    const { landing, received } = operation;
    operation.landing = null;
    if (landing === null || operation.isAbandoned || operation.status !== ucs_status_t.UCS_OK || received === 0) {
      return false;
    }
    try {
      const copy = landing(received);
      if (operation.isWaitedFor) {
        consumerWaitsForEvent(copy.event, null);
        return false;
      }
      operation.lands = copy;
      this.pending++;
      this.copies.add(copy, (failure) => {
        if (operation.lands === copy) this.landed(operation, failure); // else it was cancelled
      });
      return true;
    } catch (error) {
      operation.failure = error as Error; // a CudaError
      return false;
    }
  }

  /** Ends an operation whose data is in its destination, or whose copy has failed. */
  protected landed(operation: Operation, failure: Error | null = null): void {
    operation.lands = null;
    operation.failure = failure;
    this.pending--;
    this.#end(operation);
  }

  // law ucx/Completions.end: ucx/endpoint
  #end(operation: Operation): void {
    if (operation.landing !== null && this.#lands(operation)) return;
    operation.isDone = true;
    if (operation.foreign !== 0n) this.#ucp.request.ucp_request_free(operation.foreign);
    const { resolve, reject, disarm, owner } = operation;
    const failure = resolve === null ? null : errorOf(operation);
    operation.release();
    owner?.ended(operation);
    if (resolve === null) {
      if (operation.isAbandoned) {
        this.abandoned--;
        this.operations.returnToPool(operation);
      }
      return;
    }
    const result = operation.result();
    this.operations.returnToPool(operation);
    if (disarm !== null) disarm();
    if (failure === null) resolve(result);
    else reject?.(failure);
  }

  /** The promise of an operation that completed before it could be awaited. */
  #settledNow(operation: Operation): Promise<unknown> {
    const failure = errorOf(operation);
    const result = operation.result();
    this.operations.returnToPool(operation);
    if (failure !== null) return Promise.reject(failure);
    // Already settled promises would never let the event loop turn.
    if (++this.#settledAtOnce % 16 !== 0 || performance.now() - this.lastTurn < turnEvery) {
      return Promise.resolve(result);
    }
    return new Promise((resolve) => {
      atNextTurn(() => {
        this.lastTurn = performance.now();
        resolve(result);
      });
    });
  }
}

// law ucx/errorOf: ucx/transferred
/** Why an operation has failed, or null. */
function errorOf(operation: Operation): Error | null {
  const { status, call } = operation;
  if (status === ucs_status_t.UCS_OK) return operation.isTransferred ? transferred() : operation.failure;
  return new UcxError(call, status, advice(status));
}
