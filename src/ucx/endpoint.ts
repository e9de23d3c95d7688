/**
 * An endpoint: the connection from one worker to another.
 *
 * @module
 */
import { UCP_EP_CLOSE_FLAG, ucs_status_t } from "../../bindings/ucp_types.ts";
import { nodeBuiltin } from "../ffi/mod.ts";
import { checkMade, checkOptions, none, type OptionNames, showAs } from "../layout/mod.ts";
import type { StridedMemoryView } from "../view/mod.ts";
import { messagesOf, type UcxActiveMessage } from "./message/active_messages.ts";
import { type ReceiveArrayOptions, recvArray } from "./arrays.ts";
import { explain } from "./explain.ts";
import { checkOf } from "./address.ts";
import { ByteStream } from "./stream/byte_stream.ts";
import { EndpointOperations, type WorkerParts } from "./endpoint_operations.ts";
import { UcxError } from "./error.ts";
import { checkLimits, checkTimeout, farewell, limitOptionNames, type LimitOptions, timeLimit } from "./limit.ts";
import { excessOf, type MessageLimits } from "./message/message_limits.ts";
import type { Receivable, Sendable } from "./message_memory.ts";
import { MessageQueue } from "./message/message_queue.ts";
import { MessageSender, type SendMessageOptions } from "./message_sender.ts";
import type { Operation } from "./operation.ts";
import { printInfo } from "./print_info.ts";
import { confirm } from "./protocol.ts";
import { RawStream } from "./raw_stream.ts";
import type { Received, ReceiveManyOptions, ReceiveOptions, Receiver, ReceiveSyncOptions } from "./receiver.ts";
import { type AtomicOperation, type AtomicOptions, RemoteAccess } from "./remote_access.ts";
import { checkRemoteMemory, type UcxRemoteKey } from "./remote_memory.ts";
import { advice } from "./status.ts";
import { type SendOptions, type SendSyncOptions, TagSender } from "./tag_sender.ts";

/** Options of {@linkcode UcxEndpoint.close}. */
export interface CloseOptions {
  /** Whether not to wait until what was sent has arrived. Default false, unless the other side is gone. */
  readonly force?: boolean;
  /** For how long to wait, in milliseconds; then it is closed by force. Default: as long as it takes. */
  readonly timeout?: number;
}

const closeOptionNames: OptionNames<CloseOptions> = { force: true, timeout: true };

/** For how long the end of a block waits for what was sent, in milliseconds. */
export const patienceOfDispose = 5000;

/** For how long a close waits for the other side's program to turn its event loop, in milliseconds. */
const acknowledgedWithin = 1000;

/** Why an endpoint is closed: `null` if it was closed here, otherwise what UCX reported. */
export type CloseReason = UcxError | null;

/** What an endpoint needs of its worker. */
export interface EndpointContext extends WorkerParts {
  readonly receiver: Receiver;
  /** The worker's address. */
  address(): Uint8Array;
  /** The most bytes that a header of an active message can have. */
  longestHeader(): number;
  /** Whether remote memory is used at all. */
  readonly hasRemoteMemory: boolean;
  /** Called when sends are cut short by a close by force. */
  cutShort(): void;
  readonly limits: Required<MessageLimits>;
  /** Whether the connection was made by host and port: the other side has an endpoint, too. */
  readonly isByHost: boolean;
  /** Whether UCX notices that the other side goes (`errors: "peer"`). */
  readonly handlesErrors: boolean;
  /** Whether the connection is made from here, and need not stand yet. */
  readonly isConnecting: boolean;
  /** Called once, when the endpoint is gone. */
  forget(handle: bigint): void;
}

function gone(call: string, status: number = ucs_status_t.UCS_ERR_CONNECTION_RESET): UcxError {
  return new UcxError(call, status, advice(status));
}

/** A connection to another worker. */
export class UcxEndpoint {
  readonly #context: EndpointContext;
  readonly #closed: Promise<CloseReason>;
  readonly #resolveClosed: (reason: CloseReason) => void;
  /** Lets the worker be collected again, which has been asked for `closed`. */
  #forgetClosed: (() => void) | undefined;
  #isClosed = false;
  readonly #operations: EndpointOperations;
  readonly #sender: TagSender;
  readonly #messageSender: MessageSender;
  readonly #remote: RemoteAccess;
  readonly #rawStream: RawStream;
  readonly #byteStream: ByteStream;
  readonly #messages: MessageQueue<UcxActiveMessage>;
  readonly #arrays: MessageQueue<UcxActiveMessage>;
  /** Whether the other side has said that it closes its endpoint, after what it has sent. */
  #isPeerClosed = false;
  /** Settles when the other side knows that this one closes its endpoint, or never will. */
  readonly #acknowledged = Promise.withResolvers<void>();
  /** Whether nobody takes messages any more. */
  #isDismissed = false;
  /** Whether UCX may still be making the connection. */
  #isConnecting: boolean;
  /** The handle, while it waits for that to be given back. */
  #leaving = 0n;
  #closing: Promise<void> | undefined;
  #ended: Promise<void> | undefined;
  #givenBack: Promise<void> | undefined;

  /** Use {@linkcode UcxWorker.connect}. */
  constructor(context: EndpointContext, handle: bigint) {
    checkMade(handle, "UcxEndpoint", "worker.connect(address)");
    const { promise, resolve } = Promise.withResolvers<CloseReason>();
    this.#context = context;
    this.#isConnecting = context.isConnecting;
    this.#operations = new EndpointOperations(context, handle);
    this.#messages = new MessageQueue(() => context.progress.hold());
    this.#arrays = new MessageQueue(() => context.progress.hold());
    this.#sender = new TagSender(this.#operations);
    this.#messageSender = new MessageSender(this.#operations, context.longestHeader);
    this.#remote = new RemoteAccess(this.#operations);
    this.#rawStream = new RawStream(this.#operations);
    this.#byteStream = new ByteStream(
      this.#operations,
      this.#rawStream,
      context.handlesErrors,
      () => checkOf(context.address()),
      () => context.progress.keep(),
    );
    this.#closed = promise;
    this.#resolveClosed = resolve;
  }

  /** Calls back when the endpoint is no longer usable; it keeps nothing. Called by the listener. */
  onClosed(act: () => void): void {
    void this.#closed.then(act);
  }

  // law ucx/UcxEndpoint.closed: ucx/dropped
  /**
   * Settles when the endpoint is no longer usable: with `null` if it was closed here, else with UCX's reason. Until then
   * whoever asks for it keeps the endpoint and its worker from being collected, but not the process alive.
   */
  get closed(): Promise<CloseReason> {
    // Nobody can tell whether a promise is waited for: whoever has it may.
    if (!this.#isClosed) this.#forgetClosed ??= this.#context.progress.keep();
    return this.#closed;
  }

  /**
   * Sends bytes. They must not change until the promise is settled; UCX has sent or copied them by then. Memory with a
   * home stream is sent when that stream's next work could begin, and later messages of this endpoint after it; the
   * event loop goes on meanwhile.
   *
   * @param what a view, a buffer, JavaScript's own memory, or another library's array
   * @throws {UcxError} if the other side is gone
   * @throws {TypeError} if the endpoint is closed, if the memory is a GPU's and this UCX was built without CUDA, or with
   *   `copy: false` if it is not contiguous; if it is an ArrayBuffer that can be resized, or is transferred before UCX is
   *   done with it ({@linkcode Sendable})
   * @throws {RangeError} if the tag has more than 64 bits
   */
  send(what: Sendable, options: SendOptions = none): Promise<void> {
    return this.#sender.send(what, options);
  }

  /**
   * Sends bytes, and waits in place until they may change again: nothing else happens in this thread meanwhile. For
   * loops that count microseconds.
   *
   * @param what a view, a buffer, JavaScript's own memory, or another library's array
   * @throws {UcxError} if the other side is gone, or UCS_ERR_TIMED_OUT
   * @throws {TypeError} as {@linkcode send}, and if earlier sends wait for a stream: await them first
   * @throws {RangeError} if the tag has more than 64 bits
   */
  sendSync(what: Sendable, options: SendSyncOptions = none): void {
    this.#sender.sendSync(what, options);
  }

  /**
   * Sends several pieces of memory as one message, which {@linkcode recvMany} receives into memory of its own: on the
   * wire as UCXX's `send_multi`, a header and each part by itself, all with the same tag.
   *
   * @param parts views, buffers, JavaScript's own memory, or other libraries' arrays, in any mixture
   * @throws {UcxError} if the other side is gone
   * @throws {TypeError | RangeError} as {@linkcode send}; nothing is sent then
   */
  sendMany(parts: readonly Sendable[], options: SendOptions = none): Promise<void> {
    return this.#sender.sendMany(parts, options);
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
      this.#operations.open("receive");
    } catch (error) {
      return Promise.reject(error);
    }
    return this.#context.receiver.recv(into, options, this.#operations.receives, this.#operations.tags);
  }

  /** As {@linkcode recv}, waited for in place, as {@linkcode UcxWorker.recvSync}. */
  recvSync(into: Receivable, options: ReceiveSyncOptions = none): Received {
    this.#operations.open("receive");
    return this.#context.receiver.recvSync(into, options, this.#operations.receives, this.#operations.tags);
  }

  /** Receives what {@linkcode sendMany} has sent, as {@linkcode UcxWorker.recvMany}, and ends with this endpoint. */
  async recvMany(options: ReceiveManyOptions = none): Promise<StridedMemoryView[]> {
    const { receives, tags } = this.#operations;
    this.#operations.open("receive");
    try {
      return await this.#context.receiver.recvMany(options, receives, tags, this.#context.limits.messageBytes);
    } catch (error) {
      if (error instanceof UcxError && error.status === ucs_status_t.UCS_ERR_EXCEEDS_LIMIT) this.#exceed(error);
      throw error;
    }
  }

  /**
   * Sends an active message: it comes to the other side's {@linkcode messages} without having been asked for.
   *
   * @param what a view, a buffer, JavaScript's own memory, or another library's array; or several, whose bytes go one
   *   after the other. They must not change until the promise is settled
   * @throws {UcxError} if the other side is gone
   * @throws {RangeError} if the header is longer than UCX takes (some thousand bytes)
   * @throws {TypeError} as {@linkcode send}
   */
  sendMessage(what: Sendable | readonly Sendable[], options: SendMessageOptions = none): Promise<void> {
    return this.#messageSender.send(what, options);
  }

  /**
   * The active messages of the other side, in the order in which they come. Whoever takes one receives or releases it.
   *
   * What has come before the other side closes its endpoint, or is lost, can be taken still, except for data that are
   * still at the sender. Then the iteration ends: without an error if the other side has closed its endpoint in order,
   * or this one was closed here, which drops what nobody has taken; otherwise with the error.
   *
   * @param options limits of the wait for each message
   */
  messages(options: LimitOptions = none): AsyncIterable<UcxActiveMessage> {
    return messagesOf(this.#messages, options);
  }

  /** Called by the worker. @returns whether it can be taken here */
  deliver(message: UcxActiveMessage, kind: "message" | "array"): boolean {
    const queue = kind === "array" ? this.#arrays : this.#messages;
    const waiting = this.#messages.waiting.length + this.#arrays.waiting.length;
    const excess = excessOf(this.#context.limits, waiting, message.length);
    if (excess === null) return queue.push(message);
    // UCX calls this, inside a function of its own: what it reports is dealt with when that is over.
    const error = new UcxError(
      "ucp_worker_progress",
      ucs_status_t.UCS_ERR_EXCEEDS_LIMIT,
      `The other side has sent ${excess}`,
    );
    this.#context.progress.afterNews(() => this.#exceed(error));
    return false;
  }

  // law ucx/UcxEndpoint.exceed: ucx/listener
  #exceed(error: UcxError): void {
    if (this.#operations.failure !== undefined || this.#operations.handle === 0n) return;
    this.fail(error);
    this.#dismiss();
    void this.#end(UCP_EP_CLOSE_FLAG.FORCE);
  }

  /**
   * Sends an array with its element type and shape: one message, which {@linkcode recvArray} receives into memory of its
   * own. It must not change until the promise is settled.
   *
   * @param array a view, a typed array, or another library's array, with any strides
   * @throws {UcxError} if the other side is gone
   * @throws {TypeError} as {@linkcode send}, and if it is no array
   */
  sendArray(array: unknown, options: LimitOptions = none): Promise<void> {
    return this.#messageSender.sendArray(array, options);
  }

  /**
   * Receives the next array of the other side, in C order, into new memory. Closing the view frees the memory.
   *
   * @throws {UcxError} if the other side has gone, and what has come before is taken
   * @throws {TypeError} if the endpoint is closed, or what has come describes no array
   */
  recvArray(options: ReceiveArrayOptions = none): Promise<StridedMemoryView> {
    const over = () => this.#operations.failure ?? new TypeError("Cannot receive an array: the endpoint is closed");
    return recvArray(this.#arrays, options, over);
  }

  /**
   * The bytes that the other side writes to its {@linkcode writable}, until it closes it: a byte stream, for reads with
   * a view of one's own and without. Bytes are received into that view; none are asked for before somebody reads.
   *
   * It fails with the endpoint, and if the writer aborts. `cancel` has the other side's writes fail.
   */
  get readable(): ReadableStream<Uint8Array<ArrayBuffer>> {
    return this.#byteStream.readable;
  }

  /**
   * Takes bytes for the other side's {@linkcode readable}. A write settles when its chunk may change; it waits while it
   * is 1 MiB ahead of what the other program has read.
   *
   * It fails with the endpoint, and if the reader cancels. `abort` has the other side's reads fail. Once it is closed,
   * {@linkcode close} of the endpoint waits until the other side has read to the end, or reads no more.
   */
  get writable(): WritableStream<Uint8Array> {
    return this.#byteStream.writable;
  }

  /** What the other side's streams say. Called by the worker. */
  onStreamControl(
    kind: "taken" | "end" | "cancelled" | "writing" | "closed" | "acknowledged",
    taken: number,
  ): void {
    if (kind === "acknowledged") this.#acknowledged.resolve();
    if (kind === "closed") {
      this.#isPeerClosed = true;
      this.#context.progress.afterNews(() => this.#byteStream.notify("acknowledged")); // UCX calls this
    }
    this.#byteStream.onControl({ kind, taken });
  }

  /**
   * UCX's stream as it is, instead of {@linkcode readable} and {@linkcode writable}: for programs that agree with the
   * other side on how many bytes come, UCXX's among them.
   */
  get rawStream(): RawStream {
    return this.#rawStream;
  }

  /**
   * Memory of the other process, by the key that its worker has made of it ({@linkcode UcxWorker.register}).
   *
   * @throws {TypeError} if the bytes are no key, or not all of it
   * @throws {UcxError} if it cannot be reached through this endpoint
   */
  remote(key: Uint8Array): UcxRemoteKey {
    checkRemoteMemory(this.#context.hasRemoteMemory);
    return this.#remote.key(key);
  }

  /**
   * Writes to memory of the other process. The promise settles when the bytes here may change; they are there when a
   * {@linkcode flush} that was called after it has settled.
   *
   * @param what a view, a buffer, JavaScript's own memory, or another library's array
   * @param offset where to write to, in bytes
   * @throws {UcxError} if the other side is gone
   * @throws {RangeError} if it does not fit
   * @throws {TypeError} as {@linkcode send}
   */
  put(what: Sendable, remote: UcxRemoteKey, offset = 0, options: LimitOptions = none): Promise<void> {
    return this.#remote.put(what, remote, offset, options);
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
  get(into: Receivable, remote: UcxRemoteKey, offset = 0, options: LimitOptions = none): Promise<void> {
    return this.#remote.get(into, remote, offset, options);
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
  atomic(
    operation: AtomicOperation,
    remote: UcxRemoteKey,
    offset: number,
    operand: bigint,
    options: AtomicOptions = none,
  ): Promise<bigint> {
    return this.#remote.atomic(operation, remote, offset, operand, options);
  }

  /** Whether it is being closed, or is closed: nothing new begins. */
  get isClosing(): boolean {
    return this.#operations.isClosing;
  }

  /** Called by the worker. @throws {TypeError} if an operation waits for a stream */
  checkInTurn(doing: string): void {
    if (this.#operations.isInTurn) return;
    throw new TypeError(`Cannot ${doing}: earlier operations wait for a stream. Await them first.`);
  }

  /** Settles when everything that was put and sent before is at the other side. */
  async flush(options: LimitOptions = none): Promise<void> {
    checkOptions(options, limitOptionNames);
    checkLimits(options);
    await this.#operations.flush(options);
  }

  /**
   * Settles when the connection to a listener stands. Called by the worker.
   *
   * @throws {UcxError} if nobody listens there
   */
  async established(signal: AbortSignal | undefined): Promise<void> {
    const flush = this.#operations.foreign("ucp_ep_create", null);
    const { ucp, progress } = this.#context;
    progress.begunForeign(flush, ucp.endpoint.ucp_ep_flush_nbx(this.#operations.handle, flush.parameters));
    await progress.settled(flush, signal);
    this.#isConnecting = false;
  }

  /**
   * Begins a connection, as the worker's protocol does or as after a secret. Called by the worker.
   *
   * @throws if the other side does not
   */
  async greet(how: "protocol" | "secret", side: "listener" | "client", signal: AbortSignal | undefined): Promise<void> {
    const greeting = how === "secret" ? confirm : this.#context.protocol.greet;
    if (greeting === null) return;
    this.#operations.tags = await greeting(this.#rawStream, side, signal === undefined ? {} : { signal });
  }

  /**
   * The transports that UCX chose for this endpoint, for example `["tcp/lo", "cma/memory"]`. It is complete once the
   * first message has passed.
   */
  transports(): string[] {
    const { ucp } = this.#context;
    const handle = this.#operations.open("list transports");
    const text = printInfo((file) => ucp.information.ucp_ep_print_info(handle, file));
    return [
      ...new Set(Array.from(text.matchAll(/lane\[\d+\]:\s*\d+:([\w/.-]+?)(?:\.\d+)?\s/g), ([, name]) => name ?? "")),
    ];
  }

  /**
   * Says in words how {@linkcode send} would send memory: whether it is copied first, what it waits for, by which
   * transports it goes, and what keeps it from going faster.
   *
   * @throws {TypeError} as {@linkcode send}
   */
  explain(what: Sendable): string {
    const { cuda, handlesErrors } = this.#context;
    return explain(what, { transports: this.transports(), cuda, handlesErrors });
  }

  /** Reports the failure of the connection. Called by the worker. */
  fail(error: UcxError): void {
    const { call, status } = error;
    // UCXX closes by force, so that its end in order looks like any other that the system notices.
    const isInOrder = this.#isPeerClosed ||
      (this.#context.protocol.greet !== null && status === ucs_status_t.UCS_ERR_CONNECTION_RESET);
    this.#messages.end(isInOrder ? null : error);
    this.#arrays.end();
    this.#context.progress.abandonAll(this.#operations.receives, () => new UcxError(call, status, advice(status)));
    this.#operations.fail(error);
    this.#acknowledged.resolve();
    this.#byteStream.end(error);
    this.#settleClosed(error);
  }

  // law ucx/UcxEndpoint.lose: ucx/endpoint, ucx/two_processes
  /** Fails what UCX would leave waiting: the other process has ended, or UCX has said so. Called by the worker. */
  async lose(): Promise<void> {
    const own = this.#operations;
    if (own.handle === 0n) return;
    if (own.failure === undefined) {
      this.#context.progress.poll(); // what it has sent before has come
      this.fail(gone("ucp_worker_progress"));
    }
    own.abandon(({ call }) => gone(call)); // UCX may never end them
    await this.#end(UCP_EP_CLOSE_FLAG.FORCE);
  }

  /**
   * Closes the endpoint after what was sent has arrived; with `force`, or if the other side is gone, at once: sends
   * that are under way are then rejected.
   *
   * Closing twice is harmless, and `force` also ends a close that is still waiting.
   *
   * @throws {RangeError} if the timeout is no number of at least 0
   */
  async close(options: CloseOptions = none): Promise<void> {
    checkOptions(options, closeOptionNames);
    const { force = this.#operations.failure !== undefined, timeout } = options;
    if (timeout !== undefined) checkTimeout(timeout);
    if (this.#ended !== undefined) this.#dismiss();
    this.#isDismissed = true;
    if (force) return await this.#end(UCP_EP_CLOSE_FLAG.FORCE);
    this.#closing ??= this.#finish();
    if (timeout === undefined) return await this.#closing;
    const { setTimeout, clearTimeout } = nodeBuiltin("node:timers");
    const timer = setTimeout(() => void this.#end(UCP_EP_CLOSE_FLAG.FORCE), timeout);
    await this.#closing.finally(() => clearTimeout(timer));
  }

  /**
   * Closes the endpoint after what was sent has arrived. After 5 seconds it is closed by force, so that a block that
   * has thrown ends: await what you send, or {@linkcode close}, if it may take longer.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close({ timeout: patienceOfDispose });
  }

  // law ucx/UcxEndpoint.finish: ucx/byte_stream
  /**
   * Waits until what was sent has arrived, or cannot arrive any more. UCX's own close would not: it drops sends that
   * wait for their receiver, and once begun it cannot be forced.
   */
  async #finish(): Promise<void> {
    const own = this.#operations;
    this.#context.progress.poll(); // who writes to the stream here, and has said so, is to be notified
    this.#byteStream.closing(new TypeError("The endpoint was closed"));
    const drained = own.drain();
    if (drained !== null) await drained;
    const { delivered } = this.#byteStream;
    if (delivered !== null) await delivered; // UCX would drop what was sent and not received
    const acknowledged = this.#notifyClosed();
    if (acknowledged !== null) await acknowledged;
    const { ucp } = this.#context;
    if (own.failure === undefined && own.handle !== 0n) {
      const flush = own.foreign("ucp_ep_flush_nbx", null);
      await this.#follow(flush, ucp.endpoint.ucp_ep_flush_nbx(own.handle, flush.parameters));
    }
    await this.#end(own.failure === undefined ? 0 : UCP_EP_CLOSE_FLAG.FORCE);
  }

  // law ucx/UcxEndpoint.notifyClosed: ucx/active_messages
  /**
   * Notifies the other side that it is closed in order. By host and port UCX reports the end over a connection of its
   * own, which overtakes what was sent by shared memory, and drops that then: so all has to have come before.
   *
   * @returns what settles when it has; null if nobody says so
   */
  #notifyClosed(): Promise<void> | null {
    const own = this.#operations;
    const { protocol, isByHost, progress } = this.#context;
    if (own.failure !== undefined || own.handle === 0n || protocol.greet !== null) return null;
    if (!(own.hasSentMessages || isByHost) || !this.#byteStream.notify("closed") || !isByHost) return null;
    const { setTimeout, clearTimeout } = nodeBuiltin("node:timers");
    const timer = setTimeout(() => this.#acknowledged.resolve(), acknowledgedWithin);
    return progress.waitsFor(this.#acknowledged.promise).finally(() => clearTimeout(timer));
  }

  /** Closes it at once, for a worker that goes now. Called by the worker. */
  abort(): void {
    this.#dismiss();
    this.#isConnecting = false; // nothing is waited for
    void this.#end(UCP_EP_CLOSE_FLAG.FORCE);
    if (this.#leaving !== 0n) void this.#giveBack(this.#leaving, UCP_EP_CLOSE_FLAG.FORCE);
  }

  /** Ends everything, and gives the endpoint back to UCX, once. */
  #end(flags: number): Promise<void> {
    this.#ended ??= this.#leave(flags);
    return this.#ended;
  }

  async #leave(flags: number): Promise<void> {
    const own = this.#operations;
    const closed = new TypeError("The endpoint was closed");
    this.#byteStream.end(closed);
    const handle = own.end(closed);
    this.#acknowledged.resolve();
    for (const queue of [this.#messages, this.#arrays]) {
      queue.end();
      for (const message of queue.takeAll((message) => this.#isDismissed || !message.keep())) message.release();
    }
    this.#context.progress.abandonAll(this.#operations.receives, () => closed);
    if (own.isBusy && own.failure === undefined) this.#context.cutShort();
    if (flags !== 0 && this.#isConnecting && own.failure === undefined) await this.#letConnect(handle);
    await this.#giveBack(handle, flags);
  }

  // law ucx/UcxEndpoint.letConnect: ucx/limits, ucx/lifecycle
  /**
   * Gives UCX a moment to make the connection: when an endpoint is closed by force while it connects over TCP, UCX 1.13
   * ends the process with a failed assertion.
   */
  async #letConnect(handle: bigint): Promise<void> {
    this.#leaving = handle;
    const flush = this.#operations.foreign("ucp_ep_flush_nbx", null);
    const limit = timeLimit(flush.call, { timeout: farewell });
    const { ucp } = this.#context;
    await this.#follow(flush, ucp.endpoint.ucp_ep_flush_nbx(handle, flush.parameters), limit.signal);
    limit.clear();
  }

  #giveBack(handle: bigint, flags: number): Promise<void> {
    this.#givenBack ??= this.#closeHandle(handle, flags);
    return this.#givenBack;
  }

  async #closeHandle(handle: bigint, flags: number): Promise<void> {
    const { resources } = this.#context;
    const own = this.#operations;
    this.#leaving = 0n;
    const close = own.foreign("ucp_ep_close_nbx", flags);
    await this.#follow(close, resources.closeEndpoint(handle, close.parameters));
    this.#context.progress.poll(Infinity); // UCX ends what was in flight soon after, and its memory is free then
    const status = own.failure === undefined ? ucs_status_t.UCS_ERR_CANCELED : undefined; // as UCX says it
    own.abandon(({ call }) => gone(call, status)); // what UCX has forgotten
    this.#context.forget(handle);
    this.#settleClosed(null);
  }

  // law ucx/UcxEndpoint.settleClosed: ucx/dropped
  #settleClosed(reason: CloseReason): void {
    this.#resolveClosed(reason);
    this.#isClosed = true;
    this.#forgetClosed?.();
  }

  /** Drops what nobody has taken. */
  #dismiss(): void {
    this.#isDismissed = true;
    for (const message of [...this.#messages.takeAll(), ...this.#arrays.takeAll()]) message.release();
  }

  /** The end of a flush or a close, however it ends: that the other side went first is what `closed` reports. */
  async #follow(operation: Operation, begun: bigint, signal?: AbortSignal): Promise<void> {
    const { progress } = this.#context;
    try {
      progress.begunForeign(operation, begun);
      await progress.settled(operation, signal);
    } catch (error) {
      const isOurs = this.#ended !== undefined; // the close itself, or a flush that it has cancelled
      if (error instanceof UcxError && !isOurs) this.fail(error);
    }
  }

  static {
    showAs(UcxEndpoint, describeEndpoint);
  }
}

/** Without waiting: UCX knows by which transports it sends when the first message has passed. */
function describeEndpoint(endpoint: UcxEndpoint): string {
  if (endpoint.isClosing) return "(closed)";
  const transports = endpoint.transports();
  return transports.length === 0 ? "(open)" : `(open, by ${transports.join(", ")})`;
}
