/**
 * An endpoint: the connection from one worker to another.
 *
 * @module
 */
import { UCP_EP_CLOSE_FLAG, UCS_MEMORY_TYPE, ucs_status_t } from "../../bindings/ucp_types.ts";
import type { MemoryBuffer } from "../memory/mod.ts";
import { hostReady, hostWaits } from "../order/mod.ts";
import { checkOptions, none, type OptionNames } from "../layout/mod.ts";
import { UcxError } from "./error.ts";
import type { UcpFunctions } from "./library.ts";
import { checkTimeout, timeLimit } from "./limit.ts";
import { type Receivable, type Sendable, takeMemory } from "./message_memory.ts";
import type { Operation, Operations, Owner } from "./operation.ts";
import { printInfo } from "./print_info.ts";
import type { Progress } from "./progress.ts";
import type { Received, ReceiveOptions, Receiver, ReceiveSyncOptions } from "./receiver.ts";
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
  readonly hasCuda: boolean;
  /** Called when sends are cut short by a close by force. */
  cutShort(): void;
  /** Called once, when the endpoint is gone. */
  forget(handle: bigint): void;
}

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
  /** What receives belong to that end with it. */
  readonly #receives: Owner = { ended: () => {}, reason: () => undefined };
  /** What its sends belong to. */
  readonly #owner: Owner = {
    ended: () => {
      if (--this.#underWay === 0) this.#drained?.resolve();
    },
    reason: ({ call }) => this.#isLost ? gone(call) : undefined,
  };
  #failure: UcxError | undefined;
  /** Whether the other process ended without UCX noticing. */
  #isLost = false;
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
   * @param what contiguous memory: a view, a buffer or a Uint8Array
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
      return this.#sendLater(operation, tag, ready, options);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * Sends bytes, and waits in place until they may change again: nothing else happens in this thread meanwhile. For loops
   * that count microseconds.
   *
   * @param what contiguous memory: a view, a buffer or a Uint8Array
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
   * endpoint: it is rejected if the other side ends first, or the endpoint is closed. Messages are matched by their tags
   * alone: programs with several endpoints give each its own.
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

  /** Has an operation take the memory to send, and makes it this endpoint's. @returns what `order` answers for a buffer */
  #take<T>(operation: Operation, what: Sendable, order: (buffer: MemoryBuffer) => T): T | undefined {
    try {
      const buffer = takeMemory(operation, what, "send", this.#context.hasCuda);
      const answer = buffer === null ? undefined : order(buffer);
      operation.call = "ucp_tag_send_nbx";
      operation.owner = this.#owner;
      this.#underWay++;
      return answer;
    } catch (error) {
      operation.release();
      this.#context.operations.give(operation);
      throw error;
    }
  }

  #begin(operation: Operation, tag: bigint): void {
    operation.prepare("plain", operation.isCuda ? UCS_MEMORY_TYPE.CUDA : UCS_MEMORY_TYPE.HOST);
    const { address, count, parameters } = operation;
    const { ucp, progress } = this.#context;
    progress.begun(operation, ucp.tag.ucp_tag_send_nbx(this.#handle, address, count, tag, parameters));
  }

  /** Sends when the memory is there and it is its turn, if the limits allow. */
  #sendLater(operation: Operation, tag: bigint, ready: Promise<void> | null, options: SendOptions): Promise<void> {
    const { operations, progress } = this.#context;
    const { signal, clear } = timeLimit(operation.call, options);
    const release = () => {
      operation.release();
      this.#owner.ended(operation);
      operations.give(operation);
    };
    return this.#starts.add({ ready, release, signal }, () => {
      this.#begin(operation, tag);
      return progress.settled<void>(operation, signal);
    }).finally(clear);
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
    const { call, status } = error;
    this.#context.progress.abandonAll(this.#receives, () => new UcxError(call, status, advice(status)));
    this.#starts.stop(this.#isLost ? gone("ucp_tag_send_nbx") : error);
    this.#settleClosed(error);
  }

  // law ucx/UcxEndpoint.lose: ucx/endpoint, ucx/two_processes
  /** Fails what UCX would leave waiting: the other process has ended. Called by the worker. */
  async lose(): Promise<void> {
    if (this.#failure !== undefined || this.#handle === 0n) return;
    this.#isLost = true;
    this.fail(gone("ucp_worker_progress"));
    const closing = this.#end(UCP_EP_CLOSE_FLAG.FORCE);
    this.#context.progress.abandonAll(this.#owner, ({ call }) => gone(call)); // UCX may never end them
    await closing;
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
