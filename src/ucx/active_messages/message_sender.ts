/**
 * Sending active messages through an endpoint.
 *
 * @module
 */
import { UCP_AM_SEND_FLAG } from "../../../bindings/ucp_types.ts";
import { NativeArena } from "../../ffi/mod.ts";
import { checkOptions, type OptionNames, show } from "../../layout/mod.ts";
import { StridedMemoryView } from "../../view/mod.ts";
import { type ActiveMessageFormat, arrayMessages } from "./active_messages.ts";
import { writeArrayHeader } from "../array_header.ts";
import type { EndpointOperations } from "../endpoint_operations.ts";
import { checkLimits, limitOptionNames, type LimitOptions } from "../limit.ts";
import { isList, type Pieces } from "../message_list.ts";
import { isOnGpu } from "../message_memory.ts";
import type { Operation } from "../operation.ts";
import { untaggedOptionNames } from "../tag_sender.ts";

/** Options of {@linkcode UcxEndpoint.sendMessage}. */
export interface SendMessageOptions extends LimitOptions {
  /** Describes the message: bytes that the other side gets with it, or a text, as UTF-8. Default none. */
  readonly header?: Uint8Array | string;
  /** False refuses memory that is not contiguous. Default true: its elements are sent in C order, from a copy. */
  readonly copy?: boolean;
}

const sendMessageOptionNames: OptionNames<SendMessageOptions> = { ...limitOptionNames, header: true, copy: true };

/** Sends the active messages of one endpoint. */
export class MessageSender {
  readonly #operations: EndpointOperations;
  readonly #longestHeader: () => number;

  /** `longestHeader`: the maximum size of a header, in bytes. */
  constructor(own: EndpointOperations, longestHeader: () => number) {
    this.#operations = own;
    this.#longestHeader = longestHeader;
  }

  /** As {@linkcode UcxEndpoint.sendMessage}. */
  async send(what: Pieces, options: SendMessageOptions): Promise<void> {
    checkOptions(options, sendMessageOptionNames);
    const { header = "" } = options;
    const bytes = typeof header === "string" ? new TextEncoder().encode(header) : header;
    if (!(bytes instanceof Uint8Array)) {
      throw new TypeError(`Cannot send a message with a header of ${show(header)}: expected bytes or a text`);
    }
    await this.#send(this.#operations.worker.protocol.messages, what, bytes, options);
  }

  /** As {@linkcode UcxEndpoint.sendArray}. */
  async sendArray(what: unknown, options: LimitOptions & { readonly copy?: boolean }): Promise<void> {
    checkOptions(options, untaggedOptionNames);
    this.#operations.openHandle("send");
    const view = StridedMemoryView.from(what);
    try {
      // JavaScript's own memory as it is: as that of every send it is watched for a transfer.
      const data = ArrayBuffer.isView(what) ? what : view;
      await this.#send(arrayMessages, data, writeArrayHeader(view), options);
    } finally {
      if (view !== what) view.close();
    }
  }

  async #send(
    format: ActiveMessageFormat,
    what: Pieces,
    header: Uint8Array,
    limits: SendMessageOptions,
  ): Promise<void> {
    const own = this.#operations;
    own.openHandle("send");
    const most = this.#longestHeader() - format.added;
    if (header.length > most) {
      throw new RangeError(`Cannot send a header of ${header.length} bytes: UCX takes up to ${most} here`);
    }
    checkLimits(limits);
    const operation = own.take("ucp_am_send_nbx");
    const ready = isList(what)
      ? own.takeList(operation, what, "send", limits)
      : own.takeMemory(operation, what, "send", limits);
    const written = format.write(header, isOnGpu(operation));
    await sendActiveMessage(own, operation, format.id, written, ready, limits);
  }
}

/** A separate function: its closure must not reference the endpoint, see {@linkcode Owner}. */
function closing(arena: NativeArena): () => void {
  return () => arena.close();
}

// law ucx/headerOf: ucx/failing_calls
/** The address of a copy of a header, which UCX reads until the operation is over. */
function headerOf(own: EndpointOperations, operation: Operation, header: Uint8Array): bigint {
  const arena = new NativeArena();
  operation.ending = closing(arena);
  try {
    const { address, bytes } = arena.bytes(header.length);
    bytes.set(header);
    return address;
  } catch (error) {
    own.putBack(operation); // else a close would wait for it
    throw error;
  }
}

/** Sends an active message with an id, from an operation that holds its data, when they are ready. */
export function sendActiveMessage(
  own: EndpointOperations,
  operation: Operation,
  id: number,
  header: Uint8Array,
  ready: Promise<void> | null,
  limits: LimitOptions,
): Promise<void> {
  const head = headerOf(own, operation, header);
  own.hasSentMessages = true;
  return own.later(operation, ready, limits, () => {
    operation.prepare("plain", operation.memoryType, UCP_AM_SEND_FLAG.REPLY); // so that the receiver knows the sender
    const { address, count, parameters } = operation;
    const { ucp, progress } = own.worker;
    const length = BigInt(header.length);
    const { ucp_am_send_nbx } = ucp.activeMessage;
    progress.begun(operation, ucp_am_send_nbx(own.handle, id, head, length, address, count, parameters));
  });
}
