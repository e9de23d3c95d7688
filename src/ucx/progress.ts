/**
 * Progress: drives UCX, and settles the promises of completed operations, on the JavaScript thread.
 *
 * @module
 */
import { ucs_status_t } from "../../bindings/ucp_types.ts";
import { FfiError, NativeArena, nodeBuiltin, SystemError } from "../ffi/mod.ts";
import { type ReadableWatch, watchReadable } from "../native/mod.ts";
import { consumerWaitsForEvent } from "../order/mod.ts";
import { keepFromChildren } from "../unix/mod.ts";
import { advice, UcxError } from "./error.ts";
import { atNextTurn, isServing } from "./event_loop.ts";
import { ensureGpuContext } from "./gpu_context.ts";
import { timedOut } from "./limit.ts";
import type { UcpFunctions } from "./library.ts";
import type { Operation, OperationPool } from "./operation.ts";
import { PendingCopies, type PendingCopy } from "./pending_copies.ts";
import { transferred } from "./taken_memory.ts";

/**
 * How a worker waits for messages. `adaptive`: polls briefly, longer while messages flow, then sleeps until UCX has
 * news. `event`: polls for 0.02 ms, then sleeps. `busy`: polls as long as an operation is pending, and sleeps while
 * none is, a moment after the last news. In all of them the event loop turns at least once a millisecond.
 */
export type ProgressMode = "adaptive" | "busy" | "event";

/** The modes. */
export const progressModes: readonly ProgressMode[] = ["adaptive", "busy", "event"];

/** The most calls of ucp_worker_progress in one turn of the event loop, while they find work. */
const maxCallsPerTurn = 64;
/** How long microtasks may follow each other before the event loop turns, in milliseconds. */
const turnEvery = 1;
/**
 * How often a worker that does not sleep checks other descriptors, in milliseconds: a peer's death takes two checks, a
 * second apart, and must be detected within three.
 */
const checkEvery = 250;
/** How often descriptors that UCX has opened are kept from children meanwhile, in milliseconds; and when last. */
const keepEvery = 1;
let lastKept = 0;
/** How long one turn may take, in milliseconds. */
const turnAtMost = 0.5;
/**
 * How long to poll before the event loop turns: at first, which is less than falling asleep and waking takes, and while
 * messages flow, in milliseconds.
 */
const spinAtFirst = 0.02;
const spinAtMost = 0.5;
/**
 * How long to poll at every turn of the event loop before sleeping, in milliseconds: when woken soon after falling
 * asleep, and while one message after the other is awaited. A later wakeup may only be UCX's keep-alive check:
 * then not at all.
 */
const patienceAtFirst = 0.1;
const patienceAtMost = 2;
const soonAfterSleep = 10;
/** How long to pause between two turns if no descriptor or thread is left to sleep with, in milliseconds. */
const sleeplessPause = 5;

/** What progress needs from its worker. */
export interface ProgressResources {
  readonly ucp: UcpFunctions;
  /** The worker's UCX handle. */
  readonly handle: bigint;
  readonly operations: OperationPool;
  /** Wakes it up; undefined before its first sleep. */
  watch: ReadableWatch | undefined;
  /** What else it wakes up for: closed together with the worker, after its last sleep. */
  readonly watched: { close(): void }[];
}

/** A further descriptor to wake up for. */
export interface Watched {
  /** The descriptor. */
  readonly fd: number;
  close(): void;
}

/**
 * Sleeping workers that have pending promises. Often nothing else references them: a promise does not reference what
 * will settle it, and the async function that awaits it, with a worker among its variables, is kept alive by the
 * promise alone. A sleeping worker that is not in this set can be collected.
 */
const awaited = new Set<Progress>();

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

/** Polls a worker while operations are pending, and sleeps while UCX has nothing to do. */
export class Progress {
  /** The worker, kept alive as long as this. */
  readonly whose: object | null;
  readonly #resources: ProgressResources;
  readonly #ucp: UcpFunctions;
  readonly #worker: bigint;
  readonly #operations: OperationPool;
  readonly #mode: ProgressMode;
  readonly #progress: UcpFunctions["worker"]["ucp_worker_progress"];
  /** Operations in flight, and how many of them are no longer awaited. */
  #pending: number;
  #abandoned: number;
  #isStopped = false;
  /** Whether peers may need this worker to answer although it has nothing to do. */
  #answersPeers = false;
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
  /** Calls of `retainProcess` that have not ended: the process stays alive although no operation is pending. */
  #processRetains = 0;
  /** Calls of `retainWorker` that have not ended: the worker is not collected, but the process may end. */
  #workerRetains = 0;
  /** Copies that operations wait for. */
  readonly #copies = new PendingCopies();
  /** Callbacks to run once all news has been handled. */
  readonly #afterNews: (() => void)[] = [];
  /** Other descriptors to wake up for, and their callbacks. */
  readonly #also: { readonly fd: number; readonly act: () => void }[] = [];
  #onLateWake: (() => void) | undefined;
  /** Runs after each call of ucp_worker_progress. */
  #onDriven: (() => void) | null = null;
  /** When those callbacks last ran without a sleep, by `performance.now()`. */
  #lastCheck = 0;
  /** Makes the next turn, while it cannot sleep. */
  #nextTurn: { ref(): unknown; unref(): unknown } | undefined;

  /** `whose`: the worker; null if it is gone, and only its operations are ended here. */
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
    this.#pending++;
    this.#operations.note(operation);
    this.#drain(); // a receive whose message had arrived has called back already
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
  /** Makes a signal end an operation. A separate function: one that creates closures allocates at each call. */
  #endBy(operation: Operation, signal: AbortSignal): void {
    const abort = () => this.cancel(operation, signal.reason);
    if (signal.aborted) return abort(); // no event will follow
    signal.addEventListener("abort", abort, { once: true });
    operation.disarm = () => signal.removeEventListener("abort", abort);
  }

  // law ucx/Progress.runUntilDone: ucx/pool_staging
  /** Blocks this thread until UCX is done with an operation, or for `timeout` milliseconds. */
  runUntilDone(operation: Operation, timeout: number | undefined): void {
    const end = timeout === undefined ? Infinity : performance.now() + timeout;
    const progress = this.#progress;
    operation.isWaitedFor = true;
    if (operation.lands !== null) { // its message had arrived
      consumerWaitsForEvent(operation.lands.event, null);
      this.#landed(operation);
    }
    let left = maxCallsPerTurn; // polls left after a cancel, for UCX to return it
    ensureGpuContext();
    for (let n = 1; !operation.isDone; n++) {
      progress(this.#worker);
      this.#drain();
      if (operation.unblocked !== null && left-- === 0) return;
      if (n % 256 !== 0) continue;
      const now = performance.now();
      if (now > end) return;
      this.#checkIfDue(now);
    }
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
    this.#operations.returnToPool(operation);
    if (failure !== null) throw unblocked === null ? failure : unblocked.reason;
    return result;
  }

  // law ucx/Progress.cancel: ucx/endpoint, ucx/lifecycle, ucx/unclosed
  /**
   * Ends an operation for its caller, at once: its promise is rejected, and UCX is asked to cancel it. Its memory stays
   * pinned until UCX is done with it.
   */
  cancel(operation: Operation, reason: unknown): void {
    if (this.#isStopped || !operation.isBegun || operation.isDone || operation.isAbandoned) return;
    this.#operations.hasGivenUp ||= operation.isTransfer;
    if (operation.isWaitedFor) { // the caller blocks on it
      operation.unblocked ??= { reason };
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
      this.#drain(); // UCX returns a receive without a message before this call returns
    } else this.#landed(operation); // UCX has returned it, and the copy is ordered by its stream
    disarm?.();
    reject?.(reason);
    this.#queueTurn(); // the process need not stay alive for it
  }

  // law ucx/Progress.abandon: ucx/dropped
  /** Marks an operation as no longer awaited, if it is still in flight. */
  abandon(operation: Operation): void {
    if (operation.isDone || operation.isAbandoned) return;
    operation.isAbandoned = true;
    this.#abandoned++;
  }

  // law ucx/Progress.cancelAllOf: ucx/endpoint, ucx/two_processes
  /** Ends all operations of an owner for their callers. */
  cancelAllOf(owner: object, reason: (operation: Operation) => unknown): void {
    for (const operation of this.#operations.pending()) {
      if (operation.owner === owner) this.cancel(operation, reason(operation));
    }
  }

  /**
   * Drives the worker, and settles completed operations.
   *
   * @param atMost for about how long, in milliseconds: one call into UCX may copy a lot
   * @returns how many operations have completed
   */
  poll(atMost: number = turnAtMost): number {
    return this.#poll(atMost, false);
  }

  // law ucx/Progress.pollUntil: ucx/pool_staging
  /** @param untilEnded to return as soon as an operation has completed: its awaiter may have the next one */
  #poll(atMost: number, untilEnded: boolean): number {
    if (this.#isStopped) return 0;
    let ended = 0;
    const start = performance.now();
    ensureGpuContext();
    this.#isQuiet = false;
    for (let i = 0; i < maxCallsPerTurn; i++) {
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
  /** Called when UCX has news, or one of the other descriptors is readable. */
  wake(): void {
    this.#abandonTransferred(); // first: UCX writes to no memory while we sleep
    const now = performance.now();
    const isSoon = now - this.#lastSleep < soonAfterSleep;
    this.#lastCheck = now; // the callbacks below count as one
    this.#patience = isSoon ? patienceAtFirst : 0;
    this.#turn();
    for (const { act } of this.#also) act();
    if (!isSoon) this.#onLateWake?.();
  }

  /** Sets a callback for wakeups some time after the worker fell asleep, which may be no more than UCX's own checks. */
  onLateWake(act: () => void): void {
    this.#onLateWake = act;
  }

  /** Sets a callback for when UCX was driven, and may have new messages. */
  onDriven(act: () => void): void {
    this.#onDriven = act;
  }

  // law ucx/Progress.abandonTransferred: ucx/transferred
  /** Cancels all operations whose memory was transferred; UCX forgets receives without a message. */
  #abandonTransferred(): void {
    if (this.#pending === 0) return;
    for (const operation of this.#operations.transferred()) this.cancel(operation, transferred());
  }

  /**
   * Wakes up for another descriptor, too, which the worker closes after its last sleep. While the worker does not
   * sleep, the callback runs four times a second.
   */
  watchDescriptor(watched: Watched, act: () => void): void {
    this.#also.push({ fd: watched.fd, act });
    this.#resources.watched.push(watched);
    this.#resources.watch?.close(); // the next sleep covers all of them
    this.#resources.watch = undefined;
    this.#queueTurn();
  }

  // law ucx/Progress.checkIfDue: ucx/peer_liveness, ucx/death
  #checkIfDue(now: number): void {
    if (now - this.#lastCheck < checkEvery) return;
    this.#lastCheck = now;
    this.#abandonTransferred();
    for (const { act } of this.#also) act();
  }

  /** Answers other workers from now on, even while no operation is pending. */
  answerPeers(): void {
    this.#answersPeers = true;
    this.#queueTurn();
  }

  /** Keeps the process alive, until the returned function is called. */
  retainProcess(): () => void {
    this.#processRetains++;
    this.#keepAlive();
    let isRetained = true;
    return () => {
      if (isRetained) this.#processRetains--;
      isRetained = false;
      this.#keepAlive();
    };
  }

  // law ucx/Progress.retainWorker: ucx/dropped
  /** Keeps the worker from being collected until the returned function is called. Does not keep the process alive. */
  retainWorker(): () => void {
    this.#workerRetains++;
    this.#queueTurn(); // it may be asleep as a worker that is not awaited
    let isRetained = true;
    return () => {
      if (isRetained) this.#workerRetains--; // what ends a wait drives UCX: the next sleep finds out
      isRetained = false;
    };
  }

  /** Keeps the process alive until a promise settles that depends on a message from another worker. */
  async waitsFor<T>(news: Promise<T>): Promise<T> {
    const release = this.retainProcess();
    return await news.finally(release);
  }

  // law ucx/Progress.afterNews: ucx/endpoint
  /** Runs a callback once all current news has been handled. For UCX callbacks, inside which UCX must not be polled. */
  afterNews(act: () => void): void {
    this.#afterNews.push(act);
  }

  /** Cancels everything. @returns how many operations UCX has not returned yet */
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

  /** Drains completed operations from the ring. */
  #drain(): number {
    const operations = this.#operations;
    let count = 0;
    for (let operation = operations.next(); operation !== undefined; operation = operations.next()) {
      this.#pending--;
      this.#end(operation);
      count++;
    }
    if (this.#onDriven !== null) this.#onDriven();
    if (!this.#copies.isEmpty) count += this.#copies.look();
    if (this.#afterNews.length > 0) this.#actAfterNews();
    return count;
  }

  #actAfterNews(): void {
    const callbacks = this.#afterNews.splice(0);
    for (let i = 0; i < maxCallsPerTurn && !this.#isStopped && this.#progress(this.#worker) !== 0; i++);
    this.#drain();
    for (const callback of callbacks) callback();
  }

  /** Whether anything is awaited. */
  get #isAwaited(): boolean {
    return this.#pending > this.#abandoned || this.#processRetains > 0;
  }

  #keepAlive(): void {
    this.#resources.watch?.keepAlive(this.#isAwaited);
    this.#queueTurn(); // it may be asleep as a worker that is not awaited
  }

  // law ucx/Progress.lands: ucx/pool_staging
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
        this.#operations.returnToPool(operation);
      }
      return;
    }
    const result = operation.result();
    this.#operations.returnToPool(operation);
    if (disarm !== null) disarm();
    if (failure === null) resolve(result);
    else reject?.(failure);
  }

  /** The promise of an operation that completed before it could be awaited. */
  #settledNow(operation: Operation): Promise<unknown> {
    const failure = errorOf(operation);
    const result = operation.result();
    this.#operations.returnToPool(operation);
    if (failure !== null) return Promise.reject(failure);
    // Already settled promises would never let the event loop turn.
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

  // law ucx/Progress.spin: ucx/pool_staging
  /** Polls briefly, within a microtask: the answer to a message often arrives before the event loop turns. */
  readonly #spin = (): void => {
    this.#isSpinQueued = false;
    if (this.#isStopped) return;
    const start = performance.now();
    this.#lastNews = start;
    this.#patience = patienceAtMost;
    if (start - this.#lastTurn < turnEvery && !isServing()) {
      const progress = this.#progress;
      ensureGpuContext();
      for (let n = 1;; n++) {
        progress(this.#worker);
        if (this.#drain() > 0) {
          if (this.#mode !== "event") this.#spinFor = Math.min(2 * this.#spinFor, spinAtMost);
          this.#queueTurn(); // the awaiter runs first, and makes this poll again if it awaits more
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

  // law ucx/Progress.turn: ucx/progress, ucx/unclosed
  readonly #turn = (): void => {
    this.#isTurnQueued = false;
    if (this.#isStopped) return;
    const now = performance.now();
    this.#lastTurn = now;
    this.#checkIfDue(now);
    if (now - lastKept >= keepEvery) {
      lastKept = now;
      keepFromChildren(); // UCX may have accepted connections
    }
    const hasEnded = this.#poll(turnAtMost, true) > 0; // its awaiter runs first, and may have more work for UCX
    const isIdle = this.#pending === 0 && !hasEnded && this.#copies.isEmpty;
    if (isIdle && !this.#answersPeers && this.#processRetains === 0 && this.#workerRetains === 0) {
      this.#resources.watch?.keepAlive(false); // set when it fell asleep to wait for what was given up
      return void awaited.delete(this);
    }
    if (this.#lastNews > now) this.#patience = Math.min(2 * this.#patience, patienceAtMost);
    const isPolling = hasEnded || !this.#isQuiet || // UCX's remaining work triggers no wakeup
      this.#copies.areDueWithin(patienceAtMost) ||
      // Falling asleep between two messages, although none is awaited, keeps the event loop from its timers.
      (this.#pending > this.#abandoned && this.#mode !== "adaptive"
        ? this.#mode === "busy"
        : now - this.#lastNews < this.#patience);
    if (isPolling) this.#queueTurn();
    else this.#sleep();
  };

  // law ucx/Progress.sleep: ucx/endpoint, ucx/unclosed, ucx/dropped, ucx/few_files, unix/inheritance,
  //   ucx/failing_calls
  /** Sleeps until UCX has news. News that came before the worker was armed keeps it awake. */
  #sleep(): void {
    const status = this.#ucp.wakeup.ucp_worker_arm(this.#worker);
    if (status === ucs_status_t.UCS_ERR_BUSY) return this.#queueTurn();
    const isArmed = status === ucs_status_t.UCS_OK; // else UCX would not wake it
    this.#lastSleep = performance.now();
    keepFromChildren(); // from now on nothing happens
    this.#copies.wakeBy(() => this.#queueTurn());
    if (this.#isAwaited || this.#workerRetains > 0) awaited.add(this);
    else awaited.delete(this); // until it wakes up only the program references it
    const watch = isArmed ? this.#resources.watch ??= this.#watchWorker() : undefined;
    if (watch === undefined) return this.#turnLater();
    watch.keepAlive(this.#isAwaited);
    watch.start();
  }

  /** Undefined if UCX has no descriptor for it, or the system no descriptor or thread. */
  #watchWorker(): ReadableWatch | undefined {
    // A worker that is no longer referenced can be collected while it sleeps.
    const progress = new WeakRef(this);
    try {
      const own = this.descriptor();
      if (own === null) return undefined;
      return watchReadable([own, ...this.#also.map(({ fd }) => fd)], () => progress.deref()?.wake());
    } catch (error) {
      if (error instanceof SystemError || error instanceof FfiError) return undefined;
      throw error;
    }
  }

  /** Turns again after a pause: an error here would reach nobody, and end the program or leave the worker asleep. */
  #turnLater(): void {
    const progress = new WeakRef(this);
    this.#nextTurn ??= nodeBuiltin("node:timers").setTimeout(() => {
      const alive = progress.deref();
      if (alive === undefined) return;
      alive.#nextTurn = undefined;
      alive.#abandonTransferred(); // as after a sleep
      alive.#turn();
    }, sleeplessPause);
    if (this.#isAwaited) this.#nextTurn.ref();
    else this.#nextTurn.unref();
  }

  /** The descriptor on which the worker sleeps, which UCX owns; null if it has none. */
  descriptor(): number | null {
    using arena = new NativeArena();
    const fd = arena.out("i32");
    const status = this.#ucp.wakeup.ucp_worker_get_efd(this.#worker, fd.$address);
    return status === ucs_status_t.UCS_OK ? fd.value : null;
  }
}

// law ucx/errorOf: ucx/transferred
/** Why an operation has failed, or null. */
function errorOf(operation: Operation): Error | null {
  const { status, call } = operation;
  if (status === ucs_status_t.UCS_OK) return operation.isTransferred ? transferred() : operation.failure;
  return new UcxError(call, status, advice(status));
}
