/**
 * How many unsolicited messages are kept: active ones and arrays, which come without a receive that has asked for them.
 *
 * @module
 */
import { checkOptions, type OptionNames } from "../../layout/mod.ts";

/** How many unsolicited messages are kept, active ones and arrays. */
export interface MessageLimits {
  /** Messages that may wait to be taken. Default as many as there is memory for. */
  readonly messages?: number;
  /** Bytes that one may have, or all parts of one of several parts. Default as many as there is memory for. */
  readonly messageBytes?: number;
}

/** The names of the limits. */
export const messageLimitNames: OptionNames<MessageLimits> = { messages: true, messageBytes: true };

// law ucx/checkLimitNumbers: ucx/listener, ucx/active_messages
/** @throws {RangeError} unless all of them are at least 1 */
export function checkLimitNumbers(limits: Readonly<Record<string, number>>): void {
  for (const [name, value] of Object.entries(limits)) {
    if (!(value >= 1)) throw new RangeError(`Cannot limit ${name} to ${value}: expected a number of at least 1`);
  }
}

/**
 * Fills in what was not given.
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

/** Why a message is not taken on, where so many wait already; null if it is. */
export function excessOf(limits: Required<MessageLimits>, waiting: number, bytes: number): string | null {
  const { messages, messageBytes } = limits;
  if (bytes > messageBytes) return `a message of ${bytes} bytes, and up to ${messageBytes} are taken`;
  return waiting < messages ? null : `more than ${messages} messages that nobody has taken`;
}
