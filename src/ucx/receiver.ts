/**
 * Receiving by tag: the messages of a worker, whichever endpoint they come from.
 *
 * @module
 */
import { ucp_tag_recv_info_t } from "../../bindings/ucp_types.ts";
import { NativeArena, type StructView } from "../ffi/mod.ts";
import { checkMade, checkOptions, none, type OptionNames, showAs, showBytes } from "../layout/mod.ts";
import type { MemoryBuffer } from "../memory/mod.ts";
import { hostReady, hostWaits } from "../order/mod.ts";
import { checkLimits, checkTimeout, limitOptionNames, type LimitOptions, timeLimit } from "./limit.ts";
import { type Receivable, takeMemory } from "./message_memory.ts";
import type { Operation, OperationPool, Owner } from "./operation.ts";
import {
  PartsReceiver,
  type ReceivedParts,
  receiveManyOptionNames,
  type ReceiveManyOptions,
} from "./parts_receiver.ts";
import type { PoolStaging } from "./pool_staging.ts";
import type { Progress } from "./progress.ts";
import { StartQueue } from "./start_queue.ts";
import { checkMatch, everyBit, type TagRule } from "./tag.ts";
import { transferred } from "./taken_memory.ts";
import { type Arrived, UnexpectedMessages } from "./unexpected_messages.ts";
import type { WorkerResources } from "./worker_resources.ts";

/** A received message. */
export interface Received {
  /** Bytes that arrived, at most as many as there was room for. */
  readonly length: number;
  /** The sender's tag. */
  readonly tag: bigint;
}

/** Options of {@linkcode UcxWorker.recv}. */
export interface ReceiveOptions {
  /** The tag to match. Default 0; for an endpoint with the protocol `ucxx`, that of messages without a tag. */
  readonly tag?: bigint;
  /** The bits of the tag that count. Default all. */
  readonly mask?: bigint;
  /**
   * Only with the protocol `ucxx`: true uses the tag as it is, like UCXX's `force_tag`. Default false for an endpoint,
   * whose tags are hashed with the number of the connection; a worker always uses tags as they are.
   */
  readonly exact?: boolean;
  /** Cancels the receive; the promise is then rejected with the signal's reason. A message just arriving is lost. */
  readonly signal?: AbortSignal | undefined;
  /** The same after this many milliseconds, with UCS_ERR_TIMED_OUT. */
  readonly timeout?: number;
}

const receiveOptionNames: OptionNames<ReceiveOptions> = {
  tag: true,
  mask: true,
  exact: true,
  signal: true,
  timeout: true,
};

/** Options of {@linkcode UcxWorker.recvSync}. */
export interface ReceiveSyncOptions {
  /** As {@linkcode ReceiveOptions.tag}. */
  readonly tag?: bigint;
  /** As {@linkcode ReceiveOptions.mask}. */
  readonly mask?: bigint;
  /** As {@linkcode ReceiveOptions.exact}. */
  readonly exact?: boolean;
  /** Cancels the receive after this many milliseconds, with UCS_ERR_TIMED_OUT. */
  readonly timeout?: number;
}

const receiveSyncOptionNames: OptionNames<ReceiveSyncOptions> = { tag: true, mask: true, exact: true, timeout: true };

/** A message that was taken before. */
interface Taken {
  readonly message: bigint;
  /** Called when the message has been handed back to UCX. */
  begun(): void;
}

/** Receives the messages of a worker. */
export class Receiver {
  readonly #resources: WorkerResources;
  readonly #cuda: PoolStaging | null;
  readonly #worker: bigint;
  readonly #operations: OperationPool;
  readonly #progress: Progress;
  readonly #starts = new StartQueue();
  readonly #info: StructView<typeof ucp_tag_recv_info_t>;
  readonly #parts: PartsReceiver;
  /** Messages without a receive; null if UCX keeps them all. */
  readonly #unexpected: UnexpectedMessages | null;
  #isClosed = false;

  /** @param maxUnexpected how many messages without a receive are kept */
  constructor(resources: WorkerResources, progress: Progress, cuda: PoolStaging | null, maxUnexpected = Infinity) {
    this.#resources = resources;
    this.#cuda = cuda;
    this.#worker = resources.handle;
    this.#operations = resources.operations;
    this.#progress = progress;
    this.#info = resources.adopt(new NativeArena()).struct(ucp_tag_recv_info_t);
    this.#parts = new PartsReceiver(this, cuda);
    this.#unexpected = maxUnexpected === Infinity ? null : new UnexpectedMessages(resources, progress, maxUnexpected);
  }

  /** How many messages without a receive were dropped. */
  get dropped(): number {
    return this.#unexpected?.dropped ?? 0;
  }

  /** @param owner whose end ends the receive, too */
  recv(into: Receivable, options: ReceiveOptions, owner: Owner | null, tags: TagRule): Promise<Received> {
    try {
      if (options !== none) checkOptions(options, receiveOptionNames);
      return this.#receive(into, tags.toReceive(options), options.mask ?? everyBit, null, options, owner);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * Receives a message that was taken.
   *
   * @param begun called when it has been handed back to UCX, and can no longer be received
   */
  recvTaken(message: bigint, into: Receivable, limits: LimitOptions, begun: () => void): Promise<Received> {
    return this.#receive(into, 0n, 0n, { message, begun }, limits, null);
  }

  recvSync(into: Receivable, options: ReceiveSyncOptions, owner: Owner | null, tags: TagRule): Received {
    if (options !== none) checkOptions(options, receiveSyncOptionNames);
    this.#open("receive");
    const tag = tags.toReceive(options);
    const { timeout, mask = everyBit } = options;
    if (timeout !== undefined) checkTimeout(timeout);
    if (!this.#starts.isEmpty) {
      throw new TypeError("Cannot receive: earlier receives wait for a stream. Await them first.");
    }
    const operation = this.#operations.take();
    this.#take(operation, into, owner, hostWaits);
    this.#begin(operation, tag, mask, null);
    this.#progress.runUntilDone(operation, timeout);
    return this.#progress.taken(operation, timeout) as Received; // of a tagged operation
  }

  /** As {@linkcode PartsReceiver.recv}. */
  async recvMany(
    options: ReceiveManyOptions,
    ownerOf: () => Owner | null,
    tags: TagRule,
    maxBytes: number,
  ): Promise<ReceivedParts> {
    checkOptions(options, receiveManyOptionNames);
    this.#open("receive");
    return await this.#parts.recv(options, ownerOf, tags, maxBytes);
  }

  probe(tag: bigint, mask: bigint): Received | null {
    const found = this.#find(tag, mask, false);
    return found === null ? null : { length: found.length, tag: found.tag };
  }

  take(tag: bigint, mask: bigint): UcxMessage | null {
    const found = this.#find(tag, mask, true);
    if (found === null) return null;
    const { taken } = this.#resources;
    taken.add(found.handle);
    return new UcxMessage(this, found, () => taken.delete(found.handle));
  }

  // law ucx/Receiver.discardTaken: ucx/probe
  /** Discards a taken message. The end of the worker discards it itself. */
  discardTaken(message: bigint): void {
    if (this.#isClosed) return;
    this.#resources.taken.delete(message);
    this.#resources.discard(this.#progress, message);
  }

  /** Ends receives that have not begun. */
  close(reason: unknown): void {
    this.#starts.stop(reason);
    this.#isClosed = true;
  }

  // law ucx/Receiver.find: ucx/probe
  /** The earliest message that matches. `remove`: takes it away from all receives. */
  #find(tag: bigint, mask: bigint, remove: boolean): Arrived | null {
    this.#open("probe");
    checkMatch(tag, mask);
    this.#progress.poll();
    const kept = this.#unexpected;
    if (kept !== null) return (remove ? kept.take(tag, mask) : kept.find(tag, mask)) ?? null;
    const info = this.#info;
    const { ucp_tag_probe_nb } = this.#resources.ucp.tag;
    const handle = ucp_tag_probe_nb(this.#worker, tag, mask, remove ? 1 : 0, info.$address);
    return handle === 0n ? null : { handle, length: info.length, tag: info.sender_tag };
  }

  #receive(
    into: Receivable,
    tag: bigint,
    mask: bigint,
    taken: Taken | null,
    options: ReceiveOptions,
    owner: Owner | null,
  ): Promise<Received> {
    this.#open("receive");
    const { signal, timeout } = options;
    if (options !== none) checkLimits(options);
    owner?.over?.throwIfAborted();
    const operation = this.#operations.take();
    const ready = this.#take(operation, into, owner, hostReady) ?? null;
    if (ready === null && this.#starts.isEmpty && timeout === undefined) {
      this.#begin(operation, tag, mask, taken);
      return this.#progress.settled(operation, signal);
    }
    return this.#receiveLater(operation, tag, mask, taken, ready, options);
  }

  // law ucx/Receiver.take: ucx/closed_inside
  /** Takes the memory to receive into for an operation. @returns what `order` returns for a buffer */
  #take<T>(
    operation: Operation,
    into: Receivable,
    owner: Owner | null,
    order: (buffer: MemoryBuffer) => T,
  ): T | undefined {
    try {
      const buffer = takeMemory(operation, into, "receive into", this.#cuda);
      if (operation.own === null) { // another library's array is called for its memory, and may have closed this
        this.#open("receive");
        owner?.over?.throwIfAborted();
      }
      operation.call = "ucp_tag_recv_nbx";
      operation.owner = owner;
      return buffer === null ? undefined : order(buffer);
    } catch (error) {
      this.#operations.putBack(operation);
      throw error;
    }
  }

  // law ucx/Receiver.begin: ucx/allocations, ucx/programs, ucx/failing_calls
  #begin(operation: Operation, tag: bigint, mask: bigint, taken: Taken | null): void {
    operation.prepare("tagged", operation.memoryType);
    const { own, count, parameters } = operation;
    const { tag: any, tagOwn } = this.#resources.ucp;
    const message = taken === null ? this.#claim(tag, mask) : taken.message;
    let answer: number;
    if (message !== 0n) {
      const { address } = operation;
      if (taken !== null) {
        taken.begun();
        operation.call = "ucp_tag_msg_recv_nbx"; // of others the program does not know that they had arrived
      }
      answer = any.ucp_tag_msg_recv_nbx(this.#worker, address, count, message, parameters);
    } else {
      if (mask === everyBit) operation.onlyTag = tag;
      answer = own === null
        ? any.ucp_tag_recv_nbx(this.#worker, operation.address, count, tag, mask, parameters)
        : tagOwn.ucp_tag_recv_nbx(this.#worker, own, count, tag, mask, parameters);
    }
    this.#progress.begunOwn(operation, answer);
  }

  // law ucx/Receiver.claim: ucx/programs, ucx/unexpected_messages
  /** The handle of the earliest message that matches, if such messages wait here and not in UCX; 0n if none does. */
  #claim(tag: bigint, mask: bigint): bigint {
    if (this.#unexpected === null) return 0n;
    const found = this.#unexpected.take(tag, mask);
    if (found === undefined) return 0n;
    this.#resources.taken.delete(found.handle); // it is received
    return found.handle;
  }

  /**
   * Receives when the memory is ready and its turn comes, if the limits allow. A separate function: one that creates
   * closures allocates memory for its variables at each call.
   */
  #receiveLater(
    operation: Operation,
    tag: bigint,
    mask: bigint,
    taken: Taken | null,
    ready: Promise<void> | null,
    limits: LimitOptions,
  ): Promise<Received> {
    const { signal, clear } = timeLimit(operation.call, limits, operation.owner?.over);
    const release = () => this.#operations.putBack(operation);
    return this.#starts.add({ ready, release, signal }, () => {
      if (operation.isTransferred) {
        release();
        throw transferred();
      }
      this.#begin(operation, tag, mask, taken);
      return this.#progress.settled<Received>(operation, signal);
    }).finally(clear);
  }

  #open(doing: string): void {
    if (this.#isClosed) throw new TypeError(`Cannot ${doing}: the worker is closed`);
  }
}

// law ucx/UcxMessage: ucx/probe
/**
 * A message that has arrived and was taken, and has yet to be received: its length says how much memory to allocate.
 *
 * UCX keeps what has arrived until the message is received or released, or its worker is closed.
 *
 * @example
 * ```ts ignore
 * using message = worker.take(tag);
 * if (message === null || message.length > most) return; // one that is too long is discarded
 * await message.recv(new Uint8Array(message.length));
 * ```
 */
export class UcxMessage {
  /** Size in bytes. */
  readonly length: number;
  /** The sender's tag. */
  readonly tag: bigint;
  readonly #receiver: Receiver;
  readonly #forget: () => void;
  #handle: bigint;
  /** Whether a receive of it waits for its memory. */
  #isAsked = false;
  #isReleased = false;

  /** Use {@linkcode UcxWorker.take}. */
  constructor(receiver: Receiver, message: Arrived, forget: () => void) {
    checkMade(forget, "UcxMessage", "worker.take()");
    this.#receiver = receiver;
    this.length = message.length;
    this.tag = message.tag;
    this.#handle = message.handle;
    this.#forget = forget;
  }

  /**
   * Receives it, once.
   *
   * @param into contiguous writable memory: a view, a buffer, JavaScript's own, or another library's array
   * @throws {UcxError} UCS_ERR_MESSAGE_TRUNCATED if the message is longer than the memory: it is then lost
   * @throws {TypeError} if it was received or released before, or the memory is read-only or not contiguous: it can
   *   still be received, as after limits have ended the wait for a stream
   */
  async recv(into: Receivable, options: LimitOptions = none): Promise<Received> {
    checkOptions(options, limitOptionNames);
    if (this.#isReleased) throw new TypeError("Cannot receive a message that was released");
    if (this.#handle === 0n || this.#isAsked) throw new TypeError("Cannot receive a message twice");
    this.#isAsked = true;
    try {
      return await this.#receiver.recvTaken(this.#handle, into, options, () => this.#gone());
    } finally {
      this.#isAsked = false;
      if (this.#isReleased) this.#drop();
    }
  }

  /**
   * Makes UCX drop it, unless a receive that was called before receives it: nobody else does, and its send ends as if
   * somebody had. Harmless after a receive, or twice.
   */
  release(): void {
    if (this.#handle === 0n) return;
    this.#isReleased = true;
    if (!this.#isAsked) this.#drop();
  }

  /** Makes UCX drop it, if it was not received. */
  [Symbol.dispose](): void {
    this.release();
  }

  #drop(): void {
    const handle = this.#handle;
    this.#handle = 0n;
    this.#receiver.discardTaken(handle);
  }

  #gone(): void {
    this.#handle = 0n;
    this.#isReleased = false; // it is received after all
    this.#forget();
  }

  static {
    showAs(UcxMessage, (message) => {
      const state = message.#isReleased ? ", released" : message.#handle === 0n ? ", received" : "";
      return `${showBytes(message.length)}, tag ${message.tag}${state}`;
    });
  }
}
