/**
 * An endpoint: the connection from one worker to another, as programs use it. How it begins and ends is in
 * `endpoint_lifecycle.ts`.
 *
 * @module
 */
import { ucs_status_t } from "../../bindings/ucp_types.ts";
import { checkMade, checkOptions, none, showAs } from "../layout/mod.ts";
import type { StridedMemoryView } from "../view/mod.ts";
import { turnIfDue } from "./event_loop.ts";
import { messagesOf, type UcxActiveMessage } from "./active_messages/active_messages.ts";
import { type ReceiveArrayOptions, recvArray } from "./arrays.ts";
import { explain } from "./explain.ts";
import { checkOf } from "./address.ts";
import { ByteStream } from "./stream/byte_stream.ts";
import { type CloseOptions, type CloseReason, EndpointLifecycle, type LifecycleContext } from "./endpoint_lifecycle.ts";
import { EndpointOperations } from "./endpoint_operations.ts";
import { UcxError } from "./error.ts";
import { checkLimits, limitOptionNames, type LimitOptions } from "./limit.ts";
import { excessOf, type MessageLimits } from "./active_messages/message_limits.ts";
import type { Receivable, Sendable } from "./message_memory.ts";
import { MessageQueue } from "./active_messages/message_queue.ts";
import { MessageSender, type SendMessageOptions } from "./active_messages/message_sender.ts";
import type { Owner } from "./operation.ts";
import { printInfo } from "./print_info.ts";
import { confirm } from "./protocol.ts";
import { RawStream } from "./raw_stream.ts";
import type { Received, ReceiveOptions, Receiver, ReceiveSyncOptions } from "./receiver.ts";
import type { ReceiveManyOptions } from "./parts_receiver.ts";
import { type AtomicOperation, type AtomicOptions, RemoteAccess } from "./remote_access.ts";
import { checkRemoteMemory, type UcxRemoteKey } from "./remote_memory.ts";
import { everyBit } from "./tag.ts";
import { type SendOptions, type SendSyncOptions, TagSender } from "./tag_sender.ts";

/** How long the end of a block waits for everything sent to arrive, in milliseconds. */
export const patienceOfDispose = 5000;

/** What an endpoint needs from its worker. */
export interface EndpointContext extends LifecycleContext {
  readonly receiver: Receiver;
  /** The worker's address. */
  address(): Uint8Array;
  /** The maximum header size of an active message, in bytes. */
  longestHeader(): number;
  /** Whether remote memory is enabled. */
  readonly hasRemoteMemory: boolean;
  readonly limits: Required<MessageLimits>;
  /** Whether UCX detects the end of the other side (`errors: "peer"`). */
  readonly handlesErrors: boolean;
}

/** A connection to another worker. */
export class UcxEndpoint {
  readonly #context: EndpointContext;
  readonly #operations: EndpointOperations;
  readonly #sender: TagSender;
  readonly #messageSender: MessageSender;
  readonly #remote: RemoteAccess;
  readonly #rawStream: RawStream;
  readonly #byteStream: ByteStream;
  readonly #messages: MessageQueue<UcxActiveMessage>;
  readonly #arrays: MessageQueue<UcxActiveMessage>;
  readonly #lifecycle: EndpointLifecycle;

  /** Use {@linkcode UcxWorker.connect}. */
  constructor(context: EndpointContext, handle: bigint) {
    checkMade(handle, "UcxEndpoint", "worker.connect(address)");
    this.#context = context;
    this.#operations = new EndpointOperations(context, handle);
    this.#messages = new MessageQueue(() => context.progress.retainProcess(), turnIfDue);
    this.#arrays = new MessageQueue(() => context.progress.retainProcess(), turnIfDue);
    this.#sender = new TagSender(this.#operations);
    this.#messageSender = new MessageSender(this.#operations, context.longestHeader);
    this.#remote = new RemoteAccess(this.#operations);
    this.#rawStream = new RawStream(this.#operations);
    this.#byteStream = new ByteStream(
      this.#operations,
      this.#rawStream,
      context.handlesErrors,
      () => checkOf(context.address()),
      () => context.progress.retainWorker(),
    );
    this.#lifecycle = new EndpointLifecycle(context, {
      operations: this.#operations,
      byteStream: this.#byteStream,
      messages: this.#messages,
      arrays: this.#arrays,
    });
  }

  /**
   * Calls back when the endpoint is no longer usable, or its other process has ended, without keeping anything alive.
   * Called by the listener.
   *
   * @internal
   */
  onVacated(act: () => void): void {
    this.#lifecycle.onVacated(act);
  }

  /**
   * Notes that the other process has ended, before UCX has had the time to report it. Called by the worker.
   *
   * @internal
   */
  processEnded(): void {
    this.#lifecycle.processEnded();
  }

  /**
   * Settles when the endpoint is no longer usable: with `null` if it was closed here, else with UCX's reason. Once
   * read, it keeps the endpoint and its worker from being collected until then, but does not keep the process alive.
   */
  get closed(): Promise<CloseReason> {
    return this.#lifecycle.closed;
  }

  /**
   * Sends bytes. They must not change until the promise is settled; UCX has sent or copied them by then. Memory with a
   * home stream is sent when that stream's next work could begin, and later messages of this endpoint follow it; the
   * event loop keeps running meanwhile.
   *
   * @param what a view, a buffer, JavaScript's own memory, or another library's array
   * @throws {UcxError} if the other side is gone
   * @throws {TypeError} if the endpoint is closed; if the memory is on a GPU and this UCX was built without CUDA; with
   *   `copy: false`, if it is not contiguous; if it is a resizable ArrayBuffer, or is transferred before UCX is done
   *   with it ({@linkcode Sendable})
   * @throws {RangeError} if the tag has more than 64 bits
   */
  send(what: Sendable, options: SendOptions = none): Promise<void> {
    return this.#sender.send(what, options);
  }

  /**
   * Sends bytes and blocks this thread until they may change again. For loops that count microseconds.
   *
   * @param what a view, a buffer, JavaScript's own memory, or another library's array
   * @throws {UcxError} if the other side is gone, or UCS_ERR_TIMED_OUT
   * @throws {TypeError} as {@linkcode send}, and if earlier sends wait for a stream, or puts for a fence: await them
   *   first
   * @throws {RangeError} if the tag has more than 64 bits
   */
  sendSync(what: Sendable, options: SendSyncOptions = none): void {
    this.#sender.sendSync(what, options);
  }

  /**
   * Sends several pieces of memory as one message, which {@linkcode recvMany} receives into new memory. On the wire it
   * is UCXX's `send_multi`: a header and each part separately, all with the same tag.
   *
   * @param parts views, buffers, JavaScript's own memory, or other libraries' arrays, in any mixture
   * @throws {UcxError} if the other side is gone
   * @throws {TypeError | RangeError} as {@linkcode send}; nothing is sent then
   */
  sendMany(parts: readonly Sendable[], options: SendOptions = none): Promise<void> {
    return this.#sender.sendMany(parts, options);
  }

  /**
   * Receives the worker's next message with a matching tag, as {@linkcode UcxWorker.recv}, and ends with this endpoint:
   * it is rejected if the other side ends first, or the endpoint is closed. What had arrived before the other side
   * closed its endpoint in order can be received until this one is closed. Messages are matched by tag alone: programs
   * with several endpoints use separate tags for each.
   *
   * @throws {UcxError} as {@linkcode UcxWorker.recv}, and if the other side is gone
   * @throws {TypeError} as {@linkcode UcxWorker.recv}, and if the endpoint is closed
   */
  recv(into: Receivable, options: ReceiveOptions = none): Promise<Received> {
    try {
      return this.#context.receiver.recv(into, options, this.#ownerOf(options), this.#operations.tags);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** As {@linkcode recv}, but blocks, as {@linkcode UcxWorker.recvSync}. */
  recvSync(into: Receivable, options: ReceiveSyncOptions = none): Received {
    return this.#context.receiver.recvSync(into, options, this.#ownerOf(options), this.#operations.tags);
  }

  /**
   * Receives a message from {@linkcode sendMany}, as {@linkcode UcxWorker.recvMany}, and ends with this endpoint. It is
   * matched by tag alone, so each sender needs a tag of its own; with the protocol `ucxx`, tags that are not exact are.
   */
  async recvMany(options: ReceiveManyOptions = none): Promise<StridedMemoryView<"uint8">[] & { readonly tag: bigint }> {
    const { tags } = this.#operations;
    const owner = () => this.#ownerOf(options);
    try {
      return await this.#context.receiver.recvMany(options, owner, tags, this.#context.limits.messageBytes);
    } catch (error) {
      if (error instanceof UcxError && error.status === ucs_status_t.UCS_ERR_EXCEEDS_LIMIT) {
        this.#lifecycle.exceed(error);
      }
      throw error;
    }
  }

  // law ucx/UcxEndpoint.ownerOf: ucx/brief
  /**
   * What a receive ends with: this endpoint, or nothing if its message had arrived before the other side announced that
   * it closes its endpoint. UCX cancels it if the data are still there.
   *
   * @throws {UcxError} if the other side is gone, and no such message has arrived
   * @throws {TypeError} if the endpoint is closed
   */
  #ownerOf(options: ReceiveOptions): Owner | null {
    const { failure, receives, tags } = this.#operations;
    if (failure !== undefined && this.#lifecycle.canReceiveArrived) {
      const { mask = everyBit } = options;
      if (this.#context.receiver.probe(tags.toReceive(options), mask) !== null) return null;
    }
    this.#operations.openHandle("receive");
    return receives;
  }

  /**
   * Sends an active message, which arrives unsolicited in the other side's {@linkcode messages}.
   *
   * @param what a view, a buffer, JavaScript's own memory, or another library's array; or several, whose bytes are sent
   *   back to back. They must not change until the promise is settled
   * @throws {UcxError} if the other side is gone
   * @throws {RangeError} if the header is longer than UCX allows (a few thousand bytes)
   * @throws {TypeError} as {@linkcode send}
   */
  sendMessage(what: Sendable | readonly Sendable[], options: SendMessageOptions = none): Promise<void> {
    return this.#messageSender.send(what, options);
  }

  /**
   * The other side's active messages, in order of arrival. The consumer receives or releases each one that it takes.
   *
   * Messages that arrive before the other side closes its endpoint, or is lost, can still be taken, except for data
   * that are still at the sender. Then the iteration ends: without an error if the other side has closed its endpoint
   * in order, or this one was closed here, which drops messages not yet taken; otherwise with the error.
   *
   * @param options limits of each wait for a message
   */
  messages(options: LimitOptions = none): AsyncIterable<UcxActiveMessage> {
    return messagesOf(this.#messages, options);
  }

  /**
   * Delivers a message. Called by the worker. @returns whether it is accepted here
   *
   * @internal
   */
  deliver(message: UcxActiveMessage, kind: "message" | "array"): boolean {
    message.endsWith(this.#operations.receives.over);
    const queue = kind === "array" ? this.#arrays : this.#messages;
    const waiting = this.#messages.size + this.#arrays.size;
    const excess = excessOf(this.#context.limits, waiting, message.length);
    if (excess === null) return queue.push(message);
    // UCX calls this from inside one of its functions: the excess is handled after that returns.
    const error = new UcxError(
      "ucp_worker_progress",
      ucs_status_t.UCS_ERR_EXCEEDS_LIMIT,
      `The other side has sent ${excess}`,
    );
    this.#context.progress.afterNews(() => this.#lifecycle.exceed(error));
    return false;
  }

  /**
   * Sends an array with its element type and shape: one message, which {@linkcode recvArray} receives into new memory.
   * The array must not change until the promise is settled.
   *
   * @param array a view, a typed array, or another library's array, with any strides
   * @throws {UcxError} if the other side is gone
   * @throws {TypeError} as {@linkcode send}, if it is not an array, and with the protocol `ucxx`, which has no arrays
   */
  async sendArray(array: unknown, options: LimitOptions & { readonly copy?: boolean } = none): Promise<void> {
    this.#context.protocol.checkExtra("sendArray");
    await this.#messageSender.sendArray(array, options);
  }

  /**
   * Receives the other side's next array, in C order, into new memory. Closing the view frees the memory.
   *
   * @throws {UcxError} if the other side is gone, and all arrays that arrived before are taken
   * @throws {TypeError} if the endpoint is closed, or the message does not describe an array; with the protocol `ucxx`
   */
  async recvArray(options: ReceiveArrayOptions = none): Promise<StridedMemoryView> {
    this.#context.protocol.checkExtra("recvArray");
    const over = () => this.#operations.failure ?? new TypeError("Cannot receive an array: the endpoint is closed");
    return await recvArray(this.#arrays, options, over);
  }

  /**
   * The bytes that the other side writes to its {@linkcode writable}, until it closes it: a byte stream, for reads with
   * or without a view of the caller's. Bytes are received into that view; none are requested before a read.
   *
   * It fails with the endpoint, and if the writer aborts. `cancel` makes the other side's writes fail.
   *
   * @throws {TypeError} with the protocol `ucxx`, which has only {@linkcode rawStream}
   */
  get readable(): ReadableStream<Uint8Array<ArrayBuffer>> {
    this.#context.protocol.checkExtra("readable");
    return this.#byteStream.readable;
  }

  /**
   * Accepts bytes for the other side's {@linkcode readable}. A write settles when its chunk may change; it waits while
   * it is 1 MiB ahead of what the other program has read.
   *
   * It fails with the endpoint, and if the reader cancels. `abort` makes the other side's reads fail. Once the stream
   * is closed, {@linkcode close} of the endpoint waits until the other side has read to the end, or stopped reading.
   *
   * @throws {TypeError} with the protocol `ucxx`, which has only {@linkcode rawStream}
   */
  get writable(): WritableStream<Uint8Array> {
    this.#context.protocol.checkExtra("writable");
    return this.#byteStream.writable;
  }

  /**
   * Handles a control message from the other side's streams. Called by the worker.
   *
   * @internal
   */
  onStreamControl(
    kind: "taken" | "end" | "cancelled" | "writing" | "closed" | "acknowledged",
    taken: number,
  ): void {
    if (kind === "acknowledged") this.#lifecycle.acknowledged();
    if (kind === "closed") this.#lifecycle.peerClosed();
    this.#byteStream.onControl({ kind, taken });
  }

  /**
   * UCX's raw stream, instead of {@linkcode readable} and {@linkcode writable}: for programs that agree with the other
   * side on how many bytes to expect, UCXX's among them.
   */
  get rawStream(): RawStream {
    return this.#rawStream;
  }

  /**
   * Memory of the other process, named by the key that its worker created for it ({@linkcode UcxWorker.register}).
   *
   * @throws {TypeError} if the bytes are not a complete key
   * @throws {UcxError} if the memory cannot be reached through this endpoint
   */
  remote(key: Uint8Array): UcxRemoteKey {
    checkRemoteMemory(this.#context.hasRemoteMemory);
    return this.#remote.key(key);
  }

  /**
   * Writes to memory of the other process. The promise settles when the local bytes may change; they have arrived when
   * a {@linkcode flush} called afterwards settles.
   *
   * @param what a view, a buffer, JavaScript's own memory, or another library's array
   * @param offset the offset to write to, in bytes
   * @throws {UcxError} if the other side is gone
   * @throws {RangeError} if it does not fit
   * @throws {TypeError} as {@linkcode send}
   */
  put(
    what: Sendable,
    remote: UcxRemoteKey,
    offset = 0,
    options: LimitOptions & { readonly copy?: boolean } = none,
  ): Promise<void> {
    return this.#remote.put(what, remote, offset, options);
  }

  /**
   * Reads from memory of the other process. The bytes have arrived when the promise settles.
   *
   * @param into contiguous writable memory: a view, a buffer, JavaScript's own, or another library's array
   * @param offset the offset to read from, in bytes
   * @throws {UcxError} if the other side is gone
   * @throws {RangeError} if the range exceeds the memory
   * @throws {TypeError} as {@linkcode recv}
   */
  get(into: Receivable, remote: UcxRemoteKey, offset = 0, options: LimitOptions = none): Promise<void> {
    return this.#remote.get(into, remote, offset, options);
  }

  /**
   * Atomically changes one number of 4 or 8 bytes in memory of the other process.
   *
   * @param operation `swap` stores the operand; `compare-and-swap` only if the number equals `compare`
   * @param offset the number's offset in bytes; its address in the other process is a multiple of its size
   * @param operand unsigned
   * @returns the previous value
   * @throws {UcxError} if the other side is gone
   * @throws {RangeError} if the number is not within the memory, or its address is not a multiple of its size
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

  /**
   * The endpoint's UCX handle; 0n from when UCX was asked to close it, which frees it at any time.
   *
   * @internal
   */
  get handle(): bigint {
    return this.#operations.handle;
  }

  /** Whether it is closing or closed: no new operation begins. What it was closed by, {@linkcode closed} tells. */
  get isClosed(): boolean {
    return this.#operations.isClosing;
  }

  /**
   * Orders access to remote memory. Called by the worker.
   *
   * @internal
   */
  fence(): void {
    this.#remote.fence();
  }

  /**
   * Settles when all earlier puts have arrived at the other side, and earlier sends have left: a large one, for which
   * the other side has yet to ask, is over when its own promise settles.
   */
  async flush(options: LimitOptions = none): Promise<void> {
    checkOptions(options, limitOptionNames);
    checkLimits(options);
    await this.#operations.flush(options);
  }

  /**
   * Settles when the connection to a listener is established. Called by the worker.
   *
   * @internal
   * @throws {UcxError} if nobody listens there
   */
  established(signal: AbortSignal | undefined): Promise<void> {
    return this.#lifecycle.established(signal);
  }

  /**
   * Greets over a new connection, as the worker's protocol does or as after a secret. Called by the worker.
   *
   * @internal
   * @throws if the other side does not greet
   */
  async greet(how: "protocol" | "secret", side: "listener" | "client", signal: AbortSignal | undefined): Promise<void> {
    const greeting = how === "secret" ? confirm : this.#context.protocol.greet;
    if (greeting === null) return;
    const limits = signal === undefined ? {} : { signal };
    this.#operations.tags = await this.#lifecycle.beforeClose(() => greeting(this.#rawStream, side, limits));
  }

  /**
   * The transports that UCX chose for this endpoint, for example `["tcp/lo", "cma/memory"]`. The list is complete once
   * the first message has been sent.
   */
  transports(): string[] {
    const { ucp } = this.#context;
    const handle = this.#operations.openHandle("list transports");
    const text = printInfo((file) => ucp.information.ucp_ep_print_info(handle, file));
    return [
      ...new Set(Array.from(text.matchAll(/lane\[\d+\]:\s*\d+:([\w/.-]+?)(?:\.\d+)?\s/g), ([, name]) => name ?? "")),
    ];
  }

  /**
   * Explains how {@linkcode send} would send memory: whether it is copied first, what it waits for, which transports it
   * uses, and what keeps it from going faster.
   *
   * @throws {TypeError} as {@linkcode send}
   */
  explain(what: Sendable): string {
    const { cuda, handlesErrors } = this.#context;
    return explain(what, { transports: this.transports(), cuda, handlesErrors });
  }

  /**
   * Fails the endpoint, because its connection has failed. Called by the worker.
   *
   * @internal
   */
  fail(error: UcxError): void {
    this.#lifecycle.fail(error);
  }

  /**
   * Fails operations that UCX would leave pending: the other process has ended, or UCX has reported so. Called by the
   * worker.
   *
   * @internal
   */
  lose(): Promise<void> {
    return this.#lifecycle.lose();
  }

  /**
   * Closes the endpoint once everything sent has arrived; with `force`, or if the other side is gone, at once: sends in
   * flight are then rejected.
   *
   * Closing twice is harmless, and `force` also ends a close that is still waiting.
   *
   * @throws {RangeError} if the timeout is not a number of at least 0
   */
  close(options: CloseOptions = none): Promise<void> {
    return this.#lifecycle.close(options);
  }

  /**
   * Closes the endpoint once everything sent has arrived. After 5 seconds it is closed by force, so that a block that
   * has thrown ends: await your sends, or {@linkcode close}, if they may take longer.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close({ timeout: patienceOfDispose });
  }

  /**
   * Closes the endpoint at once, because its worker is closing. Called by the worker.
   *
   * @internal
   */
  abort(): void {
    this.#lifecycle.abort();
  }

  static {
    showAs(UcxEndpoint, describeEndpoint);
  }
}

/** Does not wait: UCX knows its transports once the first message has been sent. */
function describeEndpoint(endpoint: UcxEndpoint): string {
  if (endpoint.isClosed) return "(closed)";
  const transports = endpoint.transports();
  return transports.length === 0 ? "(open)" : `(open, by ${transports.join(", ")})`;
}
