/**
 * Active messages: they come without anybody having asked, with a header that says what they are, and are received into
 * memory that is made for them.
 *
 * @module
 */
import {
  UCP_AM_HANDLER_PARAM_FIELD,
  ucp_am_handler_param_t,
  UCP_AM_RECV_ATTR,
  ucp_am_recv_param_t,
  UCS_MEMORY_TYPE,
  ucs_status_t,
} from "../../bindings/ucp_types.ts";
import { ffiPort, layoutOf, libc, littleEndian, NativeArena, type NativeCallback } from "../ffi/mod.ts";
import { checkOptions, none } from "../layout/mod.ts";
import { hostWaits } from "../order/mod.ts";
import { checkStatus } from "./error.ts";
import type { UcpFunctions } from "./library.ts";
import { checkTimeout, limitOptionNames, type LimitOptions, timeLimit } from "./limit.ts";
import { type Receivable, takeMemory } from "./message_memory.ts";
import type { Operations } from "./operation.ts";
import type { Progress } from "./progress.ts";
import { writeFields } from "./struct_fields.ts";

/** The number by which UCX tells our messages from others: UCXX's have 0. */
export const activeMessageId = 1;

/** What active messages need of their worker. */
export interface ActiveMessageContext {
  readonly ucp: UcpFunctions;
  readonly hasCuda: boolean;
  readonly worker: bigint;
  readonly operations: Operations;
  readonly progress: Progress;
  /** Hands on a message that has come from the endpoint with this handle, or 0n. @returns whether somebody takes it */
  deliver(message: UcxActiveMessage, from: bigint): boolean;
}

/** Where the data of a message are: still at the sender, or in memory that UCX lends, or nowhere, because there are none. */
type Place = "sender" | "lent" | "none";

const receiveField = layoutOf(ucp_am_recv_param_t).offsets;

/** Has the messages of a worker delivered. */
export class ActiveMessages {
  readonly #context: MessageContext;
  readonly #handler: NativeCallback;
  /** Messages whose data are UCX's. */
  readonly #open = new Set<UcxActiveMessage>();

  constructor(context: ActiveMessageContext) {
    this.#context = { ...context, forget: (gone) => this.#open.delete(gone) };
    const { ucp, worker } = context;
    const signature = { args: ["ptr", "ptr", "u64", "ptr", "u64", "ptr"], returns: "i8" } as const;
    // UCX calls it inside ucp_worker_progress, on this thread.
    this.#handler = ffiPort().callback(signature, (_, header, headerLength, data, length, parameters) => {
      const isOurs = this.#message(copyOf(header, Number(headerLength)), data, Number(length), parameters);
      return isOurs ? ucs_status_t.UCS_INPROGRESS : ucs_status_t.UCS_OK;
    });
    using arena = new NativeArena();
    const parameters = arena.struct(ucp_am_handler_param_t);
    writeFields(parameters, UCP_AM_HANDLER_PARAM_FIELD, { id: activeMessageId, cb: this.#handler.address, arg: 0n });
    const status = ucp.activeMessage.ucp_worker_set_am_recv_handler(worker, parameters.$address);
    if (status !== 0) this.#handler.close();
    checkStatus("ucp_worker_set_am_recv_handler", status);
  }

  /** Gives back what nobody has received: before the worker is destroyed. */
  release(): void {
    for (const message of this.#open) message.release();
  }

  /** Only when UCX calls no more. */
  close(): void {
    this.#handler.close();
  }

  // law ucx/ActiveMessages.message: ucx/active_messages
  /** @returns whether the data stay UCX's for us */
  #message(header: Uint8Array<ArrayBuffer>, data: bigint, length: number, parameters: bigint): boolean {
    const view = new DataView(ffiPort().memory(parameters, layoutOf(ucp_am_recv_param_t).size));
    const attributes = view.getBigUint64(receiveField.recv_attr, littleEndian);
    const has = (bit: bigint) => (attributes & bit) !== 0n;
    const from = has(UCP_AM_RECV_ATTR.FIELD_REPLY_EP) ? view.getBigUint64(receiveField.reply_ep, littleEndian) : 0n;
    const isLent = has(UCP_AM_RECV_ATTR.FLAG_DATA);
    const place: Place = has(UCP_AM_RECV_ATTR.FLAG_RNDV) ? "sender" : isLent && length > 0 ? "lent" : "none";
    const bytes = place === "none" ? copyOf(data, length) : null;
    const message = new UcxActiveMessage(this.#context, header, length, { place, data, bytes });
    if (place !== "none") this.#open.add(message);
    if (!this.#context.deliver(message, from) && place !== "none") {
      this.#open.delete(message);
      return false; // UCX takes back what nobody wants
    }
    return place !== "none";
  }
}

function copyOf(address: bigint, length: number): Uint8Array<ArrayBuffer> {
  return length === 0 ? new Uint8Array(new ArrayBuffer(0)) : new Uint8Array(ffiPort().memory(address, length).slice(0));
}

interface MessageContext extends ActiveMessageContext {
  forget(message: UcxActiveMessage): void;
}

interface MessageData {
  readonly place: Place;
  /** What UCX knows the data by. */
  readonly data: bigint;
  /** The data, if they are ours already. */
  readonly bytes: Uint8Array<ArrayBuffer> | null;
}

/** An active message that has come: its header is here, its data are received by whoever wants them. */
export class UcxActiveMessage {
  /** What the sender gave as header. */
  readonly header: Uint8Array<ArrayBuffer>;
  /** Bytes of data. */
  readonly length: number;
  readonly #context: MessageContext;
  readonly #data: MessageData;
  #isOver = false;

  /** Use {@linkcode UcxEndpoint.messages} or {@linkcode UcxWorker.messages}. */
  constructor(context: MessageContext, header: Uint8Array<ArrayBuffer>, length: number, data: MessageData) {
    this.#context = context;
    this.header = header;
    this.length = length;
    this.#data = data;
  }

  /** The header as a text: UTF-8. */
  get text(): string {
    return new TextDecoder().decode(this.header);
  }

  /** Receives the data into new memory, once. @throws as {@linkcode recv} */
  async bytes(options: LimitOptions = none): Promise<Uint8Array<ArrayBuffer>> {
    const into = new Uint8Array(new ArrayBuffer(this.length));
    await this.recv(into, options);
    return into;
  }

  /**
   * Receives the data, once.
   *
   * @param into contiguous writable memory of at least the message's length: a view, a buffer or a Uint8Array
   * @throws {RangeError} if the memory is too small: the message can be received still
   * @throws {TypeError} if it was received or released before, or the memory is read-only, not contiguous, or a GPU's
   *   and the data are here already: receive them on the host then
   * @throws {UcxError} if the sender has gone
   */
  async recv(into: Receivable, options: LimitOptions = none): Promise<void> {
    checkOptions(options, limitOptionNames);
    options.signal?.throwIfAborted();
    if (options.timeout !== undefined) checkTimeout(options.timeout);
    if (this.#isOver) throw new TypeError("Cannot receive a message twice, nor one that was released");
    const { ucp, hasCuda, worker, operations, progress } = this.#context;
    const operation = operations.take();
    const { place, data, bytes } = this.#data;
    try {
      const buffer = takeMemory(operation, into, "receive into", hasCuda);
      if (operation.bytes < this.length) {
        throw new RangeError(`Cannot receive ${this.length} bytes into memory of ${operation.bytes}`);
      }
      if (operation.isCuda && place !== "sender") {
        throw new TypeError("Cannot receive into a GPU's memory what has come to the host already. Receive it there.");
      }
      if (buffer !== null) hostWaits(buffer);
    } catch (error) {
      operation.release();
      operations.give(operation);
      throw error;
    }
    this.#isOver = true;
    this.#context.forget(this);
    if (place === "sender") {
      operation.call = "ucp_am_recv_data_nbx";
      operation.bytes = this.length;
      operation.prepare("sized", operation.isCuda ? UCS_MEMORY_TYPE.CUDA : UCS_MEMORY_TYPE.HOST, 0);
      const { address, count, parameters } = operation;
      const { signal, clear } = timeLimit(operation.call, options);
      progress.begun(operation, ucp.activeMessage.ucp_am_recv_data_nbx(worker, data, address, count, parameters));
      await progress.settled(operation, signal).finally(clear);
      return;
    }
    if (place === "lent") {
      libc().memory.memcpy(operation.address, data, BigInt(this.length));
      ucp.activeMessage.ucp_am_data_release(worker, data);
    } else if (bytes !== null && bytes.length > 0) {
      libc().memory.memcpy(operation.address, ffiPort().addressOf(bytes.buffer), BigInt(bytes.length));
    }
    operation.release();
    operations.give(operation);
  }

  /** Has UCX drop the data: nobody wants them. Harmless if they were received, or twice. */
  release(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#context.forget(this);
    const { ucp, worker } = this.#context;
    if (this.#data.place !== "none") ucp.activeMessage.ucp_am_data_release(worker, this.#data.data);
  }

  /** Has UCX drop the data, if nobody has received them. */
  [Symbol.dispose](): void {
    this.release();
  }
}
