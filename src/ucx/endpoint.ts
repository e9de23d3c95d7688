/**
 * An endpoint: the connection from one worker to another.
 *
 * @module
 */
import {
  UCP_AM_SEND_FLAG,
  UCP_ATOMIC_OP,
  UCP_EP_CLOSE_FLAG,
  UCS_MEMORY_TYPE,
  ucs_status_t,
} from "../../bindings/ucp_types.ts";
import type { MemoryBuffer } from "../memory/mod.ts";
import { hostReady, hostWaits } from "../order/mod.ts";
import { NativeArena } from "../ffi/mod.ts";
import { checkOptions, none, type OptionNames } from "../layout/mod.ts";
import { activeMessageId, type UcxActiveMessage } from "./active_messages.ts";
import { UcxError } from "./error.ts";
import type { UcpFunctions } from "./library.ts";
import { checkTimeout, limitOptionNames, type LimitOptions, timeLimit } from "./limit.ts";
import { type Receivable, type Sendable, takeMemory } from "./message_memory.ts";
import { MessageQueue } from "./message_queue.ts";
import type { Operation, Operations, Owner } from "./operation.ts";
import { printInfo } from "./print_info.ts";
import type { Progress } from "./progress.ts";
import type { Received, ReceiveOptions, Receiver, ReceiveSyncOptions } from "./receiver.ts";
import { UcxRemoteKey } from "./remote_memory.ts";
import { advice } from "./status.ts";
import { StartQueue } from "./start_queue.ts";
import { checkTag } from "./tag.ts";

/** Options of {@linkcode UcxEndpoint.send}. */
export interface SendOptions {
  /** The tag that the receiver matches. Default 0. */
  readonly tag?: bigint;
  /** Ends the send for its caller, with the signal's reason, and cancels it if UCX still can. */
  readonly signal?: AbortSignal;
  /** The same after so many milliseconds, with UCS_ERR_TIMED_OUT. */
  readonly timeout?: number;
}

const closeOptionNames = { force: true } as const;

/** Options of {@linkcode UcxEndpoint.sendSync}. */
export interface SendSyncOptions {
  /** The tag that the receiver matches. Default 0. */
  readonly tag?: bigint;
  /** Gives up after so many milliseconds, with UCS_ERR_TIMED_OUT. */
  readonly timeout?: number;
}

/** Options of {@linkcode UcxEndpoint.sendMessage}. */
export interface SendMessageOptions extends LimitOptions {
  /** What the message is: bytes that the other side has with it, or a text, as UTF-8. Default none. */
  readonly header?: Uint8Array | string;
}

const sendMessageOptionNames: OptionNames<SendMessageOptions> = { ...limitOptionNames, header: true };

const atomicCodes = {
  add: UCP_ATOMIC_OP.ADD,
  swap: UCP_ATOMIC_OP.SWAP,
  "compare-and-swap": UCP_ATOMIC_OP.CSWAP,
  and: UCP_ATOMIC_OP.AND,
  or: UCP_ATOMIC_OP.OR,
  xor: UCP_ATOMIC_OP.XOR,
} as const;

/** What {@linkcode UcxEndpoint.atomic} does. */
export type AtomicOperation = "add" | "swap" | "compare-and-swap" | "and" | "or" | "xor";

/** Options of {@linkcode UcxEndpoint.atomic}. */
export interface AtomicOptions extends LimitOptions {
  /** The size of the number. Default 8. */
  readonly bytes?: 4 | 8;
  /** What it has to be to be swapped: for `compare-and-swap`, and for nothing else. */
  readonly compare?: bigint;
}

const atomicOptionNames: OptionNames<AtomicOptions> = { ...limitOptionNames, bytes: true, compare: true };

const sendSyncOptionNames: OptionNames<SendSyncOptions> = { tag: true, timeout: true };

const sendOptionNames: OptionNames<SendOptions> = { tag: true, signal: true, timeout: true };

/** Why an endpoint is closed: `null` if it was closed here, otherwise what UCX reported. */
export type CloseReason = UcxError | null;

/** What an endpoint needs of its worker. */
export interface EndpointContext {
  readonly ucp: UcpFunctions;
  readonly progress: Progress;
  readonly operations: Operations;
  readonly receiver: Receiver;
  /** The most bytes that a header of an active message can have. */
  longestHeader(): number;
  readonly hasCuda: boolean;
  /** Called when sends are cut short by a close by force. */
  cutShort(): void;
  /** Called once, when the endpoint is gone. */
  forget(handle: bigint): void;
}

/** Why UCX gives up an atomic operation on an endpoint that is well. */
const notInSoftware =
  'Some versions of UCX (1.22 is one) do it in software only where errors are not handled: connect with { errors: "none" }';

function gone(call: string): UcxError {
  const status = ucs_status_t.UCS_ERR_CONNECTION_RESET;
  return new UcxError(call, status, advice(status));
}

/** A connection to another worker. */
export class UcxEndpoint {
  /** Settles when the endpoint is no longer usable: with `null` if it was closed here, else with UCX's reason. */
  readonly closed: Promise<CloseReason>;
  readonly #context: EndpointContext;
  readonly #settleClosed: (reason: CloseReason) => void;
  #handle: bigint;
  readonly #starts = new StartQueue();
  /** Sends that UCX is not done with, or that wait for their memory. */
  #underWay = 0;
  #drained: PromiseWithResolvers<void> | undefined;
  readonly #messages = new MessageQueue<UcxActiveMessage>();
  /** What receives belong to that end with it. */
  readonly #receives: Owner = { ended: () => {} };
  /** What its sends belong to. */
  readonly #owner: Owner = {
    ended: () => {
      if (--this.#underWay === 0) this.#drained?.resolve();
    },
  };
  #failure: UcxError | undefined;
  #closing: Promise<void> | undefined;
  #ended: Promise<void> | undefined;

  /** Use {@linkcode UcxWorker.connect}. */
  constructor(context: EndpointContext, handle: bigint) {
    const { promise, resolve } = Promise.withResolvers<CloseReason>();
    this.#context = context;
    this.#handle = handle;
    this.closed = promise;
    this.#settleClosed = resolve;
  }

  /**
   * Sends bytes. They must not change until the promise is settled; UCX has sent or copied them by then. Memory with a
   * home stream is sent when that stream's next work could begin, and later messages of this endpoint after it; the
   * event loop goes on meanwhile.
   *
   * @param what contiguous memory: a view, a buffer, JavaScript's own, or another library's array
   * @throws {UcxError} if the other side is gone
   * @throws {TypeError} if the endpoint is closed, if the memory is not contiguous, or if it is a GPU's and this UCX
   *   was built without CUDA
   * @throws {RangeError} if the tag has more than 64 bits
   */
  send(what: Sendable, options: SendOptions = none): Promise<void> {
    try {
      if (options !== none) checkOptions(options, sendOptionNames);
      this.#open("send");
      const { tag = 0n, signal } = options;
      if (tag !== 0n) checkTag("tag", tag);
      signal?.throwIfAborted();
      if (options.timeout !== undefined) checkTimeout(options.timeout);
      const operation = this.#context.operations.take();
      const ready = this.#take(operation, what, hostReady) ?? null;
      if (ready === null && this.#starts.isEmpty && options.timeout === undefined) {
        this.#begin(operation, tag);
        return this.#context.progress.settled(operation, signal);
      }
      return this.#later(operation, ready, options, () => this.#begin(operation, tag));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * Sends bytes, and waits in place until they may change again: nothing else happens in this thread meanwhile. For
   * loops that count microseconds.
   *
   * @param what contiguous memory: a view, a buffer, JavaScript's own, or another library's array
   * @throws {UcxError} if the other side is gone, or UCS_ERR_TIMED_OUT
   * @throws {TypeError} as {@linkcode send}, and if earlier sends wait for a stream: await them first
   * @throws {RangeError} if the tag has more than 64 bits
   */
  sendSync(what: Sendable, options: SendSyncOptions = none): void {
    if (options !== none) checkOptions(options, sendSyncOptionNames);
    this.#open("send");
    const { tag = 0n, timeout } = options;
    if (tag !== 0n) checkTag("tag", tag);
    if (!this.#starts.isEmpty) throw new TypeError("Cannot send: earlier sends wait for a stream. Await them first.");
    if (timeout !== undefined) checkTimeout(timeout);
    const { operations, progress } = this.#context;
    const operation = operations.take();
    this.#take(operation, what, hostWaits);
    this.#begin(operation, tag);
    progress.wait(operation, timeout);
    progress.taken(operation, timeout);
  }

  /**
   * Receives the next message of the worker with a matching tag, as {@linkcode UcxWorker.recv}, and ends with this
   * endpoint: it is rejected if the other side ends first, or the endpoint is closed. Messages are matched by their
   * tags alone: programs with several endpoints give each its own.
   *
   * @throws {UcxError} as {@linkcode UcxWorker.recv}, and if the other side is gone
   * @throws {TypeError} as {@linkcode UcxWorker.recv}, and if the endpoint is closed
   */
  recv(into: Receivable, options: ReceiveOptions = none): Promise<Received> {
    try {
      this.#open("receive");
    } catch (error) {
      return Promise.reject(error);
    }
    return this.#context.receiver.recv(into, options, this.#receives);
  }

  /** As {@linkcode recv}, waited for in place, as {@linkcode UcxWorker.recvSync}. */
  recvSync(into: Receivable, options: ReceiveSyncOptions = none): Received {
    this.#open("receive");
    return this.#context.receiver.recvSync(into, options, this.#receives);
  }

  /** Has an operation take its memory, and makes it this endpoint's. @returns what `order` answers for a buffer */
  #take<T>(
    operation: Operation,
    what: Sendable,
    order: (buffer: MemoryBuffer) => T,
    doing: "send" | "receive into" = "send",
    call = "ucp_tag_send_nbx",
  ): T | undefined {
    operation.call = call;
    operation.owner = this.#owner;
    this.#underWay++;
    try {
      const buffer = takeMemory(operation, what, doing, this.#context.hasCuda);
      return buffer === null ? undefined : order(buffer);
    } catch (error) {
      this.#refuse(operation);
      throw error;
    }
  }

  /** Gives back an operation that has not begun. */
  #refuse(operation: Operation): void {
    operation.release();
    this.#owner.ended(operation);
    this.#context.operations.give(operation);
  }

  #begin(operation: Operation, tag: bigint): void {
    operation.prepare("plain", operation.isCuda ? UCS_MEMORY_TYPE.CUDA : UCS_MEMORY_TYPE.HOST);
    const { address, count, parameters } = operation;
    const { ucp, progress } = this.#context;
    progress.begun(operation, ucp.tag.ucp_tag_send_nbx(this.#handle, address, count, tag, parameters));
  }

  /** Begins an operation when its memory is there and it is its turn, if the limits allow. */
  #later<T>(operation: Operation, ready: Promise<void> | null, limits: LimitOptions, begin: () => void): Promise<T> {
    const { progress } = this.#context;
    const { signal, clear } = timeLimit(operation.call, limits);
    return this.#starts.add({ ready, release: () => this.#refuse(operation), signal }, () => {
      begin();
      return progress.settled<T>(operation, signal);
    }).finally(clear);
  }

  /**
   * Sends an active message: it comes to the other side's {@linkcode messages} without having been asked for.
   *
   * @param what contiguous memory: a view, a buffer, JavaScript's own, or another library's array. It must not
   *   change until the promise is settled
   * @throws {UcxError} if the other side is gone
   * @throws {RangeError} if the header is longer than UCX takes (some thousand bytes)
   * @throws {TypeError} as {@linkcode send}
   */
  async sendMessage(what: Sendable, options: SendMessageOptions = none): Promise<void> {
    checkOptions(options, sendMessageOptionNames);
    this.#open("send");
    const { header: given = "", signal, timeout } = options;
    const header = typeof given === "string" ? new TextEncoder().encode(given) : given;
    const most = this.#context.longestHeader();
    if (header.length > most) {
      throw new RangeError(`Cannot send a header of ${header.length} bytes: UCX takes up to ${most} here`);
    }
    signal?.throwIfAborted();
    if (timeout !== undefined) checkTimeout(timeout);
    const operation = this.#context.operations.take();
    const ready = this.#take(operation, what, hostReady, "send", "ucp_am_send_nbx") ?? null;
    const arena = new NativeArena();
    const head = arena.bytes(header.length);
    head.bytes.set(header);
    operation.ending = () => arena.close(); // UCX reads the header until then
    await this.#later(operation, ready, options, () => {
      const memoryType = operation.isCuda ? UCS_MEMORY_TYPE.CUDA : UCS_MEMORY_TYPE.HOST;
      operation.prepare("plain", memoryType, UCP_AM_SEND_FLAG.REPLY); // so that it is known whom it comes from
      const { address, count, parameters } = operation;
      const { ucp_am_send_nbx } = this.#context.ucp.activeMessage;
      const length = BigInt(header.length);
      const begun = ucp_am_send_nbx(this.#handle, activeMessageId, head.address, length, address, count, parameters);
      this.#context.progress.begun(operation, begun);
    });
  }

  /**
   * The active messages of the other side, in the order in which they come, until the endpoint is closed or has failed.
   * Whoever takes one receives or releases it.
   */
  messages(): AsyncIterable<UcxActiveMessage> {
    return this.#messages;
  }

  /** Called by the worker. @returns whether it can be taken here */
  deliver(message: UcxActiveMessage): boolean {
    return this.#messages.push(message);
  }

  /**
   * Memory of the other process, by the key that its worker has made of it ({@linkcode UcxWorker.register}).
   *
   * @throws {TypeError} if the bytes are no key, or not all of it
   * @throws {UcxError} if it cannot be reached through this endpoint
   */
  remote(key: Uint8Array): UcxRemoteKey {
    return new UcxRemoteKey(this.#context.ucp, this.#open("use remote memory"), key);
  }

  /**
   * Writes to memory of the other process. The promise settles when the bytes here may change; they are there when a
   * {@linkcode flush} that was called after it has settled.
   *
   * @param what contiguous memory: a view, a buffer, JavaScript's own, or another library's array
   * @param offset where to write to, in bytes
   * @throws {UcxError} if the other side is gone
   * @throws {RangeError} if it does not fit
   * @throws {TypeError} as {@linkcode send}
   */
  async put(what: Sendable, remote: UcxRemoteKey, offset = 0, options: LimitOptions = none): Promise<void> {
    checkOptions(options, limitOptionNames);
    const { ucp_put_nbx } = this.#context.ucp.remote;
    await this.#access("ucp_put_nbx", what, "send", remote, offset, options, ucp_put_nbx);
  }

  /**
   * Reads from memory of the other process. When the promise settles the bytes are here.
   *
   * @param into contiguous writable memory: a view, a buffer, JavaScript's own, or another library's array
   * @param offset where to read from, in bytes
   * @throws {UcxError} if the other side is gone
   * @throws {RangeError} if there are not so many bytes
   * @throws {TypeError} as {@linkcode recv}
   */
  async get(into: Receivable, remote: UcxRemoteKey, offset = 0, options: LimitOptions = none): Promise<void> {
    checkOptions(options, limitOptionNames);
    const { ucp_get_nbx } = this.#context.ucp.remote;
    await this.#access("ucp_get_nbx", into, "receive into", remote, offset, options, ucp_get_nbx);
  }

  async #access(
    call: string,
    what: Sendable,
    doing: "send" | "receive into",
    remote: UcxRemoteKey,
    offset: number,
    options: LimitOptions,
    start: UcpFunctions["remote"]["ucp_put_nbx"],
  ): Promise<void> {
    this.#open("use remote memory");
    options.signal?.throwIfAborted();
    if (options.timeout !== undefined) checkTimeout(options.timeout);
    const operation = this.#context.operations.take();
    const ready = this.#take(operation, what, hostReady, doing, call) ?? null;
    let part: ReturnType<UcxRemoteKey["range"]>;
    try {
      part = remote.range(offset, operation.bytes);
    } catch (error) {
      this.#refuse(operation);
      throw error;
    }
    await this.#later(operation, ready, options, () => {
      operation.prepare("plain", operation.isCuda ? UCS_MEMORY_TYPE.CUDA : UCS_MEMORY_TYPE.HOST);
      const { address, count, parameters } = operation;
      this.#context.progress.begun(operation, start(this.#handle, address, count, part.address, part.key, parameters));
    });
  }

  /**
   * Changes one number of 4 or 8 bytes in memory of the other process, without anybody else seeing it half done.
   *
   * @param operation `swap` puts the operand in its place; `compare-and-swap` only if it is `compare`
   * @param offset where it is, a multiple of its size
   * @param operand unsigned
   * @returns what it was before
   * @throws {UcxError} if the other side is gone
   * @throws {RangeError} if it is not within the memory, or not at a multiple of its size
   */
  async atomic(
    operation: AtomicOperation,
    remote: UcxRemoteKey,
    offset: number,
    operand: bigint,
    options: AtomicOptions = none,
  ): Promise<bigint> {
    checkOptions(options, atomicOptionNames);
    this.#open("use remote memory");
    const { bytes = 8, compare, timeout } = options;
    const code = atomicCodes[operation];
    if (code === undefined || (bytes !== 4 && bytes !== 8)) {
      throw new RangeError(
        `Cannot do "${operation}" on ${bytes} bytes: expected ${Object.keys(atomicCodes)} on 4 or 8`,
      );
    }
    if ((compare === undefined) !== (operation !== "compare-and-swap")) {
      throw new TypeError("Expected `compare` for compare-and-swap, and for nothing else");
    }
    if (offset % bytes !== 0) {
      throw new RangeError(`Cannot change ${bytes} bytes at offset ${offset}: expected a multiple`);
    }
    const part = remote.range(offset, bytes);
    options.signal?.throwIfAborted();
    if (timeout !== undefined) checkTimeout(timeout);
    const slot = this.#context.operations.take();
    // UCX takes what to compare with from one place, and what to put there from where the old value comes to.
    const memory = new NativeArena();
    const [given, reply] = [memory.out("u64"), memory.out("u64")];
    given.value = compare ?? operand;
    reply.value = operand;
    slot.call = "ucp_atomic_op_nbx";
    slot.owner = this.#owner;
    slot.held = memory; // until UCX is done with it
    this.#underWay++;
    let before = 0n;
    slot.ending = () => before = bytes === 8 ? reply.value : reply.value & 0xffff_ffffn;
    await this.#later<void>(slot, null, options, () => {
      slot.prepareAtomic(bytes, reply.$address);
      const { ucp_atomic_op_nbx } = this.#context.ucp.remote;
      const begun = ucp_atomic_op_nbx(this.#handle, code, given.$address, 1n, part.address, part.key, slot.parameters);
      this.#context.progress.begun(slot, begun);
    }).catch((error: unknown) => {
      const isCancelled = error instanceof UcxError && error.status === ucs_status_t.UCS_ERR_CANCELED;
      throw isCancelled && this.#handle !== 0n ? new UcxError(error.call, error.status, notInSoftware) : error;
    });
    return before;
  }

  /** Settles when everything that was put and sent before is at the other side. */
  async flush(options: LimitOptions = none): Promise<void> {
    checkOptions(options, limitOptionNames);
    const handle = this.#open("flush");
    if (options.timeout !== undefined) checkTimeout(options.timeout);
    const operation = this.#foreign("ucp_ep_flush_nbx", null);
    await this.#starts.add({ ready: null, release: () => this.#context.operations.give(operation) }, async () => {
      const { signal, clear } = timeLimit(operation.call, options);
      const { ucp, progress } = this.#context;
      progress.begunForeign(operation, ucp.endpoint.ucp_ep_flush_nbx(handle, operation.parameters));
      await progress.settled(operation, signal).finally(clear);
    });
  }

  /**
   * Settles when the connection to a listener stands. Called by the worker.
   *
   * @throws {UcxError} if nobody listens there
   */
  async established(signal: AbortSignal | undefined): Promise<void> {
    const flush = this.#foreign("ucp_ep_create", null);
    const { ucp, progress } = this.#context;
    progress.begunForeign(flush, ucp.endpoint.ucp_ep_flush_nbx(this.#handle, flush.parameters));
    await progress.settled(flush, signal);
  }

  /**
   * The transports that UCX chose for this endpoint, for example `["tcp/lo", "cma/memory"]`. It is complete once the
   * first message has passed.
   */
  transports(): string[] {
    const { ucp } = this.#context;
    const handle = this.#open("list transports");
    const text = printInfo((file) => ucp.information.ucp_ep_print_info(handle, file));
    return [
      ...new Set(Array.from(text.matchAll(/lane\[\d+\]:\s*\d+:([\w/.-]+?)(?:\.\d+)?\s/g), ([, name]) => name ?? "")),
    ];
  }

  // law ucx/UcxEndpoint.fail: ucx/order
  /** Reports the failure of the connection. Called by the worker. */
  fail(error: UcxError): void {
    this.#failure ??= error;
    this.#messages.end();
    const { call, status } = error;
    this.#context.progress.abandonAll(this.#receives, () => new UcxError(call, status, advice(status)));
    this.#starts.stop(error);
    this.#settleClosed(error);
  }

  // law ucx/UcxEndpoint.lose: ucx/endpoint, ucx/two_processes
  /** Fails what UCX would leave waiting: the other process has ended. Called by the worker. */
  async lose(): Promise<void> {
    if (this.#failure !== undefined || this.#handle === 0n) return;
    this.fail(gone("ucp_worker_progress"));
    this.#context.progress.abandonAll(this.#owner, ({ call }) => gone(call)); // UCX may never end them
    await this.#end(UCP_EP_CLOSE_FLAG.FORCE);
  }

  /**
   * Closes the endpoint after what was sent has arrived; with `force`, or if the other side is gone, at once: sends
   * that are under way are then rejected.
   *
   * Closing twice is harmless, and `force` also ends a close that is still waiting.
   */
  close(options: { readonly force?: boolean } = {}): Promise<void> {
    checkOptions(options, closeOptionNames);
    if (options.force ?? this.#failure !== undefined) return this.#end(UCP_EP_CLOSE_FLAG.FORCE);
    this.#closing ??= this.#finish();
    return this.#closing;
  }

  /** Closes the endpoint after what was sent has arrived. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /**
   * Waits until what was sent has arrived, or cannot arrive any more. UCX's own close would not: it drops sends that
   * wait for their receiver, and once begun it cannot be forced.
   */
  async #finish(): Promise<void> {
    if (this.#underWay > 0) {
      this.#drained = Promise.withResolvers();
      await this.#drained.promise;
    }
    const { ucp } = this.#context;
    if (this.#failure === undefined && this.#handle !== 0n) {
      const flush = this.#foreign("ucp_ep_flush_nbx", null);
      await this.#follow(flush, ucp.endpoint.ucp_ep_flush_nbx(this.#handle, flush.parameters));
    }
    await this.#end(this.#failure === undefined ? 0 : UCP_EP_CLOSE_FLAG.FORCE);
  }

  /** Gives the endpoint back to UCX, once. */
  #end(flags: number): Promise<void> {
    this.#ended ??= this.#closeHandle(flags);
    return this.#ended;
  }

  // law ucx/UcxEndpoint.closeHandle: ucx/order
  async #closeHandle(flags: number): Promise<void> {
    const { ucp } = this.#context;
    const handle = this.#handle;
    this.#handle = 0n;
    const closed = new TypeError("The endpoint was closed");
    this.#starts.stop(closed);
    for (const message of this.#messages.waiting) message.release();
    this.#messages.end();
    this.#context.progress.abandonAll(this.#receives, () => closed);
    this.#drained?.resolve(); // a close that waits for sends need not wait any longer
    if (this.#underWay > 0 && this.#failure === undefined) this.#context.cutShort();
    const close = this.#foreign("ucp_ep_close_nbx", flags);
    await this.#follow(close, ucp.endpoint.ucp_ep_close_nbx(handle, close.parameters));
    this.#context.forget(handle);
    this.#settleClosed(null);
  }

  /** An operation with a request of UCX's own. */
  #foreign(call: string, flags: number | null): Operation {
    const operation = this.#context.operations.take();
    operation.call = call;
    operation.prepare("plain", UCS_MEMORY_TYPE.HOST, flags, "its own");
    return operation;
  }

  /** The end of a flush or a close, however it ends: that the other side went first is what `closed` reports. */
  async #follow(operation: Operation, begun: bigint): Promise<void> {
    const { progress } = this.#context;
    try {
      progress.begunForeign(operation, begun);
      await progress.settled(operation);
    } catch (error) {
      const isOurs = this.#ended !== undefined; // the close itself, or a flush that it has cancelled
      if (error instanceof UcxError && !isOurs) this.fail(error);
    }
  }

  #open(doing: string): bigint {
    if (this.#failure !== undefined) {
      const { call, status } = this.#failure;
      throw new UcxError(call, status, `Cannot ${doing}: the endpoint has failed before`);
    }
    if (this.#closing !== undefined || this.#handle === 0n) {
      throw new TypeError(`Cannot ${doing}: the endpoint is closed`);
    }
    return this.#handle;
  }
}
