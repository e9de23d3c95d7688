/**
 * Receiving arrays, which carry their element type and shape, into new memory in the requested place.
 *
 * @module
 */
import { checkOptions, type OptionNames } from "../layout/mod.ts";
import type { StridedMemoryView } from "../view/mod.ts";
import type { UcxActiveMessage } from "./active_messages/active_messages.ts";
import { readArrayHeader } from "./array_header.ts";
import { checkLimits, limitOptionNames, type LimitOptions, timeLimit } from "./limit.ts";
import type { MessageQueue } from "./active_messages/message_queue.ts";
import { NewMemory, placeOptionNames, type PlaceOptions } from "./new_memory.ts";

/** Options of {@linkcode UcxEndpoint.recvArray}. */
export interface ReceiveArrayOptions extends LimitOptions, PlaceOptions {}

const receiveArrayOptionNames: OptionNames<ReceiveArrayOptions> = { ...limitOptionNames, ...placeOptionNames };

/** Receives the next array of a queue. @param over makes the error if there are no more */
export async function recvArray(
  queue: MessageQueue<UcxActiveMessage>,
  options: ReceiveArrayOptions,
  over: () => Error,
): Promise<StridedMemoryView> {
  checkOptions(options, receiveArrayOptionNames);
  checkLimits(options);
  const memory = new NewMemory(options);
  const { signal, clear } = timeLimit("ucp_am_recv_data_nbx", options);
  try {
    const message = await queue.next(signal);
    if (message === null) throw over();
    if (signal?.aborted && queue.putBack(message)) throw signal.reason; // since it was taken
    const limits = signal === undefined ? {} : { signal };
    using _message = message; // dropped, unless it is received
    const { dtype, shape } = readArrayHeader(message.header, message.length);
    const array = memory.array(dtype, shape);
    try {
      await memory.receive(array, message.canComeTo(array.buffer), (into) => message.recv(into, limits));
      return array;
    } catch (error) {
      array.close();
      throw error;
    }
  } finally {
    clear();
  }
}
