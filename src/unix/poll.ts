/**
 * Waiting for file descriptors without a thread and without blocking the event loop: one non-blocking `poll` for all of
 * them, at turns of the event loop.
 *
 * @module
 */
import { poll_events, pollfd } from "../../bindings/libc.ts";
import { ffiPort, libc, NativeArena, nodeBuiltin, struct } from "../ffi/mod.ts";

/** How long to poll at every turn of the event loop before pausing between polls, in milliseconds. */
const busyFor = 5;
/** How long polls may follow each other before the process can end over an uncaught error, in milliseconds. */
const endEvery = 50;
/** When it last could, by `performance.now()`. */
let couldEnd = 0;
/** How long until the pauses grow, in milliseconds. */
const patientAfter = 500;

/** What to wait for on a descriptor. */
export type Readiness = "readable" | "writable";

interface Wait {
  readonly fd: number;
  readonly events: number;
  readonly settle: () => void;
  readonly fail: (error: unknown) => void;
}

const waits = new Set<Wait>();
let isScheduled = false;
let lastEvent = 0;

// law unix/untilReady: unix/descriptors, unix/socket
/**
 * Settles when a descriptor can be read or written without blocking, or its other end is gone. The caller keeps it open
 * until then: abort the wait before closing the descriptor.
 *
 * @throws the signal's reason, if it is aborted
 * @throws {FfiError} if there is no memory left
 */
export function untilReady(fd: number, what: Readiness, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.reject(signal.reason);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const stop = () => {
    waits.delete(wait);
    reject(signal.reason);
  };
  const over = () => {
    waits.delete(wait);
    signal.removeEventListener("abort", stop);
  };
  const wait: Wait = {
    fd,
    events: what === "readable" ? poll_events.POLLIN : poll_events.POLLOUT,
    settle: () => {
      over();
      resolve();
    },
    fail: (error) => {
      over();
      reject(error);
    },
  };
  signal.addEventListener("abort", stop, { once: true });
  waits.add(wait);
  lastEvent = performance.now();
  if (!isScheduled) schedulePoll();
  return promise;
}

// law unix/schedulePoll: unix/uncaught
function schedulePoll(): void {
  isScheduled = true;
  const { setImmediate, setTimeout } = nodeBuiltin("node:timers");
  const { turnToEnd } = ffiPort();
  const now = performance.now();
  const quiet = now - lastEvent;
  if (quiet >= busyFor) setTimeout(pollAll, quiet < patientAfter ? 1 : 5);
  else if (turnToEnd !== null && now - couldEnd >= endEvery) {
    couldEnd = now;
    void turnToEnd().then(pollAll);
  } else setImmediate(pollAll);
}

// law unix/pollAll: unix/descriptors
function pollAll(): void {
  isScheduled = false;
  if (waits.size === 0) return;
  const asked = [...waits];
  try {
    poll(asked);
  } catch (error) { // here it would reach nobody
    for (const { fail } of asked) fail(error);
  }
  if (waits.size > 0) schedulePoll();
}

/** Settles those of the waits that are over. */
function poll(asked: readonly Wait[]): void {
  using arena = new NativeArena();
  const { size, over } = struct(pollfd);
  const list = arena.bytes(size * asked.length);
  const { buffer, byteOffset } = list.bytes;
  const entries = asked.map(({ fd, events }, i) => {
    const entry = over(buffer, list.address - BigInt(byteOffset), byteOffset + i * size);
    entry.fd = fd;
    entry.events = events;
    return entry;
  });
  if (libc().sockets.poll(list.address, BigInt(asked.length), 0) > 0) {
    lastEvent = performance.now();
    // An error or the end of the other side counts as ready: the call that follows reports which it is.
    asked.forEach(({ settle }, i) => entries[i]?.revents !== 0 && settle());
  }
}
