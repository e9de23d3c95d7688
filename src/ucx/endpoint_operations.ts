/**
 * What an endpoint has UCX do: operations that begin in their turn, and end with the endpoint.
 *
 * @module
 */
import { UCS_MEMORY_TYPE } from "../../bindings/ucp_types.ts";
import { consumerWaitsForEvent, hostReady, hostWaits } from "../order/mod.ts";
import { UcxError } from "./error.ts";
import type { UcpFunctions } from "./library.ts";
import { type LimitOptions, timeLimit } from "./limit.ts";
import { takeList } from "./message_list.ts";
import { type Doing, type Sendable, takeMemory, type TakeOptions } from "./message_memory.ts";
import { Counted, type Operation, type OperationPool, Owned, type Owner } from "./operation.ts";
import type { PoolStaging } from "./pool_staging.ts";
import type { Progress } from "./progress.ts";
import type { RemoteKeys } from "./remote_memory.ts";
import type { Protocol } from "./protocol.ts";
import { StartQueue } from "./start_queue.ts";
import type { TagRule } from "./tag.ts";
import { transferred } from "./taken_memory.ts";
import type { WorkerResources } from "./worker_resources.ts";

/** Where operations take place: a worker's. */
export interface WorkerParts {
  readonly resources: WorkerResources;
  readonly ucp: UcpFunctions;
  readonly progress: Progress;
  readonly operations: OperationPool;
  /** What large messages of pools' memory go through; null if this UCX knows no CUDA. */
  readonly cuda: PoolStaging | null;
  /** Remote memory that the worker's endpoints use. */
  readonly keys: RemoteKeys;
  readonly protocol: Protocol;
}

/** The operations of one endpoint: sends, and everything else that ends when the endpoint does. */
export class EndpointOperations {
  readonly context: WorkerParts;
  /** What becomes of tags; a greeting may change it. */
  tags: TagRule;
  /** Whether active messages have been sent, for which UCX asks the other side for its endpoint first. */
  hasSentMessages = false;
  readonly #over = new AbortController();
  /** What receives belong to: they end with the endpoint, and a close does not wait for them. */
  readonly receives: Owner = new Owned(this.#over.signal);
  /** What flushes belong to: they end with the endpoint, and a close does not wait for them. */
  readonly #flushes: Owner = new Owned();
  readonly #starts = new StartQueue();
  /** Receives wait for their memory by themselves: what is sent need not wait for what may never come. */
  readonly #receiveStarts = new StartQueue();
  #handle: bigint;
  #failure: UcxError | undefined;
  #isClosing = false;
  /** Operations that UCX is not done with, or that wait for their memory. */
  readonly #underWay = new Counted();

  constructor(context: WorkerParts, handle: bigint) {
    this.context = context;
    this.tags = context.protocol.endpointTags;
    this.#handle = handle;
  }

  /** The endpoint, as UCX knows it; 0n when it is closed. */
  get handle(): bigint {
    return this.#handle;
  }

  /** Why the endpoint can do no more, if UCX has said so. */
  get failure(): UcxError | undefined {
    return this.#failure;
  }

  /** Whether anything is under way. */
  get isBusy(): boolean {
    return this.#underWay.count > 0;
  }

  /** Whether nothing new begins, because the endpoint closes or is closed. */
  get isClosing(): boolean {
    return this.#isClosing || this.#handle === 0n;
  }

  /** Whether nothing waits for its memory: what comes next may begin at once. */
  get isInTurn(): boolean {
    return this.#starts.isEmpty;
  }

  /**
   * The endpoint's handle, for something new.
   *
   * @throws {UcxError} if it has failed
   * @throws {TypeError} if it is closed
   */
  open(doing: string): bigint {
    if (this.#failure !== undefined) {
      const { call, status } = this.#failure;
      throw new UcxError(call, status, `Cannot ${doing}: the endpoint has failed before`);
    }
    if (this.#isClosing || this.#handle === 0n) throw new TypeError(`Cannot ${doing}: the endpoint is closed`);
    return this.#handle;
  }

  /** An operation of this endpoint, without memory. */
  take(call: string): Operation {
    const operation = this.context.operations.take();
    operation.call = call;
    operation.owner = this.#underWay;
    this.#underWay.count++;
    return operation;
  }

  // law ucx/EndpointOperations.takeReceive: ucx/raw_stream
  /** An operation that receives, without memory. */
  takeReceive(call: string): Operation {
    const operation = this.context.operations.take();
    operation.call = call;
    operation.owner = this.receives;
    return operation;
  }

  /** Has an operation of this endpoint take its memory. @returns when it is there; null if it is */
  takeMemory(operation: Operation, what: Sendable, doing: Doing, options?: TakeOptions): Promise<void> | null {
    try {
      const buffer = takeMemory(operation, what, doing, this.context.cuda, options);
      const { copy } = operation;
      if (copy !== null) return this.context.progress.copied(copy);
      const ready = buffer === null ? null : hostReady(buffer);
      if (ready === null) operation.pack?.();
      return ready;
    } catch (error) {
      this.refuse(operation);
      throw error;
    }
  }

  /** The same, and waits until it is there. */
  takeMemorySync(operation: Operation, what: Sendable, doing: Doing, options?: TakeOptions): void {
    try {
      const buffer = takeMemory(operation, what, doing, this.context.cuda, options);
      if (buffer !== null) hostWaits(buffer);
      if (operation.copy !== null) consumerWaitsForEvent(operation.copy.event, null);
      operation.pack?.();
    } catch (error) {
      this.refuse(operation);
      throw error;
    }
  }

  /** Has an operation of this endpoint take several pieces. @returns when they are there; null if they are */
  takeList(operation: Operation, what: readonly Sendable[], doing: Doing, options?: TakeOptions): Promise<void> | null {
    try {
      return takeList(operation, what, doing, this.context.cuda, hostReady, options).ready;
    } catch (error) {
      this.refuse(operation);
      throw error;
    }
  }

  /** Gives back an operation that has not begun. */
  refuse(operation: Operation): void {
    operation.release();
    operation.owner?.ended(operation);
    this.context.operations.give(operation);
  }

  /** Begins an operation when its memory is there and it is its turn, if the limits allow. */
  later<T>(operation: Operation, ready: Promise<void> | null, limits: LimitOptions, begin: () => void): Promise<T> {
    const { progress } = this.context;
    const { signal, clear } = timeLimit(operation.call, limits);
    const starts = operation.owner === this.receives ? this.#receiveStarts : this.#starts;
    return starts.add({ ready, release: () => this.refuse(operation), signal }, () => {
      try {
        operation.pack?.();
        if (operation.isTransferred) throw transferred();
      } catch (error) {
        this.refuse(operation);
        throw error;
      }
      begin();
      return progress.settled<T>(operation, signal);
    }).finally(clear);
  }

  /** As {@linkcode later}, for several that begin one after the other, with nothing between them. */
  laterAll(
    operations: readonly Operation[],
    ready: Promise<void> | null,
    limits: LimitOptions,
    begin: (operation: Operation) => void,
  ): Promise<unknown> {
    const { progress } = this.context;
    const { signal, clear } = timeLimit(operations[0]?.call ?? "", limits);
    const release = () => operations.forEach((operation) => this.refuse(operation));
    return this.#starts.add({ ready, release, signal }, () => {
      try {
        for (const operation of operations) operation.pack?.();
        if (operations.some((operation) => operation.isTransferred)) throw transferred();
      } catch (error) {
        release(); // none of them has begun
        throw error;
      }
      for (const operation of operations) begin(operation);
      return Promise.all(operations.map((operation) => progress.settled(operation, signal)));
    }).finally(clear);
  }

  /** An operation with a request of UCX's own, which nothing counts. */
  foreign(call: string, flags: number | null): Operation {
    const operation = this.context.operations.take();
    operation.call = call;
    operation.prepare("plain", UCS_MEMORY_TYPE.HOST, flags, "its own");
    return operation;
  }

  // law ucx/EndpointOperations.flush: ucx/limits
  /** Settles when everything that was put and sent before is at the other side. */
  async flush(limits: LimitOptions): Promise<void> {
    const handle = this.open("flush");
    const operation = this.foreign("ucp_ep_flush_nbx", null);
    operation.owner = this.#flushes;
    const { ucp, progress, operations } = this.context;
    const { signal, clear } = timeLimit(operation.call, limits);
    await this.#starts.add({ ready: null, release: () => operations.give(operation), signal }, async () => {
      progress.begunForeign(operation, ucp.endpoint.ucp_ep_flush_nbx(handle, operation.parameters));
      await progress.settled(operation, signal);
    }).finally(clear);
  }

  // law ucx/EndpointOperations.fail: ucx/order
  /** The endpoint has failed: what has not begun never will. */
  fail(error: UcxError): void {
    this.#failure ??= error;
    this.#over.abort(error);
    this.#starts.stop(error);
    this.#receiveStarts.stop(error);
  }

  /** Ends for their callers all that UCX is at. */
  abandon(reason: (operation: Operation) => unknown): void {
    for (const owner of [this.#underWay, this.#flushes]) this.context.progress.abandonAll(owner, reason);
  }

  /** Takes on nothing new. @returns what settles when nothing is under way; null if nothing is */
  drain(): Promise<void> | null {
    this.#isClosing = true;
    if (this.#underWay.count === 0) return null;
    return this.context.progress.waitsFor(this.#underWay.drained());
  }

  // law ucx/EndpointOperations.end: ucx/order
  /** The endpoint is given back to UCX: what has not begun never will. @returns its handle */
  end(reason: unknown): bigint {
    const handle = this.#handle;
    this.#handle = 0n;
    this.#over.abort(reason);
    this.#starts.stop(reason);
    this.#receiveStarts.stop(reason);
    this.#underWay.forget(); // a close that waits for sends need not wait any longer
    return handle;
  }
}
