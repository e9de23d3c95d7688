/**
 * Active messages: they arrive unsolicited, with a header that describes them, and are received into memory that is
 * allocated for them.
 *
 * @module
 */
import { type CudaStream, enqueueCopy } from "../../device/mod.ts";
import { ffiPort, libc } from "../../ffi/mod.ts";
import { checkMade, checkOptions, none, showAs, showBytes } from "../../layout/mod.ts";
import { HostMemoryResource, type MemoryBuffer } from "../../memory/mod.ts";
import { hostReady } from "../../order/mod.ts";
import { abortable } from "../../unix/mod.ts";
import { checkLimitKinds, checkLimits, limitOptionNames, type LimitOptions, timeLimit } from "../limit.ts";
import { isKnown } from "../memory_route.ts";
import { isList, type List, type Pieces, takeList } from "../message_list.ts";
import { copyOf, handleMessages, type Incoming, type MessageTaker } from "./message_handler.ts";
import { type Receivable, takeMemory } from "../message_memory.ts";
import type { MessageQueue } from "./message_queue.ts";
import type { Operation } from "../operation.ts";
import { transferred } from "../taken_memory.ts";
import type { PoolStaging } from "../pool_staging.ts";
import type { Progress } from "../progress.ts";
import type { WorkerResources } from "../worker_resources.ts";

/** The wire format of active messages. */
export interface ActiveMessageFormat {
  /** The id by which UCX tells these messages from others. */
  readonly id: number;
  /** Bytes that the format adds to a header. */
  readonly added: number;
  /** Encodes a header for the wire. `isCuda`: whether the data are on a GPU. */
  write(header: Uint8Array, isCuda: boolean): Uint8Array;
  /** Decodes the sender's header; null if it is of another format. */
  read(header: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> | null;
}

/** Active messages whose headers go over the wire unchanged. UCXX's have id 0. */
export const plainMessages: ActiveMessageFormat = {
  id: 1,
  added: 0,
  write: (header) => header,
  read: (header) => header,
};

/** Active messages that carry arrays, whose headers give type and shape: see `array_header.ts`. */
export const arrayMessages: ActiveMessageFormat = { ...plainMessages, id: 2 };

/** What active messages need from their worker. */
export interface ActiveMessageContext {
  readonly resources: WorkerResources;
  readonly cuda: PoolStaging | null;
  readonly progress: Progress;
  /** Passes on a message from the endpoint with this handle, or 0n. @returns whether it was accepted */
  deliver(message: UcxActiveMessage, from: bigint): boolean;
}

/** Where UCX holds the data of a message: still at the sender, in memory that it lends, or nowhere. */
type Place = "sender" | "borrowed" | "none";

/** Delivers the messages of a worker. */
export class ActiveMessages implements MessageTaker {
  readonly #context: MessageContext;
  readonly #format: ActiveMessageFormat;
  /** Messages whose data UCX holds. */
  readonly #open = new Set<UcxActiveMessage>();

  constructor(context: ActiveMessageContext, format: ActiveMessageFormat) {
    this.#format = format;
    this.#context = { ...context, forget: (gone) => this.#open.delete(gone) };
    context.resources.adopt(handleMessages(context.resources, format.id, this));
  }

  /** Called by UCX. */
  takeIncoming(message: Incoming): boolean {
    const header = this.#format.read(message.header);
    return header !== null && this.#take(header, message);
  }

  /** Releases messages that were not received, before the worker is destroyed. */
  release(): void {
    for (const message of this.#open) message.release();
  }

  // law ucx/ActiveMessages.take: ucx/active_messages
  /** @returns whether UCX keeps the data for us */
  #take(header: Uint8Array<ArrayBuffer>, { place: where, data, length, from }: Incoming): boolean {
    const place: Place = where === "call" || (where === "borrowed" && length === 0) ? "none" : where;
    const bytes = place === "none" ? copyOf(data, length) : null;
    const message = new UcxActiveMessage(this.#context, header, length, { place, data, bytes });
    const { borrowed } = this.#context.resources;
    if (place !== "none") {
      this.#open.add(message);
      borrowed.add(data);
    }
    if (!this.#context.deliver(message, from) && place !== "none") {
      this.#open.delete(message);
      borrowed.delete(data);
      return false; // UCX reclaims data that are not kept
    }
    return place !== "none";
  }
}

interface MessageContext extends ActiveMessageContext {
  forget(message: UcxActiveMessage): void;
}

interface MessageData {
  readonly place: Place;
  /** UCX's handle for the data. */
  readonly data: bigint;
  /** The data, if they are ours already. */
  readonly bytes: Uint8Array<ArrayBuffer> | null;
}

/** An active message that has arrived: its header is here, its data are received on demand. */
export class UcxActiveMessage {
  /** The sender's header. */
  readonly header: Uint8Array<ArrayBuffer>;
  /** Size of the data in bytes. */
  readonly length: number;
  readonly #context: MessageContext;
  #data: MessageData;
  #received: Promise<Uint8Array<ArrayBuffer>> | undefined;
  /** Aborted with the endpoint that it came through, if that is ours: data that are still at the sender never come. */
  #over: AbortSignal | undefined;
  /** `taken`: its receive waits for memory. */
  #state: "here" | "taken" | "over" = "here";

  /** Use {@linkcode UcxEndpoint.messages} or {@linkcode UcxWorker.messages}. */
  constructor(context: MessageContext, header: Uint8Array<ArrayBuffer>, length: number, data: MessageData) {
    checkMade(data, "UcxActiveMessage", "endpoint.messages() or worker.messages()");
    this.#context = context;
    this.header = header;
    this.length = length;
    this.#data = data;
  }

  /** The header as UTF-8 text. */
  get text(): string {
    return new TextDecoder().decode(this.header);
  }

  /**
   * The data, received into new memory: once, on first access. After reading it the message need not be released.
   * Rejected as {@linkcode recv} is.
   */
  get data(): Promise<Uint8Array<ArrayBuffer>> {
    if (this.#received === undefined) {
      this.#received = this.bytes();
      this.#received.catch(() => {}); // destructuring a message reads them, wanted or not
    }
    return this.#received;
  }

  /** Receives the data into new memory, once, with limits. @throws as {@linkcode recv} */
  async bytes(options: LimitOptions = none): Promise<Uint8Array<ArrayBuffer>> {
    const into = new Uint8Array(new ArrayBuffer(this.length));
    await this.recv(into, options);
    return into;
  }

  /** Whether the data can be received into this memory: into a GPU's they can where UCX uses that GPU. */
  canComeTo(buffer: MemoryBuffer): boolean {
    return isKnown(buffer, this.#context.cuda);
  }

  /**
   * Sets what is aborted with the endpoint that the message came through. Called by the endpoint.
   *
   * @internal
   */
  endsWith(over: AbortSignal | undefined): void {
    this.#over = over;
  }

  // law ucx/UcxActiveMessage.recv: ucx/message_list, ucx/active_messages, ucx/message_on_gpu, ucx/closed_inside
  /**
   * Receives the data, once.
   *
   * @param into contiguous writable memory of at least the message's length: a view, a buffer, JavaScript's own, or
   *   another library's array; or several, which are filled in order
   * @throws {RangeError} if the memory is too small: the message can still be received
   * @throws {TypeError} if it was received or released before, or the memory is read-only, not contiguous, or on a GPU
   *   although this UCX was built without CUDA: receive the data on the host then
   * @throws {UcxError} if the sender is gone
   */
  async recv(into: Receivable | readonly Receivable[], options: LimitOptions = none): Promise<void> {
    checkOptions(options, limitOptionNames);
    checkLimits(options);
    const over = this.#data.place === "sender" ? this.#over : undefined; // all other data have arrived
    this.#isHere(over);
    const { operations, borrowed } = this.#context.resources;
    const operation = operations.take();
    let memory: List;
    try {
      memory = this.#takeMemory(operation, into);
      this.#isHere(over); // again: another library's array is called for its memory, and may have received it
    } catch (error) {
      operations.putBack(operation);
      throw error;
    }
    this.#state = "taken";
    const { signal, clear } = timeLimit("ucp_am_recv_data_nbx", options, over);
    try {
      if (memory.ready !== null) await abortable(memory.ready, signal);
      if (this.#state !== "taken") throw new TypeError("Cannot receive: the message was released meanwhile");
      if (operation.isTransferred) throw transferred();
    } catch (error) {
      if (this.#state === "taken") this.release(); // else that was done
      operations.putBack(operation);
      clear();
      throw error;
    }
    this.#state = "over";
    this.#context.forget(this);
    operation.pack?.();
    if (this.#data.place === "sender") {
      borrowed.delete(this.#data.data);
      await this.#recvFromSender(operation, signal).finally(clear);
    } else {
      clear();
      try {
        await this.#copyTo(memory);
      } finally {
        operations.putBack(operation);
      }
    }
  }

  // law ucx/UcxActiveMessage.isHere: ucx/closed_inside
  /** Whether it can be received. @throws {TypeError} if it was, or was released; and why its sender is gone */
  #isHere(over: AbortSignal | undefined): void {
    if (this.#state !== "here") throw new TypeError("Cannot receive a message twice, or one that was released");
    over?.throwIfAborted();
  }

  #takeMemory(operation: Operation, into: Pieces): List {
    const { cuda } = this.#context;
    let memory: List;
    if (isList(into)) {
      memory = takeList(operation, into, "receive into", cuda, hostReady);
    } else {
      // Data that have arrived are copied from here, not by UCX.
      const staged = this.#data.place === "sender" ? cuda : cuda?.unstaged ?? null;
      const buffer = takeMemory(operation, into, "receive into", staged);
      const ready = buffer === null ? null : hostReady(buffer);
      memory = { ready, bytes: operation.bytes, pieces: [operation], buffers: [buffer] };
    }
    if (memory.bytes < this.length) {
      throw new RangeError(`Cannot receive ${this.length} bytes into memory of ${memory.bytes}`);
    }
    if (!isList(into)) operation.bytes = this.length;
    return memory;
  }

  async #recvFromSender(operation: Operation, signal: AbortSignal | undefined): Promise<void> {
    const { resources: { ucp, handle }, progress } = this.#context;
    operation.call = "ucp_am_recv_data_nbx";
    operation.prepare("sized", operation.memoryType, 0);
    const { address, count, parameters } = operation;
    const { ucp_am_recv_data_nbx } = ucp.activeMessage;
    progress.begun(operation, ucp_am_recv_data_nbx(handle, this.#data.data, address, count, parameters));
    await progress.settled(operation, signal);
  }

  // law ucx/UcxActiveMessage.copyTo: ucx/message_on_gpu, ucx/message_list
  /** Copies data that have arrived to their destination, and returns what was borrowed from UCX. */
  async #copyTo(memory: List): Promise<void> {
    const { place, data, bytes } = this.#data;
    const { memory: { memcpy } } = libc();
    const streams = [...new Set(memory.buffers.map(streamOf))].filter((stream) => stream !== null);
    using copies = new DisposableStack();
    let ends: Promise<void>[] = [];
    try {
      let from = bytes === null || bytes.length === 0 ? data : ffiPort().addressOf(bytes.buffer);
      if (streams.length > 0) { // the GPU copies later, so it reads a copy of ours: UCX may reclaim its buffer any time
        const own = copies.use(host.allocate(this.length));
        memcpy(own.ptr, from, BigInt(this.length));
        from = own.ptr;
      }
      let left = this.length;
      for (const [i, piece] of memory.pieces.entries()) {
        const count = Math.min(piece.bytes, left);
        const stream = streamOf(memory.buffers[i] ?? null);
        if (count > 0 && stream !== null) enqueueCopy(stream, piece.address, from, count, "HtoD");
        else if (count > 0) memcpy(piece.address, from, BigInt(count));
        from += BigInt(count);
        left -= count;
      }
    } finally {
      if (place === "borrowed") this.#releaseData(data);
      ends = streams.map((stream) => stream.completed());
      await Promise.allSettled(ends); // then any stream may use the memory, also where it has no home
    }
    await Promise.all(ends);
  }

  // law ucx/UcxActiveMessage.adoptData: ucx/active_messages
  /**
   * Makes the data our own, because the endpoint that they came through is closing. Called by the endpoint.
   *
   * @internal
   * @returns false if they are still at the sender
   */
  adoptData(): boolean {
    const { place, data } = this.#data;
    if (place === "sender") return false;
    if (place === "none" || this.#state !== "here") return true;
    this.#data = { place: "none", data: 0n, bytes: copyOf(data, this.length) };
    this.#releaseData(data);
    return true;
  }

  #releaseData(data: bigint): void {
    const { ucp, handle, borrowed } = this.#context.resources;
    this.#context.forget(this);
    borrowed.delete(data);
    ucp.activeMessage.ucp_am_data_release(handle, data);
  }

  /** Makes UCX drop the data. Harmless after a receive, or twice. */
  release(): void {
    if (this.#state === "over") return;
    this.#state = "over";
    if (this.#data.place !== "none") this.#releaseData(this.#data.data);
  }

  /** Makes UCX drop the data, if they were not received. */
  [Symbol.dispose](): void {
    this.release();
  }

  static {
    showAs(UcxActiveMessage, (message) => {
      const { header, length } = message;
      return `${showBytes(length)}, header of ${showBytes(header.length)}${
        message.#state === "here" ? "" : ", received"
      }`;
    });
  }
}

const host = new HostMemoryResource();

/** The stream on which a GPU copies to its memory; null for memory that the host can access, also managed memory. */
function streamOf(buffer: MemoryBuffer | null): CudaStream | null {
  return buffer?.kind === "device" ? buffer.stream ?? buffer.device?.defaultStream ?? null : null;
}

/** The messages of a queue, in turn, with limits for each wait. */
export function messagesOf(
  queue: MessageQueue<UcxActiveMessage>,
  options: LimitOptions,
): AsyncIterable<UcxActiveMessage> {
  checkOptions(options, limitOptionNames);
  checkLimitKinds(options);
  return { [Symbol.asyncIterator]: () => queue.iterate(() => timeLimit("ucp_worker_progress", options)) };
}
