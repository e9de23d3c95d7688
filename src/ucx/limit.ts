/**
 * How long an operation may take: a signal, a timeout, or both.
 *
 * @module
 */
import { ucs_status_t } from "../../bindings/ucp_types.ts";
import { nodeBuiltin } from "../ffi/mod.ts";
import { type OptionNames, show } from "../layout/mod.ts";
import { UcxError } from "./error.ts";

/** How long an operation may take. */
export interface LimitOptions {
  /** Ends the operation for its caller; the promise is then rejected with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** The same after this many milliseconds, with UCS_ERR_TIMED_OUT. */
  readonly timeout?: number;
}

/** The names of the options. */
export const limitOptionNames: OptionNames<LimitOptions> = { signal: true, timeout: true };

/**
 * How long a new connection by host and port may take, in milliseconds, and the two sides to identify each other where
 * they have to: by a secret, or by a greeting, for which UCXX allows as long.
 */
export const greetingLimit = 5000;

/**
 * How long connections may take to complete before an endpoint or a worker is closed, in milliseconds. A large send
 * makes UCX ask the other side to connect back, and if either side goes meanwhile, UCX before 1.14 aborts the process
 * of that other side with a failed assertion (openucx/ucx#8175).
 */
export const farewell = 200;

/** The longest possible timer, in milliseconds: 24 days. A longer timeout is no limit. */
const longest = 2 ** 31 - 1;

/** Several limits combined. */
export interface TimeLimit {
  readonly signal?: AbortSignal;
  /** Must be called when the operation has completed. */
  readonly clear: () => void;
}

// law ucx/timeLimit: ucx/progress, ucx/unclosed
/**
 * One signal for all limits, and a function that clears its timer.
 *
 * @param call the function of libucp, for the error
 * @param over aborted with the operation's owner, one more limit
 */
export function timeLimit(call: string, { signal, timeout }: LimitOptions, over?: AbortSignal): TimeLimit {
  const signals = [signal, over].filter((one) => one !== undefined);
  let clear = () => {};
  if (timeout !== undefined && timeout <= longest) { // a longer timer would fire at once
    const controller = new AbortController();
    const { setTimeout, clearTimeout } = nodeBuiltin("node:timers");
    const timer = setTimeout(() => controller.abort(timedOut(call, timeout)), timeout);
    signals.push(controller.signal);
    clear = () => clearTimeout(timer);
  }
  const [first] = signals;
  if (first === undefined) return { clear };
  return { signal: signals.length === 1 ? first : AbortSignal.any(signals), clear };
}

// law ucx/closeWithin: ucx/lifecycle
/** Waits for a close, which `force` ends at once when a limit is reached. */
export async function closeWithin(closing: Promise<void>, limits: LimitOptions, force: () => void): Promise<void> {
  const { signal, clear } = timeLimit("close", limits);
  if (signal?.aborted) force(); // no event will follow
  else signal?.addEventListener("abort", force, { once: true });
  try {
    await closing;
  } finally {
    clear();
    signal?.removeEventListener("abort", force);
  }
}

/** @throws {RangeError} unless it is a number of milliseconds */
export function checkTimeout(timeout: number): void {
  if (typeof timeout === "number" && timeout >= 0) return;
  throw new RangeError(`Cannot wait for ${show(timeout)} ms: expected a number of at least 0`);
}

/**
 * Checks what limits are, whether or not they have been reached: for what ends early then, and for what begins later.
 *
 * @throws {RangeError} unless the timeout is a number of milliseconds
 * @throws {TypeError} unless the signal is one
 */
export function checkLimitKinds({ signal, timeout }: LimitOptions): void {
  if (timeout !== undefined) checkTimeout(timeout);
  if (signal === undefined || signal instanceof AbortSignal) return;
  throw new TypeError(`Expected signal to be an AbortSignal, got ${show(signal)}`);
}

/**
 * Checks limits before anything begins.
 *
 * @throws {RangeError} unless the timeout is a number of milliseconds
 * @throws {TypeError} unless the signal is one
 * @throws the reason of a signal that is aborted already
 */
export function checkLimits(limits: LimitOptions): void {
  checkLimitKinds(limits);
  limits.signal?.throwIfAborted();
}

/** The error of an operation that has taken too long. */
export function timedOut(call: string, timeout: number): UcxError {
  return new UcxError(call, ucs_status_t.UCS_ERR_TIMED_OUT, `It had not completed after ${timeout} ms`);
}
