/**
 * Limits on unsolicited messages: active ones and arrays, which arrive without a receive that has requested them.
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

/** The names of the limits. */
export const messageLimitNames: OptionNames<MessageLimits> = { messages: true, messageBytes: true };

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
export function takeMessageLimits(given: MessageLimits): Required<MessageLimits> {
  checkOptions(given, messageLimitNames);
  const { messages = Infinity, messageBytes = Infinity } = given;
  checkLimitNumbers({ messages, messageBytes });
  return { messages, messageBytes };
}

/** Why a message is refused when `waiting` others wait already; null if it is accepted. */
export function excessOf(limits: Required<MessageLimits>, waiting: number, bytes: number): string | null {
  const { messages, messageBytes } = limits;
  if (bytes > messageBytes) return `a message of ${bytes} bytes, but at most ${messageBytes} are accepted`;
  return waiting < messages ? null : `more than ${messages} messages that nobody has taken`;
}
