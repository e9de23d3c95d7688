/**
 * Progress: when UCX is driven, on the JavaScript thread. What completes meanwhile is settled in `completions.ts`.
 *
 * @module
 */
import { ucs_status_t } from "../../bindings/ucp_types.ts";
import { FfiError, NativeArena, nodeBuiltin, SystemError } from "../ffi/mod.ts";
import { type ReadableWatch, watchReadable } from "../native/mod.ts";
import { consumerWaitsForEvent } from "../order/mod.ts";
import { keepFromChildren } from "../unix/mod.ts";
import { type CompletionResources, Completions, maxCallsPerTurn, turnEvery } from "./completions.ts";
import { atNextTurn, isServing } from "./event_loop.ts";
import { ensureGpuContext } from "./gpu_context.ts";
import type { Operation } from "./operation.ts";

/**
 * How a worker waits for messages. `adaptive`: polls briefly, longer while messages flow, then sleeps until UCX has
 * news. `event`: polls for 0.02 ms, then sleeps. `busy`: polls as long as an operation is pending, and sleeps while
 * none is, a moment after the last news. In all of them the event loop turns at least once a millisecond.
 */
export type ProgressMode = "adaptive" | "busy" | "event";

/** The modes. */
export const progressModes: readonly ProgressMode[] = ["adaptive", "busy", "event"];

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
export interface ProgressResources extends CompletionResources {
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

/** Polls a worker while operations are pending, and sleeps while UCX has nothing to do. */
export class Progress extends Completions {
  /** The worker, kept alive as long as this. */
  readonly whose: object | null;
  readonly #resources: ProgressResources;
  readonly #mode: ProgressMode;
  /** Whether peers may need this worker to answer although it has nothing to do. */
  #answersPeers = false;
  #isSpinQueued = false;
  #isTurnQueued = false;
  /** When UCX last had news. */
  #lastNews = 0;
  /** Whether UCX had nothing more to do when it was last polled. */
  #isQuiet = true;
  #spinFor = spinAtFirst;
  #patience = patienceAtMost;
  #lastSleep = 0;
  /** Calls of `retainProcess` that have not ended: the process stays alive although no operation is pending. */
  #processRetains = 0;
  /** Calls of `retainWorker` that have not ended: the worker is not collected, but the process may end. */
  #workerRetains = 0;
  /** Other descriptors to wake up for, and their callbacks. */
  readonly #also: { readonly fd: number; readonly act: () => void }[] = [];
  #onLateWake: (() => void) | undefined;
  /** When those callbacks last ran without a sleep, by `performance.now()`. */
  #lastCheck = 0;
  /** Makes the next turn, while it cannot sleep. */
  #nextTurn: { ref(): unknown; unref(): unknown } | undefined;

  /** `whose`: the worker; null if it is gone, and only its operations are ended here. */
  constructor(resources: ProgressResources, mode: ProgressMode, whose: object | null) {
    super(resources);
    this.whose = whose;
    this.#resources = resources;
    this.#mode = mode;
  }

  // law ucx/Progress.runUntilDone: ucx/pool_staging
  /** Blocks this thread until UCX is done with an operation, or for `timeout` milliseconds. */
  runUntilDone(operation: Operation, timeout: number | undefined): void {
    const end = timeout === undefined ? Infinity : performance.now() + timeout;
    const { drive } = this;
    operation.isWaitedFor = true;
    if (operation.lands !== null) { // its message had arrived
      consumerWaitsForEvent(operation.lands.event, null);
      this.landed(operation);
    }
    let left = maxCallsPerTurn; // polls left after a cancel, for UCX to return it
    ensureGpuContext();
    for (let n = 1; !operation.isDone; n++) {
      drive(this.worker);
      this.drain();
      if (operation.unblocked !== null && left-- === 0) return;
      if (n % 256 !== 0) continue;
      const now = performance.now();
      if (now > end) return;
      this.#checkIfDue(now);
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
    if (this.isStopped) return 0;
    let ended = 0;
    const start = performance.now();
    ensureGpuContext();
    this.#isQuiet = false;
    for (let i = 0; i < maxCallsPerTurn; i++) {
      const hasWorked = this.drive(this.worker) !== 0;
      const drained = this.drain();
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
    this.abandonTransferred(); // first: UCX writes to no memory while we sleep
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

  /**
   * Wakes up for another descriptor, too, which the worker closes after its last sleep. While the worker does not
   * sleep, the callback runs four times a second.
   */
  watchDescriptor(watched: Watched, act: () => void): void {
    this.#also.push({ fd: watched.fd, act });
    this.#resources.watched.push(watched);
    this.#resources.watch?.close(); // the next sleep covers all of them
    this.#resources.watch = undefined;
    this.queueTurn();
  }

  // law ucx/Progress.checkIfDue: ucx/peer_liveness, ucx/death
  #checkIfDue(now: number): void {
    if (now - this.#lastCheck < checkEvery) return;
    this.#lastCheck = now;
    this.abandonTransferred();
    for (const { act } of this.#also) act();
  }

  /** Answers other workers from now on, even while no operation is pending. */
  answerPeers(): void {
    this.#answersPeers = true;
    this.queueTurn();
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
    this.queueTurn(); // it may be asleep as a worker that is not awaited
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

  // law ucx/Progress.stop: ucx/progress
  /** Cancels everything, drives the worker until it is quiet or `patience` milliseconds have passed, and stops. */
  stop(reason: unknown, patience = 200): void {
    this.cancelAll(reason);
    const deadline = performance.now() + patience;
    while (this.pending > 0 && performance.now() < deadline) this.poll();
    this.isStopped = true;
    this.copies.clear();
    awaited.delete(this);
    this.#resources.watch?.close();
  }

  /** Whether anything is awaited. */
  get #isAwaited(): boolean {
    return this.pending > this.abandoned || this.#processRetains > 0;
  }

  #keepAlive(): void {
    this.#resources.watch?.keepAlive(this.#isAwaited);
    this.queueTurn(); // it may be asleep as a worker that is not awaited
  }

  protected override queueSpin(): void {
    if (this.#isSpinQueued) return;
    this.#isSpinQueued = true;
    queueMicrotask(this.#spin);
  }

  protected override queueTurn(): void {
    if (this.#isTurnQueued || this.isStopped) return;
    this.#isTurnQueued = true;
    atNextTurn(this.#turn);
  }

  // law ucx/Progress.spin: ucx/pool_staging
  /** Polls briefly, within a microtask: the answer to a message often arrives before the event loop turns. */
  readonly #spin = (): void => {
    this.#isSpinQueued = false;
    if (this.isStopped) return;
    const start = performance.now();
    this.#lastNews = start;
    this.#patience = patienceAtMost;
    if (start - this.lastTurn < turnEvery && !isServing()) {
      const { drive } = this;
      ensureGpuContext();
      for (let n = 1;; n++) {
        drive(this.worker);
        if (this.drain() > 0) {
          if (this.#mode !== "event") this.#spinFor = Math.min(2 * this.#spinFor, spinAtMost);
          this.queueTurn(); // the awaiter runs first, and makes this poll again if it awaits more
          return;
        }
        if (n % 16 !== 0) continue;
        const now = performance.now();
        if (now - start > this.#spinFor || now - this.lastTurn > turnEvery) break;
      }
      this.#spinFor = Math.max(this.#spinFor / 2, spinAtFirst);
    }
    this.queueTurn();
  };

  // law ucx/Progress.turn: ucx/progress, ucx/unclosed
  readonly #turn = (): void => {
    this.#isTurnQueued = false;
    if (this.isStopped) return;
    const now = performance.now();
    this.lastTurn = now;
    this.#checkIfDue(now);
    if (now - lastKept >= keepEvery) {
      lastKept = now;
      keepFromChildren(); // UCX may have accepted connections
    }
    const hasEnded = this.#poll(turnAtMost, true) > 0; // its awaiter runs first, and may have more work for UCX
    const isIdle = this.pending === 0 && !hasEnded && this.copies.isEmpty;
    if (isIdle && !this.#answersPeers && this.#processRetains === 0 && this.#workerRetains === 0) {
      this.#resources.watch?.keepAlive(false); // set when it fell asleep to wait for what was given up
      return void awaited.delete(this);
    }
    if (this.#lastNews > now) this.#patience = Math.min(2 * this.#patience, patienceAtMost);
    const isPolling = hasEnded || !this.#isQuiet || // UCX's remaining work triggers no wakeup
      this.copies.areDueWithin(patienceAtMost) ||
      // Falling asleep between two messages, although none is awaited, keeps the event loop from its timers.
      (this.pending > this.abandoned && this.#mode !== "adaptive"
        ? this.#mode === "busy"
        : now - this.#lastNews < this.#patience);
    if (isPolling) this.queueTurn();
    else this.#sleep();
  };

  // law ucx/Progress.sleep: ucx/endpoint, ucx/unclosed, ucx/dropped, ucx/few_files, unix/inheritance,
  //   ucx/failing_calls
  /** Sleeps until UCX has news. News that came before the worker was armed keeps it awake. */
  #sleep(): void {
    const status = this.#resources.ucp.wakeup.ucp_worker_arm(this.worker);
    if (status === ucs_status_t.UCS_ERR_BUSY) return this.queueTurn();
    const isArmed = status === ucs_status_t.UCS_OK; // else UCX would not wake it
    this.#lastSleep = performance.now();
    keepFromChildren(); // from now on nothing happens
    this.copies.wakeBy(() => this.queueTurn());
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
      alive.abandonTransferred(); // as after a sleep
      alive.#turn();
    }, sleeplessPause);
    if (this.#isAwaited) this.#nextTurn.ref();
    else this.#nextTurn.unref();
  }

  /** The descriptor on which the worker sleeps, which UCX owns; null if it has none. */
  descriptor(): number | null {
    using arena = new NativeArena();
    const fd = arena.out("i32");
    const status = this.#resources.ucp.wakeup.ucp_worker_get_efd(this.worker, fd.$address);
    return status === ucs_status_t.UCS_OK ? fd.value : null;
  }
}
