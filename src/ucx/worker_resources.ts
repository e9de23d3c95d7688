/**
 * What a worker has of UCX and of the system. It outlives the worker, which may be dropped without having been closed:
 * nothing here leads back to it. A worker that is closed, at once or in the end, gives it back in the same way.
 *
 * @module
 */
import { UCP_EP_CLOSE_FLAG, UCS_MEMORY_TYPE } from "../../bindings/ucp_types.ts";
import type { ReadableWatch } from "../native/mod.ts";
import type { DroppedState } from "./finalizer.ts";
import type { UcpFunctions } from "./library.ts";
import { type Operation, OperationPool } from "./operation.ts";
import { Progress } from "./progress.ts";
import { type Registration, RemoteKeys } from "./remote_memory.ts";
import { isBefore } from "./version.ts";

/** How long a worker that is closed at once may take to answer those who connect, in milliseconds. */
const answerPatience = 20;

/** What can be closed. */
interface Closable {
  close(): void;
}

/** Who is told that a worker is closed. */
export interface WorkerOwner {
  /** Called once. @param isGone whether it is gone, or has to stay as long as the process */
  forget(resources: WorkerResources, isGone: boolean): void;
}

/** What is given back is that of one worker. */
export interface WorkerDescription {
  readonly ucp: UcpFunctions;
  /** Of UCX. */
  readonly version: string;
  /** Bytes of a request of UCX's. */
  readonly requestBytes: number;
  /** Where the program has made it, for the report of what was dropped. */
  readonly madeAt: string;
  readonly owner: WorkerOwner;
}

/** What UCX cannot give back: it may write to their memory as long as the process lives. */
const stuck = new Set<WorkerResources>();

/** What one worker has. */
export class WorkerResources implements DroppedState {
  readonly kind = "UcxWorker";
  readonly madeAt: string;
  readonly ucp: UcpFunctions;
  /** The worker, as UCX knows it. */
  readonly handle: bigint;
  readonly operations: OperationPool;
  /** Remote memory that endpoints use. */
  readonly keys: RemoteKeys;
  /** Memory that others use. */
  readonly regions: Set<Registration> = new Set();
  /** Endpoints that UCX was not asked to close. */
  readonly endpoints: Set<bigint> = new Set();
  /** Messages by tag that were taken and not received. */
  readonly taken: Set<bigint> = new Set();
  /** Data of active messages that UCX has lent. */
  readonly lent: Set<bigint> = new Set();
  /** What wakes the worker up, once it has slept. */
  watch: ReadableWatch | undefined;
  /** What it wakes up for, too: closed when it sleeps no more. */
  readonly watched: Closable[] = [];
  readonly #version: string;
  readonly #owner: WorkerOwner;
  /** What UCX calls, and where it writes to. */
  readonly #kept: Closable[] = [];
  #isClosed = false;

  constructor({ ucp, version, requestBytes, madeAt, owner }: WorkerDescription, handle: bigint) {
    this.ucp = ucp;
    this.handle = handle;
    this.madeAt = madeAt;
    this.operations = new OperationPool(requestBytes);
    this.keys = new RemoteKeys(ucp);
    this.#version = version;
    this.#owner = owner;
  }

  /** Whether the worker is closed. */
  get closed(): boolean {
    return this.#isClosed;
  }

  /** Closes something when UCX calls no more. */
  keep<T extends Closable>(one: T): T {
    this.#kept.push(one);
    return one;
  }

  // law ucx/WorkerResources.closeEndpoint: ucx/endpoint
  /** Has UCX close an endpoint, whose handle may be another's from now on. @returns what UCX answers */
  closeEndpoint(handle: bigint, parameters: bigint): bigint {
    this.endpoints.delete(handle);
    return this.ucp.endpoint.ucp_ep_close_nbx(handle, parameters);
  }

  /** Closes a worker that was dropped. */
  close(): void {
    if (!this.#isClosed) this.giveBack(new Progress(this, "event", null), new TypeError("The worker was dropped"));
  }

  // law ucx/WorkerResources.giveBack: ucx/dropped, ucx/lifecycle, ucx/probe
  /**
   * Gives everything back at once: what is under way is cancelled, what was sent may not arrive. Each in its turn: UCX
   * ends the process over an endpoint, a message or a key that is given back after its worker.
   *
   * @param progress the worker's own, or one in its place if it is gone
   */
  giveBack(progress: Progress, reason: unknown): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const endpoint of this.endpoints) this.#abortEndpoint(progress, endpoint);
    for (const message of this.taken) this.#discard(progress, message);
    for (const data of this.lent) this.ucp.activeMessage.ucp_am_data_release(this.handle, data);
    const isAnswering = isBefore(this.#version, 14) && this.#isAnswering(progress);
    progress.stop(reason);
    for (const one of this.watched) one.close();
    this.keys.close();
    // A message that is still arriving cannot be taken from UCX 1.13, which would end the process with a failed
    // assertion.
    const isArriving = this.operations.pending().some(({ call }) => call.includes("recv"));
    const isStuck = isArriving || isAnswering;
    if (isStuck) stuck.add(this);
    else this.#destroy();
    this.#owner.forget(this, !isStuck);
  }

  #abortEndpoint(progress: Progress, handle: bigint): void {
    const close = this.#operation("ucp_ep_close_nbx");
    close.prepare("plain", UCS_MEMORY_TYPE.HOST, UCP_EP_CLOSE_FLAG.FORCE, "its own");
    progress.begunForeign(close, this.closeEndpoint(handle, close.parameters));
    progress.abandon(close);
  }

  /** Receives a message that was taken into nothing: UCX cannot forget it, and waits for that. */
  #discard(progress: Progress, message: bigint): void {
    const receive = this.#operation("ucp_tag_msg_recv_nbx");
    receive.address = 0n;
    receive.bytes = 0;
    receive.prepare("tagged", UCS_MEMORY_TYPE.HOST);
    const { ucp_tag_msg_recv_nbx } = this.ucp.tag;
    const { address, count, parameters } = receive;
    progress.begunOwn(receive, ucp_tag_msg_recv_nbx(this.handle, address, count, message, parameters));
    progress.abandon(receive);
  }

  // law ucx/WorkerResources.isAnswering: ucx/lifecycle
  /**
   * Whether UCX is answering somebody who connects, and does not get rid of the answer soon: to destroy the worker then
   * would end the process with a failed assertion.
   */
  #isAnswering(progress: Progress): boolean {
    const flush = this.beginFlush(progress);
    progress.abandon(flush);
    const end = performance.now() + answerPatience;
    while (!flush.isDone && performance.now() < end) progress.poll(Infinity);
    return !flush.isDone;
  }

  /** Has UCX send what it has yet to send, its part of making connections included. */
  beginFlush(progress: Progress): Operation {
    const flush = this.#operation("ucp_worker_flush_nbx");
    flush.prepare("plain", UCS_MEMORY_TYPE.HOST, null, "its own");
    progress.begunForeign(flush, this.ucp.endpoint.ucp_worker_flush_nbx(this.handle, flush.parameters));
    return flush;
  }

  #operation(call: string): Operation {
    const operation = this.operations.take();
    operation.call = call;
    return operation;
  }

  // law ucx/WorkerResources.destroy: ucx/endpoint
  #destroy(): void {
    this.ucp.worker.ucp_worker_destroy(this.handle);
    for (const operation of this.operations.pending()) operation.release(); // UCX has forgotten them
    this.operations.close();
    for (const region of this.regions) region.close();
    for (const one of this.#kept) one.close();
  }
}
