/**
 * Frees what the driver does not free in stream order: pinned, managed and synchronous memory, and pools. These frees
 * wait for the work before them without blocking the host. What a free waits for after consumers have released is in
 * `release_order.ts`.
 *
 * @module
 */
import { CUresult } from "../../bindings/cuda_types.ts";
import { failuresOf, nodeBuiltin, reportUncaught, runAll, throwFirst } from "../ffi/mod.ts";
import {
  type CudaDevice,
  type CudaEvent,
  type CudaStream,
  internals,
  isBlockedByCapture,
  isCapturing,
  isDoneByPoll,
  isRefusedByCapture,
  PerDevice,
  waitForDevice,
} from "../device/mod.ts";
import { isSticky, observerOf } from "../driver/mod.ts";

/** A free that waits for an event. */
interface Pending {
  readonly passed: CudaEvent;
  /** The stream whose end the event marks; null if it marks the end of all work of a device. */
  readonly stream: CudaStream | null;
  /** The event's device, retained. */
  readonly device: Disposable;
  readonly free: () => void;
}

let pending: Pending[] = [];

/** Work that cannot even be enqueued while another library captures: no event could mark what it must come after. */
interface Blocked {
  readonly device: CudaDevice;
  readonly retained: Disposable;
  readonly work: () => void;
}

let blocked: Blocked[] = [];

// law order/pollDeferred: memory/beside_captures
/** Runs the frees whose events have passed, and the work that captures no longer block. */
export function pollDeferred(): void {
  freeWhere(isOver);
  retryBlocked(isBlockedByCapture);
}

// law order/retryBlocked: memory/beside_captures
/** Runs all work that is no longer blocked, even if some of it fails: the first error is then thrown at the end. */
function retryBlocked(isStillBlocked: (device: CudaDevice) => boolean): void {
  if (blocked.length === 0) return;
  const [due, still] = [[], []] as [Blocked[], Blocked[]];
  for (const one of blocked) (isStillBlocked(one.device) ? still : due).push(one);
  blocked = still;
  runAll(due.flatMap(({ work, retained }) => [work, () => retained[Symbol.dispose]()]));
}

function block(device: CudaDevice, work: () => void): void {
  blocked.push({ device, retained: device.retained({ evenClosed: true }), work });
  pollAfterClose(device);
}

// law order/whenUnblocked: memory/beside_captures
/**
 * Runs work in stream order: at once, unless the stream is the legacy default stream and another library captures a
 * stream that the work would wait for, which would invalidate the capture. Then a later poll runs it.
 */
export function whenUnblocked(stream: CudaStream, work: () => void): void {
  if (stream.isLegacy && isBlockedByCapture(stream.device)) block(stream.device, work);
  else work();
}

// law order/freeWhere: order/deferred_free, memory/memory_programs, order/pageable_in_use
/** Runs all pending frees that `mayFree` allows, even if some fail: the first error is then thrown at the end. */
function freeWhere(mayFree: (passed: CudaEvent) => boolean): void {
  if (pending.length === 0) return; // nearly always, and every allocation calls this
  const waiting = pending;
  pending = [];
  /** Streams that have not reached an event, and so none of the later ones. */
  const busy = new Set<CudaStream>();
  throwFirst(failuresOf(waiting, (one) => {
    const { stream } = one;
    let isDue = false;
    try {
      isDue = (stream === null || !busy.has(stream)) && mayFree(one.passed);
    } finally {
      if (!isDue) {
        pending.push(one);
        if (stream !== null) busy.add(stream);
      }
    }
    if (isDue) finish(one);
  }));
}

// law order/isOver: checker/polls, order/deferred_free, memory/memory_programs
/**
 * Whether there is nothing to wait for: the work is done, or its context is lost and runs nothing any more. If the
 * driver cannot say, the answer is no, and a later poll queries again.
 */
export function isOver(work: CudaEvent | CudaStream): boolean {
  if (isCapturing(work.device.driver)) return false; // nothing may be queried meanwhile
  try {
    return work[isDoneByPoll];
  } catch (error) {
    return isSticky(error);
  }
}

// law order/finish: order/deferred_free, memory/memory_programs
function finish({ passed, device, free }: Pending): void {
  try {
    free();
  } finally {
    try {
      passed.close();
    } finally {
      device[Symbol.dispose]();
    }
  }
}

// law order/defer: order/pageable_in_use
function defer(device: CudaDevice, one: Pending): void {
  if (pending.length >= pollAt || bytes >= pollAtBytes) pollQuietly();
  pending.push(one);
  pollAfterClose(device);
}

// law order/pollAfterClose: order/deferred_free, memory/memory_programs
/** Makes sure that pending frees are polled even when nothing is allocated on a device any more. */
function pollAfterClose(device: CudaDevice): void {
  if (device.isClosed) pollPending();
  else polledAtClose.of(device);
}

/** Devices whose close starts polling. */
const polledAtClose = new PerDevice(() => true, pollPending);

/** How many pending frees a call may poll when it needs only one of them. */
const maxCheapPoll = 64;

/**
 * How many frees may be pending before adding one polls all: twice as many as the last poll left, so that the cost of
 * each is constant.
 */
let pollAt = maxCheapPoll;

/** Host memory whose free was deferred since the last poll, in bytes, and how many bytes are worth a poll. */
let bytes = 0;
const pollAtBytes = 16 * 2 ** 20;

/** Runs the frees whose events have passed, if few are pending: otherwise a later poll does. */
export function pollIfFew(): void {
  if (pending.length <= maxCheapPoll) pollQuietly();
}

/**
 * Polls for a caller that errors of other memory do not concern: they are not thrown, but reported if
 * `CAUSEWAY_LEAKS=1`.
 */
function pollQuietly(): void {
  try {
    runAll([() => retryBlocked(isBlockedByCapture), () => freeWhere(isOver)]);
  } catch (error) {
    reportUncaught("freeing memory whose work is done", error);
  }
  pollAt = Math.max(maxCheapPoll, 2 * pending.length);
  bytes = 0;
}

/** How long polling continues without progress, and its interval, in milliseconds. */
const patience = { all: 60_000, each: 20 };

let isPolling = false;

/** How many frees are waiting. */
function waiting(): number {
  return pending.length + blocked.length;
}

/**
 * Polls on a timer until nothing is waiting: once a `Cuda` is closed, there may be no further allocations to poll. The
 * timer does not keep the program alive.
 */
export function pollPending(): void {
  if (isPolling || waiting() === 0) return;
  isPolling = true;
  const { clearInterval, setInterval } = nodeBuiltin("node:timers");
  let inVain = 0;
  const timer = setInterval(() => {
    const before = waiting();
    pollQuietly();
    inVain = waiting() < before ? 0 : inVain + patience.each;
    if (waiting() > 0 && inVain < patience.all) return;
    clearInterval(timer);
    isPolling = false;
  }, patience.each);
  timer.unref();
}

// law order/freeAfter: order/deferred_free, memory/memory_programs, memory/beside_captures, copy/page_locked
/**
 * Calls `free` once everything enqueued on the stream is done: at once if it already is, else at the next allocation,
 * when much is pending, or soon after the `Cuda` is closed.
 *
 * @param stream the home stream, or null for memory that no stream uses
 * @param size bytes of ordinary host memory that stay pinned until then
 */
export function freeAfter(stream: CudaStream | null, free: () => void, size = 0): void {
  if (stream === null || (stream.isKnownNonBlocking && isOver(stream))) return free();
  whenUnblocked(stream, () => freeAtEnd(stream, free, size));
}

// law order/freeAtEnd: order/deferred_free, memory/memory_programs
function freeAtEnd(stream: CudaStream, free: () => void, size: number): void {
  const passed = markEnd(stream);
  if (passed === null) return free();
  // An idle stream may still have to wait for work on a default stream, which only the event reflects.
  if (!stream.isKnownNonBlocking && isOver(passed)) return runAll([free, () => passed.close()]);
  observerOf(stream.device.driver)?.closedByUser(passed.handle);
  bytes += size;
  defer(stream.device, { passed, stream, device: stream.device.retained({ evenClosed: true }), free });
}

/**
 * Marks the current end of a stream with an event; if the driver has no event left, waits for the stream and returns
 * null.
 */
export function markEnd(stream: CudaStream): CudaEvent | null {
  try {
    return stream.recordNew();
  } catch {
    waitForEnd(stream);
    return null;
  }
}

// law order/waitForEnd: order/deferred_free, memory/memory_programs
/** Makes the host wait for the work enqueued on a stream, and for all work that its next work would come after. */
export function waitForEnd(stream: CudaStream): void {
  try {
    stream.synchronize(); // reports the error, if the cause is something else
  } catch (error) {
    if (!isSticky(error)) throw error; // in a lost context there is nothing left to wait for
  }
  if (!stream.isKnownNonBlocking) waitForDevice(stream.device);
}

// law order/waitIfElsewhere: memory/memory_pool
/**
 * After memory of a pool of our own was freed on a stream: makes the host wait for the stream if it is a foreign one of
 * another context than the device's primary one. The pool must not be destroyed before the driver has finished with the
 * free. Events of the primary context do not tell, and the stream's owner may destroy it, and its context, at any time.
 */
export function waitIfElsewhere(stream: CudaStream): void {
  if (stream[internals].isOwned || stream.needsContext) return;
  const { device, device: { driver, outParameter } } = stream;
  const code = driver.stream.cuStreamGetCtx(stream.handleFor("ask"), outParameter.$address);
  if (code === CUresult.CUDA_SUCCESS && outParameter.value === device.context) return;
  try {
    stream.synchronize();
  } catch (error) {
    if (!isSticky(error)) throw error;
  }
}

// law order/freeAfterAll: order/deferred_free
/**
 * Calls `free` once everything now enqueued on these devices, on any stream, is done: at once if it already is, else
 * when {@linkcode freeAfter} would. Devices are awaited in turn: a later one also for work enqueued in the meantime.
 */
export function freeAfterAll(devices: readonly CudaDevice[], free: () => void): void {
  const [device, ...others] = devices;
  if (device === undefined) return free();
  const next = () => freeAfterAll(others, free);
  if (device.isGone) return next(); // its context went away during the wait for another device
  const passed = markAll(device);
  if (passed === "blocked") return block(device, () => freeAfterAll(devices, free));
  if (passed === null) return next();
  if (isOver(passed)) return runAll([() => passed.close(), next]);
  observerOf(device.driver)?.closedByUser(passed.handle);
  defer(device, { passed, stream: null, device: device.retained({ evenClosed: true }), free: next });
}

// law order/markAll: memory/beside_captures, order/deferred_free
/** Marks the current end of all work of a device; if the driver cannot, waits for it and returns null. */
function markAll(device: CudaDevice): CudaEvent | "blocked" | null {
  if (isBlockedByCapture(device)) return "blocked";
  let event: CudaEvent | null = null;
  try {
    event = device.makeEvent();
    if (device.recordContext(event)) return event;
    event.close();
  } catch (error) {
    event?.close();
    if (isRefusedByCapture(error)) return "blocked";
  }
  try {
    waitForDevice(device);
  } catch (error) {
    if (isRefusedByCapture(error)) return "blocked";
    throw error;
  }
  return null;
}

// law order/drainFrees: order/deferred_free, memory/memory_programs
/** Waits for all pending work and runs its frees: tests need not wait for the event loop. */
export function drainFrees(): void {
  while (waiting() > 0) {
    retryBlocked(() => false);
    freeWhere((passed) => {
      if (!isOver(passed)) passed.synchronize();
      return true;
    });
  }
}
