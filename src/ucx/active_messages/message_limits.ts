/**
 * Limits on unsolicited messages: active ones, arrays, and tagged ones, where no receive has requested them.
 *
 * @module
 */
import { checkOptions, type OptionNames, show } from "../../layout/mod.ts";

/** Limits on unsolicited messages, active ones and arrays. */
export interface MessageLimits {
  /** Messages that may wait to be taken. Default: as many as fit in memory. */
  readonly messages?: number;
  /** The maximum size of one, or of all parts of one of several parts, in bytes. Default: as many as fit in memory. */
  readonly messageBytes?: number;
}

/** Limits on unsolicited messages of a worker. */
export interface WorkerLimits extends MessageLimits {
  /**
   * Tagged messages, of all peers together, that may wait for a receive that matches; each part of a
   * {@linkcode UcxEndpoint.sendMany} is one. A later one is dropped, although its send succeeds, and counted: UCX does
   * not say who has sent it. Default: as many as fit in memory.
   */
  readonly taggedMessages?: number;
}

/** The names of the limits. */
export const messageLimitNames: OptionNames<MessageLimits> = { messages: true, messageBytes: true };

const workerLimitNames: OptionNames<WorkerLimits> = { ...messageLimitNames, taggedMessages: true };

// law ucx/checkLimitNumbers: ucx/listener, ucx/active_messages
/** @throws {RangeError} unless all of them are at least 1 */
export function checkLimitNumbers(limits: Readonly<Record<string, number>>): void {
  for (const [name, value] of Object.entries(limits)) {
    if (typeof value === "number" && value >= 1) continue;
    throw new RangeError(`Cannot limit ${name} to ${show(value)}: expected a number of at least 1`);
  }
}

/**
 * Checks the limits and fills in defaults.
 *
 * @throws {TypeError} for an unknown limit
 * @throws {RangeError} if one is out of range
 */
export function takeWorkerLimits(given: WorkerLimits): Required<WorkerLimits> {
  checkOptions(given, workerLimitNames);
  const { messages = Infinity, messageBytes = Infinity, taggedMessages = Infinity } = given;
  checkLimitNumbers({ messages, messageBytes, taggedMessages });
  return { messages, messageBytes, taggedMessages };
}

/** Why a message is refused when `waiting` others wait already; null if it is accepted. */
export function excessOf(limits: Required<MessageLimits>, waiting: number, bytes: number): string | null {
  const { messages, messageBytes } = limits;
  if (bytes > messageBytes) return `a message of ${bytes} bytes, but at most ${messageBytes} are accepted`;
  return waiting < messages ? null : `more than ${messages} messages that nobody has taken`;
}
