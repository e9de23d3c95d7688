/**
 * Receiving by tag: the messages of a worker, whichever endpoint they come from.
 *
 * @module
 */
import { ucp_tag_recv_info_t, UCS_MEMORY_TYPE } from "../../bindings/ucp_types.ts";
import { NativeArena, type StructView } from "../ffi/mod.ts";
import { checkOptions, none, type OptionNames } from "../layout/mod.ts";
import type { MemoryBuffer } from "../memory/mod.ts";
import { hostReady, hostWaits } from "../order/mod.ts";
import type { UcpFunctions } from "./library.ts";
import { checkTimeout, limitOptionNames, type LimitOptions, timeLimit } from "./limit.ts";
import { type Receivable, takeMemory } from "./message_memory.ts";
import type { Operation, Operations, Owner } from "./operation.ts";
import type { Progress } from "./progress.ts";
import { StartQueue } from "./start_queue.ts";
import { checkMatch, everyBit } from "./tag.ts";

/** What has been received. */
export interface Received {
  /** Bytes that arrived, at most as many as there was room for. */
  readonly length: number;
  /** The sender's tag. */
  readonly tag: bigint;
}

/** Options of {@linkcode UcxWorker.recv}. */
export interface ReceiveOptions {
  /** The tag to match. Default 0. */
  readonly tag?: bigint;
  /** The bits of the tag that count. Default all. */
  readonly mask?: bigint;
  /** Cancels the receive; the promise is then rejected with the signal's reason. */
  readonly signal?: AbortSignal;
  /** The same after so many milliseconds, with UCS_ERR_TIMED_OUT. */
  readonly timeout?: number;
}

const receiveOptionNames: OptionNames<ReceiveOptions> = { tag: true, mask: true, signal: true, timeout: true };

/** Options of {@linkcode UcxWorker.recvSync}. */
export interface ReceiveSyncOptions {
  /** The tag to match. Default 0. */
  readonly tag?: bigint;
  /** The bits of the tag that count. Default all. */
  readonly mask?: bigint;
  /** Cancels the receive after so many milliseconds, with UCS_ERR_TIMED_OUT. */
  readonly timeout?: number;
}

const receiveSyncOptionNames: OptionNames<ReceiveSyncOptions> = { tag: true, mask: true, timeout: true };

/** What a message is received by: its tag, or that it was taken before. */
type Match = { readonly tag: bigint; readonly mask: bigint } | { readonly message: bigint };

/** What receiving needs of a worker. */
interface ReceiverContext {
  readonly ucp: UcpFunctions;
  readonly hasCuda: boolean;
}

/** Receives the messages of a worker. */
export class Receiver {
  readonly #context: ReceiverContext;
  readonly #worker: bigint;
  readonly #operations: Operations;
  readonly #progress: Progress;
  readonly #starts = new StartQueue();
  readonly #arena = new NativeArena();
  readonly #info: StructView<typeof ucp_tag_recv_info_t>;
  /** Messages that were taken and not received. */
  readonly #taken = new Set<UcxMessage>();
  #isClosed = false;

  constructor(context: ReceiverContext, worker: bigint, operations: Operations, progress: Progress) {
    this.#context = context;
    this.#worker = worker;
    this.#operations = operations;
    this.#progress = progress;
    this.#info = this.#arena.struct(ucp_tag_recv_info_t);
  }

  /** @param owner whose end ends the receive, too */
  recv(into: Receivable, options: ReceiveOptions, owner: Owner | null): Promise<Received> {
    try {
      if (options !== none) checkOptions(options, receiveOptionNames);
      const { tag = 0n, mask = everyBit } = options;
      checkMatch(tag, mask);
      return this.#receive(into, { tag, mask }, options, owner);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Receives a message that was taken. */
  recvTaken(message: bigint, into: Receivable, limits: LimitOptions): Promise<Received> {
    return this.#receive(into, { message }, limits, null);
  }

  recvSync(into: Receivable, options: ReceiveSyncOptions, owner: Owner | null): Received {
    if (options !== none) checkOptions(options, receiveSyncOptionNames);
    this.#open("receive");
    const { tag = 0n, mask = everyBit, timeout } = options;
    checkMatch(tag, mask);
    if (timeout !== undefined) checkTimeout(timeout);
    if (!this.#starts.isEmpty) {
      throw new TypeError("Cannot receive: earlier receives wait for a stream. Await them first.");
    }
    const operation = this.#operations.take();
    this.#take(operation, into, hostWaits);
    operation.owner = owner;
    this.#begin(operation, { tag, mask });
    this.#progress.wait(operation, timeout);
    return this.#progress.taken(operation, timeout) as Received; // of a tagged operation
  }

  probe(tag: bigint, mask: bigint): Received | null {
    return this.#probe(tag, mask, 0) === 0n ? null : this.#found();
  }

  take(tag: bigint, mask: bigint): UcxMessage | null {
    const handle = this.#probe(tag, mask, 1);
    if (handle === 0n) return null;
    const message: UcxMessage = new UcxMessage(this, this.#found(), handle, () => this.#taken.delete(message));
    this.#taken.add(message);
    return message;
  }

  /** Ends what has not begun, and receives into nothing what was taken: UCX waits for that. */
  close(reason: unknown): void {
    this.#starts.stop(reason);
    for (const message of this.#taken) message.recv(new Uint8Array(0)).catch(() => {}); // truncated
    this.#isClosed = true;
    this.#arena.close();
  }

  // law ucx/Receiver.probe: ucx/probe
  #probe(tag: bigint, mask: bigint, remove: 0 | 1): bigint {
    this.#open("probe");
    checkMatch(tag, mask);
    this.#progress.poll();
    return this.#context.ucp.tag.ucp_tag_probe_nb(this.#worker, tag, mask, remove, this.#info.$address);
  }

  #found(): Received {
    return { length: this.#info.length, tag: this.#info.sender_tag };
  }

  #receive(into: Receivable, match: Match, options: ReceiveOptions, owner: Owner | null): Promise<Received> {
    this.#open("receive");
    const { signal, timeout } = options;
    signal?.throwIfAborted();
    if (timeout !== undefined) checkTimeout(timeout);
    const operation = this.#operations.take();
    const ready = this.#take(operation, into, hostReady) ?? null;
    operation.owner = owner;
    if (ready === null && this.#starts.isEmpty && timeout === undefined) {
      this.#begin(operation, match);
      return this.#progress.settled(operation, signal);
    }
    return this.#receiveLater(operation, match, ready, options);
  }

  /** Has an operation take the memory to receive into. @returns what `order` answers for a buffer */
  #take<T>(operation: Operation, into: Receivable, order: (buffer: MemoryBuffer) => T): T | undefined {
    try {
      const buffer = takeMemory(operation, into, "receive into", this.#context.hasCuda);
      operation.call = "ucp_tag_recv_nbx";
      return buffer === null ? undefined : order(buffer);
    } catch (error) {
      operation.release();
      this.#operations.give(operation);
      throw error;
    }
  }

  #begin(operation: Operation, match: Match): void {
    operation.prepare("tagged", operation.isCuda ? UCS_MEMORY_TYPE.CUDA : UCS_MEMORY_TYPE.HOST);
    const { address, count, parameters } = operation;
    const { ucp_tag_recv_nbx, ucp_tag_msg_recv_nbx } = this.#context.ucp.tag;
    const begun = "message" in match
      ? ucp_tag_msg_recv_nbx(this.#worker, address, count, match.message, parameters)
      : ucp_tag_recv_nbx(this.#worker, address, count, match.tag, match.mask, parameters);
    this.#progress.begun(operation, begun);
  }

  /** Receives when the memory is there and it is its turn, if the limits allow. */
  #receiveLater(
    operation: Operation,
    match: Match,
    ready: Promise<void> | null,
    limits: LimitOptions,
  ): Promise<Received> {
    const { signal, clear } = timeLimit(operation.call, limits);
    const release = () => {
      operation.release();
      this.#operations.give(operation);
    };
    return this.#starts.add({ ready, release, signal }, () => {
      this.#begin(operation, match);
      return this.#progress.settled<Received>(operation, signal);
    }).finally(clear);
  }

  #open(doing: string): void {
    if (this.#isClosed) throw new TypeError(`Cannot ${doing}: the worker is closed`);
  }
}

/** A message that has come and was taken, and has yet to be received: by its length, memory can be made for it. */
export class UcxMessage {
  /** Bytes. */
  readonly length: number;
  /** The sender's tag. */
  readonly tag: bigint;
  readonly #receiver: Receiver;
  readonly #forget: () => void;
  #handle: bigint;

  /** Use {@linkcode UcxWorker.take}. */
  constructor(receiver: Receiver, { length, tag }: Received, handle: bigint, forget: () => void) {
    this.#receiver = receiver;
    this.length = length;
    this.tag = tag;
    this.#handle = handle;
    this.#forget = forget;
  }

  /**
   * Receives it, once.
   *
   * @param into contiguous writable memory: a view, a buffer, JavaScript's own, or another library's array
   * @throws {UcxError} UCS_ERR_MESSAGE_TRUNCATED if the message is longer than the memory: it is gone then
   * @throws {TypeError} if it was received before, or the memory is read-only or not contiguous: it can be received
   *   still
   */
  async recv(into: Receivable, options: LimitOptions = none): Promise<Received> {
    checkOptions(options, limitOptionNames);
    if (this.#handle === 0n) throw new TypeError("Cannot receive a message twice");
    const received = this.#receiver.recvTaken(this.#handle, into, options);
    this.#handle = 0n; // it is UCX's from here on; what was refused has thrown
    this.#forget();
    return await received;
  }
}
