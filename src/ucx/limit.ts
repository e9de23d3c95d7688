/**
 * How long an operation may take: a signal, a time, or both.
 *
 * @module
 */
import { ucs_status_t } from "../../bindings/ucp_types.ts";
import { nodeBuiltin } from "../ffi/mod.ts";
import type { OptionNames } from "../layout/mod.ts";
import { UcxError } from "./error.ts";

/** How long an operation may take. */
export interface LimitOptions {
  /** Ends the operation for its caller; the promise is then rejected with the signal's reason. */
  readonly signal?: AbortSignal;
  /** The same after so many milliseconds, with UCS_ERR_TIMED_OUT. */
  readonly timeout?: number;
}

/** The names of the options. */
export const limitOptionNames: OptionNames<LimitOptions> = { signal: true, timeout: true };

// law ucx/timeLimit: ucx/progress, ucx/unclosed
/**
 * One signal for all limits, and what takes back its timer.
 *
 * @param call the function of libucp, for the error
 */
export function timeLimit(
  call: string,
  { signal, timeout }: LimitOptions,
): { signal?: AbortSignal; clear: () => void } {
  const nothing = () => {};
  if (timeout === undefined) return signal === undefined ? { clear: nothing } : { signal, clear: nothing };
  const controller = new AbortController();
  const { setTimeout, clearTimeout } = nodeBuiltin("node:timers");
  const timer = setTimeout(() => controller.abort(timedOut(call, timeout)), timeout);
  const limited = signal === undefined ? controller.signal : AbortSignal.any([signal, controller.signal]);
  return { signal: limited, clear: () => clearTimeout(timer) };
}

/** @throws {RangeError} unless it is a number of milliseconds */
export function checkTimeout(timeout: number): void {
  if (!(timeout >= 0)) throw new RangeError(`Cannot wait for ${timeout} ms: expected a number of at least 0`);
}

/** What an operation ends with that has taken too long. */
export function timedOut(call: string, timeout: number): UcxError {
  return new UcxError(call, ucs_status_t.UCS_ERR_TIMED_OUT, `It was not over after ${timeout} ms`);
}
