/**
 * Giving back what the driver does not give back in stream order: pinned, managed and synchronous memory, and pools. The
 * end waits for the work before it without making the host wait.
 *
 * @module
 */
import { nodeBuiltin, reportUncaught, runAll } from "../ffi/mod.ts";
import {
  type CudaDevice,
  type CudaEvent,
  type CudaStream,
  isCapturing,
  isHeldUp,
  isRefusedByCapture,
} from "../device/mod.ts";
import { isSticky, observerOf } from "../driver/mod.ts";

interface Pending {
  readonly passed: CudaEvent;
  /** The stream that the event marks; null if it marks all of a device. */
  readonly stream: CudaStream | null;
  /** Ends the hold on the event's device. */
  readonly release: () => void;
  readonly free: () => void;
}

let pending: Pending[] = [];

/** What a capture of another library keeps from being done at all, for want of any way to mark what it comes after. */
interface HeldUp {
  readonly device: CudaDevice;
  /** Ends the hold on the device. */
  readonly release: () => void;
  readonly work: () => void;
}

let heldUp: HeldUp[] = [];

/** Frees what waits for nothing any more, and does what captures have held up. */
export function pollDeferred(): void {
  settle(isOver);
  tryAgain(isHeldUp);
}

/** Does what has been held up, unless it still is. All of it, even if some fails: the first error comes last. */
function tryAgain(isStillHeldUp: (device: CudaDevice) => boolean): void {
  if (heldUp.length === 0) return;
  const [due, still] = [[], []] as [HeldUp[], HeldUp[]];
  for (const one of heldUp) (isStillHeldUp(one.device) ? still : due).push(one);
  heldUp = still;
  runAll(due.flatMap(({ work, release }) => [work, release]));
}

function holdUp(device: CudaDevice, work: () => void): void {
  heldUp.push({ device, release: device.keep(), work });
  keepLookingAfter(device);
}

/**
 * Does something in the order of a stream: at once, unless that is the legacy default stream and another library captures one
 * that this would wait for, which would be spoiled. Then it is done when memory is looked after next.
 */
export function onceLetThrough(stream: CudaStream, work: () => void): void {
  if (stream.isLegacy && isHeldUp(stream.device)) holdUp(stream.device, work);
  else work();
}

/** Frees what is waiting where `mayFree` says so. All of it, even if some cannot be freed: the first error comes last. */
function settle(mayFree: (passed: CudaEvent) => boolean): void {
  if (pending.length === 0) return; // nearly always, and every allocation looks
  const waiting = pending;
  pending = [];
  const errors: unknown[] = [];
  /** Streams that are still before a mark, and so before all that came later. */
  const busy = new Set<CudaStream>();
  for (const one of waiting) {
    let passed = false;
    try {
      passed = (one.stream === null || !busy.has(one.stream)) && mayFree(one.passed);
      if (passed) finish(one);
    } catch (error) {
      errors.push(error);
    }
    if (passed) continue;
    pending.push(one);
    if (one.stream !== null) busy.add(one.stream);
  }
  if (errors.length > 0) throw errors[0];
}

/**
 * Whether nothing stands before a free: what was enqueued is done, or its context is lost and does nothing any more. If
 * the driver fails to say, it is asked again later.
 */
export function isOver(work: CudaEvent | CudaStream): boolean {
  if (isCapturing(work.device.driver)) return false; // nothing may be asked meanwhile
  try {
    return work.isDone;
  } catch (error) {
    return isSticky(error);
  }
}

function finish({ passed, release, free }: Pending): void {
  try {
    free();
  } finally {
    try {
      passed.close();
    } finally {
      release();
    }
  }
}

function defer(device: CudaDevice, one: Pending): void {
  if (pending.length >= enough || bytes >= enoughBytes) freeWhatIsOver();
  pending.push(one);
  keepLookingAfter(device);
}

/** Sees to it that somebody looks when nobody allocates on a device any more. */
function keepLookingAfter(device: CudaDevice): void {
  if (device.isClosed) return pollPending();
  if (watched.has(device)) return;
  watched.add(device);
  device.onClose(pollPending);
}

/** So many are looked at for the sake of one. */
const few = 64;

/** How many may wait before somebody looks who makes another one wait: so that looking costs each a constant time. */
let enough = few;

/** Host memory that has begun to wait since somebody looked last, in bytes, and how much of it is worth looking. */
let bytes = 0;
const enoughBytes = 16 * 2 ** 20;

/** Frees what waits for nothing any more, if looking is little work: otherwise somebody else will. */
export function pollIfFew(): void {
  if (pending.length <= few) freeWhatIsOver();
}

/** Frees what waits for nothing any more, for somebody for whom other memory's errors are not meant. */
function freeWhatIsOver(): void {
  try {
    runAll([() => tryAgain(isHeldUp), () => settle(isOver)]);
  } catch (error) {
    reportUncaught("freeing memory whose work is done", error);
  }
  enough = Math.max(few, 2 * pending.length);
  bytes = 0;
}

/** Devices whose end is waited for. */
const watched = new WeakSet<CudaDevice>();

/** How long there is looking without finding anything, in milliseconds, and how often. */
const patience = { all: 60_000, each: 20 };

let isLooking = false;

/** How much waits. */
function waiting(): number {
  return pending.length + heldUp.length;
}

/**
 * Looks now and then, until nothing is waiting: once a `Cuda` is closed, perhaps nobody allocates any more. The program may
 * end meanwhile.
 */
export function pollPending(): void {
  if (isLooking || waiting() === 0) return;
  isLooking = true;
  const { clearInterval, setInterval } = nodeBuiltin("node:timers");
  let inVain = 0;
  const timer = setInterval(() => {
    const before = waiting();
    freeWhatIsOver();
    inVain = waiting() < before ? 0 : inVain + patience.each;
    if (waiting() > 0 && inVain < patience.all) return;
    clearInterval(timer);
    isLooking = false;
  }, patience.each);
  timer.unref();
}

/**
 * Calls `free` once everything enqueued on the stream is done: at once if it is, else when memory is allocated next, when
 * much is waiting, or soon after the `Cuda` is closed.
 *
 * @param stream the home stream, or null for memory that no stream uses
 * @param size what ordinary memory of the host is kept until then counts for, in bytes
 */
export function freeAfter(stream: CudaStream | null, free: () => void, size = 0): void {
  if (stream === null || (stream.isKnownNonBlocking && isOver(stream))) return free();
  onceLetThrough(stream, () => freeAtEnd(stream, free, size));
}

function freeAtEnd(stream: CudaStream, free: () => void, size: number): void {
  const passed = markEnd(stream);
  if (passed === null) return free();
  // A stream that holds nothing may still have to come after what a default stream holds, which only the event knows.
  if (!stream.isKnownNonBlocking && isOver(passed)) return runAll([free, () => passed.close()]);
  observerOf(stream.device.driver)?.closedByUser(passed.handle);
  bytes += size;
  defer(stream.device, { passed, stream, release: stream.device.keep(), free });
}

/** Marks the present end of a stream; where the driver has no event left to give, waits for it and returns null. */
export function markEnd(stream: CudaStream): CudaEvent | null {
  try {
    return stream.recordNew();
  } catch {
    waitForEnd(stream);
    return null;
  }
}

/** Makes the host wait for what a stream holds, and for what its next work would come after. */
export function waitForEnd(stream: CudaStream): void {
  try {
    stream.synchronize(); // which says what is wrong, if it is something else
    if (!stream.isKnownNonBlocking) stream.device.synchronize();
  } catch (error) {
    if (!isSticky(error)) throw error; // in a lost context there is nothing left to wait for
  }
}

/**
 * Calls `free` once everything is done that these devices hold at this moment, on whatever stream: at once if it is, else
 * when {@linkcode freeAfter} would.
 */
export function freeAfterAll(devices: readonly CudaDevice[], free: () => void): void {
  const [device, ...others] = devices;
  if (device === undefined) return free();
  const next = () => freeAfterAll(others, free);
  if (device.isGone) return next(); // and its context with it, while another device was waited for
  const passed = markAll(device);
  if (passed === "held up") return holdUp(device, () => freeAfterAll(devices, free));
  if (passed === null) return next();
  if (isOver(passed)) return runAll([() => passed.close(), next]);
  observerOf(device.driver)?.closedByUser(passed.handle);
  defer(device, { passed, stream: null, release: device.keep(), free: next });
}

/** Marks the present end of all work of a device; where the driver cannot, waits for it and returns null. */
function markAll(device: CudaDevice): CudaEvent | "held up" | null {
  if (isHeldUp(device)) return "held up";
  let event: CudaEvent | null = null;
  try {
    event = device.makeEvent();
    if (device.recordContext(event)) return event;
    event.close();
  } catch (error) {
    event?.close();
    if (isRefusedByCapture(error)) return "held up";
  }
  try {
    device.synchronize(); // which says what is wrong, if it is something else
  } catch (error) {
    if (!isSticky(error)) throw error; // in a lost context there is nothing left to wait for
  }
  return null;
}

/** Frees what is still waiting, after waiting for it. For tests, and for a program's end. */
export function drainFrees(): void {
  while (waiting() > 0) {
    tryAgain(() => false);
    settle((passed) => {
      if (!isOver(passed)) passed.synchronize();
      return true;
    });
  }
}
