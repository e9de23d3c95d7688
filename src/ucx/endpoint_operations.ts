/**
 * The operations of an endpoint: they begin in turn, and end with the endpoint. What a new kind of request takes is in
 * `mod.ts`.
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
import { CountingOwner, type Operation, type OperationPool, type Owner, UntrackedOwner } from "./operation.ts";
import type { PoolStaging } from "./pool_staging.ts";
import type { Progress } from "./progress.ts";
import type { RemoteKeys } from "./remote_memory.ts";
import type { Protocol } from "./protocol.ts";
import { StartQueue } from "./start_queue.ts";
import type { TagRule } from "./tag.ts";
import { transferred } from "./taken_memory.ts";
import type { WorkerResources } from "./worker_resources.ts";

/** The parts of a worker that operations need. */
export interface WorkerParts {
  readonly resources: WorkerResources;
  readonly ucp: UcpFunctions;
  readonly progress: Progress;
  readonly operations: OperationPool;
  /** Staging for large messages in pool memory; null if this UCX does not support CUDA. */
  readonly cuda: PoolStaging | null;
  /** Remote memory that the worker's endpoints use. */
  readonly keys: RemoteKeys;
  readonly protocol: Protocol;
}

/** The operations of one endpoint: sends, and everything else that ends when the endpoint does. */
export class EndpointOperations {
  readonly worker: WorkerParts;
  // law ucx/EndpointOperations.identity: ucx/remote_memory
  /** Differs from that of any other endpoint; UCX gives later ones the handles of those that are gone. */
  readonly identity: symbol = Symbol("endpoint");
  /** How tags map to the wire; a greeting may change it. */
  tags: TagRule;
  /** Whether active messages have been sent, for which UCX first asks the other side for its endpoint. */
  hasSentMessages = false;
  readonly #over = new AbortController();
  /** The owner of receives: they end with the endpoint, and a close does not wait for them. */
  readonly receives: Owner = new UntrackedOwner(this.#over.signal);
  /** The owner of flushes: they end with the endpoint, and a close does not wait for them. */
  readonly #flushes: Owner = new UntrackedOwner();
  readonly #starts = new StartQueue();
  /** Receives wait for their memory in a separate queue: sends need not wait for what may never come. */
  readonly #receiveStarts = new StartQueue();
  #handle: bigint;
  #failure: UcxError | undefined;
  #isClosing = false;
  /** Operations in flight, or waiting for their memory. */
  readonly #underWay = new CountingOwner();

  constructor(worker: WorkerParts, handle: bigint) {
    this.worker = worker;
    this.tags = worker.protocol.endpointTags;
    this.#handle = handle;
  }

  /** The endpoint's UCX handle; 0n once it is closed. */
  get handle(): bigint {
    return this.#handle;
  }

  /** Why the endpoint is unusable, if UCX has reported a failure. */
  get failure(): UcxError | undefined {
    return this.#failure;
  }

  /** Whether any operation is pending. */
  get isBusy(): boolean {
    return this.#underWay.count > 0;
  }

  /** Whether the endpoint is closing or closed, so that nothing new begins. */
  get isClosing(): boolean {
    return this.#isClosing || this.#handle === 0n;
  }

  /** Whether no operation waits for its memory: the next may begin at once. */
  get isInTurn(): boolean {
    return this.#starts.isEmpty;
  }

  /**
   * The endpoint's handle, for a new operation.
   *
   * @throws {UcxError} if it has failed
   * @throws {TypeError} if it is closed
   */
  openHandle(doing: string): bigint {
    if (this.#failure !== undefined) {
      const { call, status } = this.#failure;
      throw new UcxError(call, status, `Cannot ${doing}: the endpoint has already failed`);
    }
    if (this.isClosing) throw new TypeError(`Cannot ${doing}: the endpoint is closed`);
    return this.#handle;
  }

  // law ucx/EndpointOperations.stillOpen: ucx/closed_inside
  /** For memory that is not JavaScript's own: another library's array is called for it, and may have closed this. */
  #stillOpen(doing: Doing): void {
    this.openHandle(doing === "send" ? "send" : "receive");
  }

  /** Takes an operation for this endpoint, without memory. */
  take(call: string): Operation {
    const operation = this.worker.operations.take();
    operation.call = call;
    operation.owner = this.#underWay;
    this.#underWay.count++;
    return operation;
  }

  // law ucx/EndpointOperations.takeReceive: ucx/raw_stream
  /** Takes a receive operation, without memory. */
  takeReceive(call: string): Operation {
    const operation = this.worker.operations.take();
    operation.call = call;
    operation.owner = this.receives;
    return operation;
  }

  /** Takes the memory of an operation. @returns a promise that settles when it is ready; null if it is */
  takeMemory(operation: Operation, what: Sendable, doing: Doing, options?: TakeOptions): Promise<void> | null {
    try {
      const buffer = takeMemory(operation, what, doing, this.worker.cuda, options);
      if (operation.own === null) this.#stillOpen(doing);
      const { copy } = operation;
      if (copy !== null) return this.worker.progress.copied(copy);
      const ready = buffer === null ? null : hostReady(buffer);
      if (ready === null) operation.pack?.();
      return ready;
    } catch (error) {
      this.putBack(operation);
      throw error;
    }
  }

  /** The same, but blocks until the memory is ready. */
  takeMemorySync(operation: Operation, what: Sendable, doing: Doing, options?: TakeOptions): void {
    try {
      const buffer = takeMemory(operation, what, doing, this.worker.cuda, options);
      if (operation.own === null) this.#stillOpen(doing);
      if (buffer !== null) hostWaits(buffer);
      if (operation.copy !== null) consumerWaitsForEvent(operation.copy.event, null);
      operation.pack?.();
    } catch (error) {
      this.putBack(operation);
      throw error;
    }
  }

  /** Takes several pieces for an operation. @returns a promise that settles when they are ready; null if they are */
  takeList(operation: Operation, what: readonly Sendable[], doing: Doing, options?: TakeOptions): Promise<void> | null {
    try {
      const { ready } = takeList(operation, what, doing, this.worker.cuda, hostReady, options);
      this.#stillOpen(doing);
      return ready;
    } catch (error) {
      this.putBack(operation);
      throw error;
    }
  }

  /** Puts an operation that never began back into the pool. */
  putBack(operation: Operation): void {
    operation.release();
    operation.owner?.ended(operation);
    this.worker.operations.returnToPool(operation);
  }

  /** Begins an operation when its memory is ready and its turn comes, if the limits allow. */
  later<T>(operation: Operation, ready: Promise<void> | null, limits: LimitOptions, begin: () => void): Promise<T> {
    const { progress } = this.worker;
    const { signal, clear } = timeLimit(operation.call, limits);
    const starts = operation.owner === this.receives ? this.#receiveStarts : this.#starts;
    return starts.add({ ready, release: () => this.putBack(operation), signal }, () => {
      try {
        operation.pack?.();
        if (operation.isTransferred) throw transferred();
      } catch (error) {
        this.putBack(operation);
        throw error;
      }
      begin();
      return progress.settled<T>(operation, signal);
    }).finally(clear);
  }

  /** As {@linkcode later}, for several that begin back to back. */
  laterAll(
    operations: readonly Operation[],
    ready: Promise<void> | null,
    limits: LimitOptions,
    begin: (operation: Operation) => void,
  ): Promise<unknown> {
    const { progress } = this.worker;
    const { signal, clear } = timeLimit(operations[0]?.call ?? "", limits);
    const release = () => operations.forEach((operation) => this.putBack(operation));
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

  /** Takes an operation whose request UCX allocates; it is not counted. */
  foreign(call: string, flags: number | null): Operation {
    const operation = this.worker.operations.take();
    operation.call = call;
    operation.prepare("plain", UCS_MEMORY_TYPE.HOST, flags, "ucx");
    return operation;
  }

  // law ucx/EndpointOperations.flush: ucx/limits
  /** Settles when all earlier puts and sends have arrived at the other side. */
  async flush(limits: LimitOptions): Promise<void> {
    const handle = this.openHandle("flush");
    const operation = this.foreign("ucp_ep_flush_nbx", null);
    operation.owner = this.#flushes;
    const { ucp, progress, operations } = this.worker;
    const { signal, clear } = timeLimit(operation.call, limits);
    await this.#starts.add({ ready: null, release: () => operations.returnToPool(operation), signal }, async () => {
      progress.begunForeign(operation, ucp.endpoint.ucp_ep_flush_nbx(handle, operation.parameters));
      await progress.settled(operation, signal);
    }).finally(clear);
  }

  // law ucx/EndpointOperations.fail: ucx/order
  /** Records the endpoint's failure: operations that have not begun never will. */
  fail(error: UcxError): void {
    this.#failure ??= error;
    this.#stop(error);
  }

  /** Ends all operations in flight for their callers. */
  abandon(reason: (operation: Operation) => unknown): void {
    for (const owner of [this.#underWay, this.#flushes]) this.worker.progress.cancelAllOf(owner, reason);
  }

  /** Accepts no new operations. @returns a promise that settles when none is pending; null if none is */
  drain(): Promise<void> | null {
    this.#isClosing = true;
    if (this.#underWay.count === 0) return null;
    return this.worker.progress.waitsFor(this.#underWay.drained());
  }

  // law ucx/EndpointOperations.end: ucx/order
  /** Gives up the endpoint, for UCX to close: operations that have not begun never will. @returns its handle */
  end(reason: unknown): bigint {
    const handle = this.#handle;
    this.#handle = 0n;
    this.#stop(reason);
    this.#underWay.forget(); // a close that waits for sends need not wait any longer
    return handle;
  }

  #stop(reason: unknown): void {
    this.#over.abort(reason);
    this.#starts.stop(reason);
    this.#receiveStarts.stop(reason);
  }
}
