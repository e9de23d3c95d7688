/**
 * The causality checker: a driver that does the same as another one, and checks that nothing is left to chance.
 *
 * @module
 */
import { type CudaDriver, observeHost, observerOf } from "../driver/mod.ts";
import { checkBoolean, checkOptions, type OptionNames, show, showAs, showGiven } from "../layout/mod.ts";
import { makeCheckedDriver } from "./checked_driver.ts";
import type { CausalityReport } from "./report.ts";
import { CheckerState } from "./checker_state.ts";

/** Options of the causality checker. */
export interface CheckOptions {
  /**
   * Receives each report. Default: the call that shows the program to be wrong throws a `CausalityError`. The reports
   * are kept in any case, and each pair of call sites is reported once.
   */
  readonly onReport?: (report: CausalityReport) => void;
  /**
   * Whether closing the Cuda reports objects that still exist. Default true. `false` is for programs that close their
   * Cuda before the objects made through it, which is allowed: it lives until the last of them is closed.
   */
  readonly leaks?: boolean;
  /**
   * Which bytes of its memory a kernel is assumed to touch. `certain` (default): only some of them, so a race is
   * reported only for an access that covers all of them; there are no false alarms. `whole`: all of them, and a kernel
   * is assumed to write them unless it is known only to read; no race is missed, but kernels that use separate parts of
   * one allocation cause false alarms.
   */
  readonly kernels?: "certain" | "whole";
}

/** The names of {@linkcode CheckOptions}. */
const checkOptionNames: OptionNames<CheckOptions> = { onReport: true, leaks: true, kernels: true };

/** A checked driver, and the reports on the program that uses it. Made by {@linkcode checkDriver}. */
export class CausalityChecker {
  /** The driver to use: a value with the functions of libcuda. */
  readonly driver: CudaDriver;
  /** The driver that does the work. */
  readonly inner: CudaDriver;
  readonly #state: CheckerState;
  readonly #stopObserving: () => void;
  #closed = false;

  /** Use {@linkcode checkDriver}. */
  constructor(inner: CudaDriver, options: CheckOptions) {
    checkOptions(options, checkOptionNames);
    checkIsDriver(inner);
    const { onReport, leaks = true, kernels = "certain" } = options;
    if (onReport !== undefined && typeof onReport !== "function") {
      throw new TypeError(`Expected onReport to be a function, got ${show(onReport)}`);
    }
    checkBoolean("leaks", leaks);
    if (kernels !== "certain" && kernels !== "whole") {
      throw new TypeError(`Expected kernels to be "certain" or "whole", got ${show(kernels)}`);
    }
    this.inner = inner;
    this.#state = new CheckerState(inner, options);
    this.driver = makeCheckedDriver(this.#state, this);
    this.#stopObserving = observeHost(this);
  }

  /** The checker of a driver, or null if it has none. */
  static of(driver: CudaDriver): CausalityChecker | null {
    const check = observerOf(driver);
    return check instanceof CausalityChecker ? check : null;
  }

  /** What was reported so far, thrown or not. */
  get reports(): readonly CausalityReport[] {
    return this.#state.reporter.reports;
  }

  // law checker/CausalityChecker.mark: checker/lifetime
  /**
   * Notes a stream's current position, for a wait that the driver does not see: it ends when a host function is called.
   *
   * @returns a function to call when the wait is over
   */
  mark(handle: bigint): () => void {
    const state = this.#state;
    const stream = state.stream(handle, "cuLaunchHostFunc");
    if (stream === null) return () => {};
    const [clock, seq] = [[...stream.clock], stream.last];
    return () => state.hostWaits(clock, "completed()", [seq]);
  }

  /** Notes that another library has made a stream, whose handle may be that of a destroyed stream. */
  foreignStream(handle: bigint): void {
    this.#state.foreignStream(handle);
  }

  // law checker/CausalityChecker.orderedElsewhere: checker/checker
  /**
   * Notes that a stream was made to wait for another one through another driver, as Python does when a consumer
   * requests a capsule. The wait counts as made now.
   *
   * @param context the context that default streams belong to
   */
  orderedElsewhere(context: bigint, first: bigint, then: bigint): void {
    const { cuCtxPushCurrent_v2, cuCtxPopCurrent_v2 } = this.inner.context;
    const state = this.#state;
    if (cuCtxPushCurrent_v2(context) !== 0) return; // it is gone, and all its streams with it
    try {
      const [from, to] = [state.stream(first, "cuEventRecord"), state.stream(then, "cuStreamWaitEvent")];
      if (from === null || to === null) return;
      const seq = state.mark(from, "record", "cuEventRecord");
      state.mark(to, "wait", "cuStreamWaitEvent", seq);
      state.order.wait(to, [...from.clock]);
    } finally {
      cuCtxPopCurrent_v2(state.reader.address);
    }
  }

  // law checker/CausalityChecker.received: checker/received
  /**
   * Notes that memory of another process was received on a stream, whose work so far waits for that process. It counts
   * as written there: uses elsewhere must be ordered after that. Memory received again while this process still holds
   * it is used as the two processes have agreed.
   */
  received(address: bigint, bytes: number, stream: bigint, call: string): void {
    const state = this.#state;
    const start = Number(address);
    const allocation = state.memory.find(start);
    if (allocation?.kind !== "imported" || allocation.opened > 1) return;
    const home = state.stream(stream, call);
    if (home !== null) state.enqueue(home, call, [{ start, end: start + bytes, kind: "write", writes: true }]);
  }

  // law checker/CausalityChecker.hostAccess: checker/thrown
  /** Notes that the host reads or writes memory directly. */
  hostAccess(address: bigint, bytes: number, writes: boolean, call: string): void {
    const state = this.#state;
    const start = Number(address);
    if (state.isLost || !Number.isSafeInteger(start + bytes)) return;
    state.touchByHost(call, start, start + bytes, writes);
  }

  // law checker/CausalityChecker.newHostMemory: checker/new_host_memory
  /**
   * Notes ordinary host memory that is new. What was at its address was freed when the streams that used it had passed,
   * which the program need not have waited for.
   */
  newHostMemory(address: bigint, bytes: number): void {
    const start = Number(address);
    if (Number.isSafeInteger(start + bytes)) this.#state.memory.newHostMemory(start, start + bytes);
  }

  /** Notes the user's name for a stream. */
  nameStream(handle: bigint, name: string): void {
    this.#state.nameStream(handle, name);
  }

  /** Notes the user's name for memory. */
  nameMemory(address: bigint, name: string): void {
    const allocation = this.#state.memory.find(Number(address));
    if (allocation !== undefined) allocation.name = name;
  }

  /** Notes the user's name for a device. */
  nameDevice(ordinal: number, name: string): void {
    this.#state.deviceNames.set(ordinal, name);
  }

  /** Notes that an object was closed by its user, although it is still retained: it is not a leak. */
  closedByUser(handle: bigint): void {
    this.#state.lifetimes.closedByUser(handle);
  }

  // law checker/CausalityChecker.close: checker/thrown, checker/copies
  /**
   * Reports what was made and still exists: memory, streams, events, pools and graphs. Closing twice is harmless.
   *
   * @throws {CausalityError} if anything is left, and reports are not collected
   */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#stopObserving();
    const { lifetimes, memory, reporter, isLost, options: { leaks = true } } = this.#state;
    reporter.printUninspected();
    // Nothing can be freed in a context that is lost.
    const left = leaks && !isLost ? lifetimes.leaks(memory.allocations) : [];
    if (left.length > 0) reporter.leaks(left);
  }

  /** Reports leaks. */
  [Symbol.dispose](): void {
    this.close();
  }

  static {
    showAs(CausalityChecker, (checker) => {
      const { length } = checker.reports;
      return `(${length} report${length === 1 ? "" : "s"})${checker.#closed ? ", closed" : ""}`;
    });
  }
}

/**
 * Wraps a driver, real or simulated: the result does the same and reports what its caller leaves to chance.
 *
 * @example
 * ```ts
 * import { checkDriver } from "@causeway/causeway/checker";
 * import { simulateDriver } from "@causeway/causeway/sim";
 *
 * using checker = checkDriver(simulateDriver().driver);
 * console.log(checker.driver.opening.cuInit(0)); // 0
 * ```
 *
 * @throws {TypeError} if it is not a driver, or an option is invalid
 */
export function checkDriver(driver: CudaDriver, options: CheckOptions = {}): CausalityChecker {
  return new CausalityChecker(driver, options);
}

// law checker/checkIsDriver: cuda/bad_input
/** @throws {TypeError} if a program passes something else as a driver, such as what has one */
export function checkIsDriver(driver: CudaDriver): void {
  if (typeof driver?.opening === "object") return;
  throw new TypeError(
    `Cannot use ${showGiven(driver)} as a driver: ` +
      "expected the functions of libcuda, as in simulateDriver().driver, or checkDriver(driver).driver",
  );
}
