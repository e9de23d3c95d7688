/**
 * Progress: what lets UCX work, and turns operations that have ended into settled promises, on the JavaScript thread.
 *
 * @module
 */
import { ucs_status_t } from "../../bindings/ucp_types.ts";
import { FfiError, NativeArena } from "../ffi/mod.ts";
import { type ReadableWatch, watchReadable } from "../native/mod.ts";
import { consumerWaitsForEvent } from "../order/mod.ts";
import { checkStatus, UcxError } from "./error.ts";
import { atNextTurn, isServing } from "./event_loop.ts";
import { timedOut } from "./limit.ts";
import type { UcpFunctions } from "./library.ts";
import type { Operation, OperationPool } from "./operation.ts";
import { PendingCopies, type PendingCopy } from "./pending_copies.ts";
import { advice } from "./status.ts";
import { transferred } from "./taken_memory.ts";

/**
 * How a worker waits for messages. `adaptive`: polls for a moment, longer while messages flow, then sleeps until UCX
 * has news. `event`: sleeps at once. `busy`: polls as long as an operation is pending, and sleeps while none is, a moment
 * after the last news. The event loop turns at least once a millisecond in all of them.
 */
export type ProgressMode = "adaptive" | "busy" | "event";

/** The modes. */
export const progressModes: readonly ProgressMode[] = ["adaptive", "busy", "event"];

/** Calls of ucp_worker_progress in one turn of the event loop, as long as they find something to do. */
const most = 64;
/** For how long microtasks may follow each other before the event loop turns, in milliseconds. */
const turnEvery = 1;
/** How often other descriptors are looked at by who does not sleep, in milliseconds. */
const lookEvery = 1000;
/** How long one turn may take, in milliseconds. */
const turnAtMost = 0.5;
/**
 * How long to poll before the event loop turns: at first, which is less than falling asleep and being woken takes, and
 * while messages flow, in milliseconds.
 */
const spinAtFirst = 0.02;
const spinAtMost = 0.5;
/**
 * How long to poll at every turn of the event loop before sleeping, in milliseconds: when something woke us soon after we
 * fell asleep, and while somebody awaits one message after the other. What wakes us later may be no more than UCX looking
 * whether its peers live: then not at all.
 */
const patienceAtFirst = 0.1;
const patienceAtMost = 2;
const soon = 10;

/** What progress needs of its worker. */
export interface ProgressResources {
  readonly ucp: UcpFunctions;
  /** The worker, as UCX knows it. */
  readonly handle: bigint;
  readonly operations: OperationPool;
  /** What wakes it up; undefined before it has slept. */
  watch: ReadableWatch | undefined;
  /** What else it wakes up for: closed by who closes the worker, when it sleeps no more. */
  readonly watched: { close(): void }[];
}

/** What else to wake up for. */
export interface Watched {
  /** A descriptor. */
  readonly fd: number;
  close(): void;
}

/**
 * Workers that sleep while somebody waits for something of them. Nothing else may lead to one: the program has a
 * promise, which does not lead to who settles it, and an async function that waits is kept by that promise alone, with
 * all its variables, a worker among them. A worker that sleeps and is not among these can be collected.
 */
const awaited = new Set<Progress>();

/** Polls a worker while operations are pending, and sleeps while UCX has nothing to do. */
export class Progress {
  /** The worker: it stays as long as this does. */
  readonly whose: object | null;
  readonly #resources: ProgressResources;
  readonly #ucp: UcpFunctions;
  readonly #worker: bigint;
  readonly #operations: OperationPool;
  readonly #mode: ProgressMode;
  readonly #progress: UcpFunctions["worker"]["ucp_worker_progress"];
  /** Operations that UCX is at, and those of them that nobody waits for any more. */
  #pending: number;
  #abandoned: number;
  #isStopped = false;
  /** Whether others may need this worker to answer although it has nothing to do. */
  #isWatching = false;
  #isSpinQueued = false;
  #isTurnQueued = false;
  /** When the event loop last turned here, and when UCX last had news. */
  #lastTurn = 0;
  #lastNews = 0;
  /** Whether UCX had nothing more to do when it was last polled. */
  #isQuiet = true;
  #spinFor = spinAtFirst;
  #patience = patienceAtMost;
  #lastSleep = 0;
  #settledAtOnce = 0;
  /** How many want the process to stay alive although no operation is pending. */
  #holds = 0;
  /** How many may wait for what the process need not stay alive for. */
  #keeps = 0;
  /** Copies that operations wait for. */
  readonly #copies = new PendingCopies();
  /** What is to happen when there are no news left. */
  readonly #afterNews: (() => void)[] = [];
  /** What else to wake up for, and what to do then. */
  readonly #also: { readonly fd: number; readonly act: () => void }[] = [];
  /** When that was last done without having slept, by `performance.now()`. */
  #lastLook = 0;

  /** `whose`: the worker; null for one that is gone, whose operations are ended here. */
  constructor(resources: ProgressResources, mode: ProgressMode, whose: object | null) {
    const { ucp, handle, operations } = resources;
    this.whose = whose;
    this.#resources = resources;
    this.#ucp = ucp;
    this.#worker = handle;
    this.#operations = operations;
    this.#mode = mode;
    this.#progress = ucp.worker.ucp_worker_progress;
    const pending = operations.pending();
    this.#pending = pending.length;
    this.#abandoned = pending.filter(({ isAbandoned }) => isAbandoned).length;
  }

  /** Takes what UCX answered when an operation began: 0, a status, or the address of its request. */
  begun(operation: Operation, answer: bigint): void {
    const isOver = answer === 0n || (answer < 0n && answer >= BigInt(ucs_status_t.UCS_ERR_LAST));
    this.begunOwn(operation, isOver ? Number(answer) : 1);
  }

  /** As {@linkcode begun}, for the lower half of the answer: the request is in the operation's own memory. */
  begunOwn(operation: Operation, answer: number): void {
    operation.isBegun = true;
    if (answer === 0 || (answer < 0 && answer >= ucs_status_t.UCS_ERR_LAST)) {
      operation.end(answer);
      this.#end(operation);
      return;
    }
    this.#pending++;
    this.#drain(); // a receive whose message was here has called back already
  }

  /** As {@linkcode begun}, for an operation with a request of UCX's own. */
  begunForeign(operation: Operation, answer: bigint): void {
    if (answer > 0n || answer < BigInt(ucs_status_t.UCS_ERR_LAST)) operation.foreign = BigInt.asUintN(64, answer);
    this.begun(operation, answer);
  }

  /** The end of an operation, as a promise. Nobody else may wait for it. */
  settled<T>(operation: Operation, signal?: AbortSignal): Promise<T> {
    if (operation.isDone) return this.#settledNow(operation) as Promise<T>; // the caller knows what it has begun
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    operation.resolve = resolve as (result: unknown) => void;
    operation.reject = reject;
    if (signal !== undefined) this.#endBy(operation, signal);
    this.#queueSpin();
    return promise;
  }

  /** Settles when a copy is done. */
  copied(copy: PendingCopy): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#copies.add(copy, (failure) => failure === null ? resolve() : reject(failure));
    this.#queueSpin();
    return promise;
  }

  // law ucx/Progress.endBy: ucx/limits
  /** Has a signal end an operation. A function of its own: one that makes functions has new memory at each call. */
  #endBy(operation: Operation, signal: AbortSignal): void {
    const abort = () => this.cancel(operation, signal.reason);
    if (signal.aborted) return abort(); // no event comes any more
    signal.addEventListener("abort", abort, { once: true });
    operation.disarm = () => signal.removeEventListener("abort", abort);
  }

  /**
   * Waits in place until UCX is done with an operation, or for so many milliseconds: nothing else happens in this
   * thread meanwhile.
   */
  runUntilDone(operation: Operation, timeout: number | undefined): void {
    const end = timeout === undefined ? Infinity : performance.now() + timeout;
    const progress = this.#progress;
    operation.isWaitedFor = true;
    if (operation.lands !== null) { // its message was here
      consumerWaitsForEvent(operation.lands.event, null);
      this.#landed(operation);
    }
    let left = most; // after it was given up, for UCX to give it back
    for (let n = 1; !operation.isDone; n++) {
      progress(this.#worker);
      this.#drain();
      if (operation.gaveUp !== null && left-- === 0) return;
      if (n % 256 !== 0) continue;
      const now = performance.now();
      if (now > end) return;
      this.#lookSometimes(now);
    }
  }

  /**
   * What came of an operation that was waited for in place.
   *
   * @throws {UcxError} if it has failed, or is not over
   */
  taken(operation: Operation, timeout?: number): unknown {
    const { gaveUp } = operation;
    if (!operation.isDone && gaveUp !== null) {
      operation.isWaitedFor = false;
      this.abandon(operation); // UCX gives it back some time, or never
      throw gaveUp.reason;
    }
    if (!operation.isDone) {
      const { call } = operation;
      operation.isWaitedFor = false;
      this.cancel(operation, undefined);
      throw timedOut(call, timeout ?? 0);
    }
    const failure = errorOf(operation);
    const result = failure === null ? operation.result() : undefined;
    this.#operations.give(operation);
    if (failure !== null) throw gaveUp === null ? failure : gaveUp.reason;
    return result;
  }

  // law ucx/Progress.cancel: ucx/endpoint, ucx/lifecycle, ucx/unclosed
  /**
   * Ends an operation for its caller, at once: its promise is rejected, and UCX is asked to give it up. Its memory
   * stays pinned until UCX has.
   */
  cancel(operation: Operation, reason: unknown): void {
    if (this.#isStopped || !operation.isBegun || operation.isDone || operation.isAbandoned) return;
    if (operation.isWaitedFor) { // in place
      operation.gaveUp ??= { reason };
      this.#ucp.request.ucp_request_cancel(this.#worker, operation.request);
      return;
    }
    const { reject, disarm } = operation;
    operation.resolve = null;
    operation.reject = null;
    operation.disarm = null;
    this.abandon(operation);
    if (operation.lands === null) {
      this.#ucp.request.ucp_request_cancel(this.#worker, operation.request);
      this.#drain(); // UCX gives back a receive without a message before it returns
    } else this.#landed(operation); // UCX has given it back, and the copy is ordered by its stream
    disarm?.();
    reject?.(reason);
    this.#queueTurn(); // the process need not stay alive for it
  }

  // law ucx/Progress.abandon: ucx/dropped
  /** Nobody waits for an operation any more, if UCX is still at it. */
  abandon(operation: Operation): void {
    if (operation.isDone || operation.isAbandoned) return;
    operation.isAbandoned = true;
    this.#abandoned++;
  }

  // law ucx/Progress.abandonAll: ucx/endpoint, ucx/two_processes
  /** Ends for their callers all operations that belong to an owner. */
  abandonAll(owner: object, reason: (operation: Operation) => unknown): void {
    for (const operation of this.#operations.pending()) {
      if (operation.owner === owner) this.cancel(operation, reason(operation));
    }
  }

  /**
   * Lets the worker work, and settles what has ended.
   *
   * @param atMost for about how long, in milliseconds: a call of UCX's may copy a lot
   * @returns how many operations have ended
   */
  poll(atMost: number = turnAtMost): number {
    return this.#poll(atMost, false);
  }

  /** @param untilEnded to return as soon as an operation has ended: who waited for it may have the next one */
  #poll(atMost: number, untilEnded: boolean): number {
    if (this.#isStopped) return 0;
    let ended = 0;
    const start = performance.now();
    this.#isQuiet = false;
    for (let i = 0; i < most; i++) {
      const hasWorked = this.#progress(this.#worker) !== 0;
      const drained = this.#drain();
      ended += drained;
      if (!hasWorked && drained === 0) {
        this.#isQuiet = true;
        break;
      }
      this.#lastNews = performance.now();
      if ((untilEnded && drained > 0) || this.#lastNews - start > atMost) break;
    }
    return ended;
  }

  // law ucx/Progress.wake: ucx/progress
  /** UCX has news, or one of the other descriptors can be read. */
  wake(): void {
    this.#giveUpTransferred(); // first: UCX writes to no memory while we sleep
    this.#patience = performance.now() - this.#lastSleep < soon ? patienceAtFirst : 0;
    this.#turn();
    for (const { act } of this.#also) act();
  }

  // law ucx/Progress.giveUpTransferred: ucx/transferred
  /** Ends for their callers all operations whose memory was transferred; UCX forgets receives without a message. */
  #giveUpTransferred(): void {
    if (this.#pending === 0) return;
    for (const operation of this.#operations.transferred()) this.cancel(operation, transferred());
  }

  /**
   * Wakes up for another descriptor, too, which the worker closes when it has slept for the last time. While there is no
   * sleep what is to be done then is done once a second.
   */
  watchAlso(watched: Watched, act: () => void): void {
    this.#also.push({ fd: watched.fd, act });
    this.#resources.watched.push(watched);
    this.#resources.watch?.close(); // the next sleep is one for all of them
    this.#resources.watch = undefined;
    this.#queueTurn();
  }

  // law ucx/Progress.lookSometimes: ucx/peer_liveness, ucx/death
  #lookSometimes(now: number): void {
    if (now - this.#lastLook < lookEvery) return;
    this.#lastLook = now;
    this.#giveUpTransferred();
    for (const { act } of this.#also) act();
  }

  /** Answers other workers from now on, also while no operation is pending. */
  watch(): void {
    this.#isWatching = true;
    this.#queueTurn();
  }

  /** Keeps the process alive, until what it returns is called. */
  hold(): () => void {
    this.#holds++;
    this.#keepAlive();
    let isHeld = true;
    return () => {
      if (isHeld) this.#holds--;
      isHeld = false;
      this.#keepAlive();
    };
  }

  // law ucx/Progress.keep: ucx/dropped
  /** Keeps the worker from being collected, but not the process alive, until what it returns is called. */
  keep(): () => void {
    this.#keeps++;
    this.#queueTurn(); // it may sleep as one that nobody waits for
    let isKept = true;
    return () => {
      if (isKept) this.#keeps--; // what ends a wait has UCX work: the next sleep finds out
      isKept = false;
    };
  }

  /** Keeps the process alive until a promise settles that a message of another worker has to settle. */
  async waitsFor<T>(news: Promise<T>): Promise<T> {
    const release = this.hold();
    return await news.finally(release);
  }

  // law ucx/Progress.afterNews: ucx/endpoint
  /** Does something when all is taken that is here now. For callbacks of UCX, inside of which it must not be polled. */
  afterNews(act: () => void): void {
    this.#afterNews.push(act);
  }

  /** Cancels everything. @returns how many operations UCX has not given back yet */
  cancelAll(reason: unknown): number {
    for (const operation of this.#operations.pending()) this.cancel(operation, reason);
    return this.#pending;
  }

  // law ucx/Progress.stop: ucx/progress
  /** Cancels everything, drives the worker until it is quiet or `patience` milliseconds have passed, and stops. */
  stop(reason: unknown, patience = 200): void {
    this.cancelAll(reason);
    const deadline = performance.now() + patience;
    while (this.#pending > 0 && performance.now() < deadline) this.poll();
    this.#isStopped = true;
    this.#copies.clear();
    awaited.delete(this);
    this.#resources.watch?.close();
  }

  /** Takes what has ended from the ring. */
  #drain(): number {
    const operations = this.#operations;
    let count = 0;
    for (let operation = operations.next(); operation !== undefined; operation = operations.next()) {
      this.#pending--;
      this.#end(operation);
      count++;
    }
    if (!this.#copies.isEmpty) count += this.#copies.look();
    if (this.#afterNews.length > 0) this.#actAfterNews();
    return count;
  }

  #actAfterNews(): void {
    const acts = this.#afterNews.splice(0);
    for (let i = 0; i < most && !this.#isStopped && this.#progress(this.#worker) !== 0; i++);
    this.#drain();
    for (const act of acts) act();
  }

  /** Whether somebody waits for something. */
  get #isAwaited(): boolean {
    return this.#pending > this.#abandoned || this.#holds > 0;
  }

  #keepAlive(): void {
    this.#resources.watch?.keepAlive(this.#isAwaited);
    this.#queueTurn(); // it may sleep as one that waits for nothing
  }

  // law ucx/Progress.lands: ucx/pool_staging
  /** Has what has come copied to where it belongs. @returns whether that takes longer than this call */
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
      this.#pending++;
      this.#copies.add(copy, (failure) => {
        if (operation.lands === copy) this.#landed(operation, failure); // else it was cancelled
      });
      return true;
    } catch (error) {
      operation.failure = error as Error; // a CudaError
      return false;
    }
  }

  #landed(operation: Operation, failure: Error | null = null): void {
    operation.lands = null;
    operation.failure = failure;
    this.#pending--;
    this.#end(operation);
  }

  // law ucx/Progress.end: ucx/endpoint
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
        this.#abandoned--;
        this.#operations.give(operation);
      }
      return;
    }
    const result = operation.result();
    this.#operations.give(operation);
    if (disarm !== null) disarm();
    if (failure === null) resolve(result);
    else reject?.(failure);
  }

  /** The promise of an operation that has ended before anybody could wait for it. */
  #settledNow(operation: Operation): Promise<unknown> {
    const failure = errorOf(operation);
    const result = operation.result();
    this.#operations.give(operation);
    if (failure !== null) return Promise.reject(failure);
    // Promises that are settled already would never let the event loop turn.
    if (++this.#settledAtOnce % 16 !== 0 || performance.now() - this.#lastTurn < turnEvery) {
      return Promise.resolve(result);
    }
    return new Promise((resolve) => {
      atNextTurn(() => {
        this.#lastTurn = performance.now();
        resolve(result);
      });
    });
  }

  #queueSpin(): void {
    if (this.#isSpinQueued) return;
    this.#isSpinQueued = true;
    queueMicrotask(this.#spin);
  }

  #queueTurn(): void {
    if (this.#isTurnQueued || this.#isStopped) return;
    this.#isTurnQueued = true;
    atNextTurn(this.#turn);
  }

  /** Polls for a moment, within a microtask: the answer to a message is often there sooner than the event loop turns. */
  readonly #spin = (): void => {
    this.#isSpinQueued = false;
    if (this.#isStopped) return;
    const start = performance.now();
    this.#lastNews = start;
    this.#patience = patienceAtMost;
    if (start - this.#lastTurn < turnEvery && !isServing()) {
      const progress = this.#progress;
      for (let n = 1;; n++) {
        progress(this.#worker);
        if (this.#drain() > 0) {
          if (this.#mode !== "event") this.#spinFor = Math.min(2 * this.#spinFor, spinAtMost);
          this.#queueTurn(); // who waited for what has ended goes first, and has this poll again if it awaits more
          return;
        }
        if (n % 16 !== 0) continue;
        const now = performance.now();
        if (now - start > this.#spinFor || now - this.#lastTurn > turnEvery) break;
      }
      this.#spinFor = Math.max(this.#spinFor / 2, spinAtFirst);
    }
    this.#queueTurn();
  };

  // law ucx/Progress.turn: ucx/progress
  readonly #turn = (): void => {
    this.#isTurnQueued = false;
    if (this.#isStopped) return;
    const now = performance.now();
    this.#lastTurn = now;
    this.#lookSometimes(now);
    const hasEnded = this.#poll(turnAtMost, true) > 0; // who waited for it goes first, and may have more for UCX to do
    const isIdle = this.#pending === 0 && !hasEnded && this.#copies.isEmpty;
    if (isIdle && !this.#isWatching && this.#holds === 0 && this.#keeps === 0) return void awaited.delete(this);
    if (this.#lastNews > now) this.#patience = Math.min(2 * this.#patience, patienceAtMost);
    const isPolling = hasEnded || !this.#isQuiet || // what UCX has yet to do wakes nobody up
      this.#copies.areDueWithin(patienceAtMost) ||
      // Who falls asleep between two messages, although nobody waits for one, keeps the event loop from its timers.
      (this.#pending > this.#abandoned && this.#mode !== "adaptive"
        ? this.#mode === "busy"
        : now - this.#lastNews < this.#patience);
    if (isPolling) this.#queueTurn();
    else this.#sleep();
  };

  // law ucx/Progress.sleep: ucx/endpoint, ucx/unclosed, ucx/dropped
  /** Sleeps until UCX has news. Whatever came before the worker was armed keeps it awake. */
  #sleep(): void {
    const status = this.#ucp.wakeup.ucp_worker_arm(this.#worker);
    if (status === ucs_status_t.UCS_ERR_BUSY) return this.#queueTurn();
    checkStatus("ucp_worker_arm", status);
    this.#lastSleep = performance.now();
    this.#copies.wakeBy(() => this.#queueTurn());
    const watch = this.#resources.watch ??= this.#watchWorker();
    watch.keepAlive(this.#isAwaited);
    watch.start();
    if (this.#isAwaited || this.#keeps > 0) awaited.add(this);
    else awaited.delete(this); // until it wakes up only the program leads to it
  }

  #watchWorker(): ReadableWatch {
    using arena = new NativeArena();
    const fd = arena.out("i32");
    const status = this.#ucp.wakeup.ucp_worker_get_efd(this.#worker, fd.$address);
    if (status !== ucs_status_t.UCS_OK) throw new FfiError(`Cannot wait for messages: ucp_worker_get_efd: ${status}`);
    // A worker that nobody holds any more can be collected while it sleeps.
    const progress = new WeakRef(this);
    return watchReadable([fd.value, ...this.#also.map(({ fd }) => fd)], () => progress.deref()?.wake());
  }
}

// law ucx/errorOf: ucx/transferred
/** Why an operation has failed, or null. */
function errorOf(operation: Operation): Error | null {
  const { status, call } = operation;
  if (status === ucs_status_t.UCS_OK) return operation.isTransferred ? transferred() : operation.failure;
  return new UcxError(call, status, advice(status));
}
