/**
 * The native resources of a worker, of UCX and of the system. They outlive the worker, which may be dropped without
 * being closed: nothing here references it. A worker that is closed, at once or in order, releases them in the same
 * way.
 *
 * @module
 */
import { UCP_EP_CLOSE_FLAG, UCS_MEMORY_TYPE } from "../../bindings/ucp_types.ts";
import { failuresOf, throwFirst } from "../ffi/mod.ts";
import type { ReadableWatch } from "../native/mod.ts";
import type { DroppedState } from "./finalizer.ts";
import type { UcpFunctions } from "./library.ts";
import { type Operation, OperationPool } from "./operation.ts";
import { Progress } from "./progress.ts";
import { type Registration, type Registrations, RemoteKeys } from "./remote_memory.ts";
import { isBefore } from "./version.ts";

/** How long a worker that is closed at once may take to answer connecting peers, in milliseconds. */
const answerPatience = 20;

/** How long UCX's own thread may take to notice that connections have ended, in milliseconds. */
const noticePatience = 500;

/** What can be closed. */
interface Closable {
  close(): void;
}

/** A listener of UCX's. */
export interface NativeListener {
  /** Ends the connections that it has accepted. @returns how many there are */
  endConnections(): number;
  /** Destroys it, with requests that nobody has answered. */
  destroy(): void;
}

/** The owner of a worker, notified when the worker is closed. */
export interface WorkerOwner {
  /** Called once. @param isDone whether UCX is done with all memory of the worker: else its context has to stay */
  forget(resources: WorkerResources, isDone: boolean): void;
}

/** Describes the worker whose resources these are. */
export interface WorkerDescription {
  readonly ucp: UcpFunctions;
  /** Of UCX. */
  readonly version: string;
  /** Bytes of a request of UCX's. */
  readonly requestBytes: number;
  /** Where the program created it, for the report of dropped objects. */
  readonly madeAt: string;
  readonly owner: WorkerOwner;
}

/** Resources that UCX cannot release: it may write to their memory as long as the process lives. */
const stuck = new Set<WorkerResources>();

/** The native resources of one worker. */
export class WorkerResources implements DroppedState, Registrations {
  readonly kind = "UcxWorker";
  readonly madeAt: string;
  readonly ucp: UcpFunctions;
  /** The worker's UCX handle. */
  readonly handle: bigint;
  readonly operations: OperationPool;
  /** Remote memory that endpoints use. */
  readonly keys: RemoteKeys;
  readonly regions: Set<Registration> = new Set();
  readonly refused: Set<Registration> = new Set();
  /**
   * UCX's listeners, also closed ones. UCX destroys them with the worker: of a connection that is being established its
   * own thread uses the listener, at any time and also when that is destroyed, which ended the process.
   */
  readonly listeners: Set<NativeListener> = new Set();
  /** Endpoints that UCX has not been asked to close. */
  readonly endpoints: Set<bigint> = new Set();
  /** Tagged messages that were taken and not received. */
  readonly taken: Set<bigint> = new Set();
  /** Data of active messages, borrowed from UCX. */
  readonly borrowed: Set<bigint> = new Set();
  /** Wakes the worker up, once it has slept. */
  watch: ReadableWatch | undefined;
  /** What else it wakes up for: closed after its last sleep. */
  readonly watched: Closable[] = [];
  readonly #version: string;
  readonly #owner: WorkerOwner;
  /** Callbacks that UCX calls, and memory that it writes to. */
  readonly #adopted: Closable[] = [];
  #isClosed = false;
  /** Whether UCX could not answer connecting peers when it was last waited for; undefined if it never was. */
  #isAnswering: boolean | undefined;
  /** Whether UCX's own thread has yet to notice the end of connections that peers have begun at a listener. */
  #isConnected = false;

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

  /** Closes an object once UCX makes no more calls. */
  adopt<T extends Closable>(one: T): T {
    this.#adopted.push(one);
    return one;
  }

  /** Whether a receive is in flight: one without a message, or one whose data arrive. */
  get #isReceiving(): boolean {
    return this.operations.pending().some(({ call }) => call.includes("recv"));
  }

  // law ucx/WorkerResources.canCloseInOrder: ucx/lifecycle
  /**
   * Whether UCX may close an endpoint in order. 1.13 aborts the process with a failed assertion (ucp_ep.c:437) if the
   * data of a large message arrive through it, for whichever receive: then it is closed by force, all having been sent.
   */
  get canCloseInOrder(): boolean {
    return !isBefore(this.#version, 14) || !this.#isReceiving;
  }

  // law ucx/WorkerResources.closeEndpoint: ucx/endpoint
  /** Makes UCX close an endpoint, whose handle may be reused from now on. @returns what UCX returns */
  closeEndpoint(handle: bigint, parameters: bigint): bigint {
    this.endpoints.delete(handle);
    return this.ucp.endpoint.ucp_ep_close_nbx(handle, parameters);
  }

  /** Closes a worker that was dropped. */
  close(): void {
    if (!this.#isClosed) this.releaseAll(new Progress(this, "event", null), new TypeError("The worker was dropped"));
  }

  // law ucx/WorkerResources.releaseAll: ucx/dropped, ucx/lifecycle, ucx/probe, ucx/failing_calls,
  //   ucx/remote_memory, ucx/listener
  /**
   * Releases everything at once: operations in flight are cancelled, sent messages may not arrive. The order matters:
   * UCX aborts the process over an endpoint, a message or a key that is released after its worker.
   *
   * @param progress the worker's own, or a substitute if the worker is gone
   */
  releaseAll(progress: Progress, reason: unknown): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const failures = failuresOf([
      () => this.answer(progress),
      () => throwFirst(failuresOf(this.endpoints, (endpoint) => this.#abortEndpoint(progress, endpoint))),
      () => throwFirst(failuresOf(this.taken, (message) => this.discard(progress, message))),
      () => this.borrowed.forEach((data) => this.ucp.activeMessage.ucp_am_data_release(this.handle, data)),
      () => this.#endConnections(progress),
      () => {
        if (isBefore(this.#version, 14) && this.#isAnswering !== false) this.#isAnswering = this.#flushesLong(progress);
      },
      () => progress.stop(reason),
      ...this.watched.map((one) => () => one.close()),
      () => this.keys.close(),
    ], (step) => step());
    // A message that is still arriving cannot be taken from UCX 1.13, which would abort the process with a failed
    // assertion.
    const isStuck = this.#isReceiving || this.#isAnswering === true || this.#isConnected;
    if (!isStuck) failures.push(...this.#destroy());
    if (isStuck || this.refused.size > 0) stuck.add(this);
    this.#owner.forget(this, !isStuck && !this.#leavesRegistrations());
    throwFirst(failures);
  }

  // law ucx/WorkerResources.endConnections: ucx/listener
  /**
   * Ends connections that peers have begun at a listener: UCX's own thread would go on with them after the worker has
   * been destroyed, and end the process. It takes a moment to notice, and longer on a busy machine.
   */
  #endConnections(progress: Progress): void {
    const end = performance.now() + noticePatience;
    do {
      let count = 0;
      for (const listener of this.listeners) count += listener.endConnections();
      this.#isConnected = count > 0;
      if (this.#isConnected) progress.poll(Infinity);
    } while (this.#isConnected && performance.now() < end);
  }

  // law ucx/WorkerResources.leavesRegistrations: ucx/endpoint
  /**
   * Whether UCX may have left memory registered: what it refused to unregister, and since 1.14 that of sends which were
   * given up after they had been announced (a rendezvous). Builds with assertions, as Debian and Ubuntu make them,
   * abort the process if the context is then freed (`region->refcount == 0`; seen with 1.16.0 and 1.18.1).
   */
  #leavesRegistrations(): boolean {
    return this.refused.size > 0 || (this.operations.hasGivenUp && !isBefore(this.#version, 14));
  }

  #abortEndpoint(progress: Progress, handle: bigint): void {
    const close = this.#operation("ucp_ep_close_nbx");
    close.prepare("plain", UCS_MEMORY_TYPE.HOST, UCP_EP_CLOSE_FLAG.FORCE, "ucx");
    progress.begunForeign(close, this.closeEndpoint(handle, close.parameters));
    progress.abandon(close);
  }

  // law ucx/WorkerResources.discard: ucx/unexpected_messages
  /** Receives a taken message into empty memory: UCX cannot discard it, and waits for the receive. */
  discard(progress: Progress, message: bigint): void {
    const receive = this.#operation("ucp_tag_msg_recv_nbx");
    receive.address = 0n;
    receive.bytes = 0;
    receive.prepare("tagged", UCS_MEMORY_TYPE.HOST);
    const { ucp_tag_msg_recv_nbx } = this.ucp.tag;
    const { address, count, parameters } = receive;
    progress.begunOwn(receive, ucp_tag_msg_recv_nbx(this.handle, address, count, message, parameters));
    if (receive.isDone) this.operations.returnToPool(receive);
    else progress.abandon(receive);
  }

  // law ucx/WorkerResources.answer: ucx/brief
  /**
   * Lets UCX answer connecting peers while their endpoints are open. It would answer for one that has been closed by
   * making another, and UCX 1.13 of a peer that is thus connected to two ends its process (`remote_ep_id`).
   */
  answer(progress: Progress): void {
    if (this.#isAnswering !== undefined || !isBefore(this.#version, 14)) return;
    const isSending = this.operations.pending().some(({ call }) => !call.includes("recv"));
    if (!isSending) this.#isAnswering = this.#flushesLong(progress); // otherwise it cannot tell the one from the other
  }

  // law ucx/WorkerResources.flushesLong: ucx/endpoint
  /**
   * Whether UCX is answering a connecting peer, and cannot send the answer soon: destroying the worker then would abort
   * the process with a failed assertion.
   */
  #flushesLong(progress: Progress): boolean {
    const flush = this.beginFlush(progress);
    progress.abandon(flush);
    const end = performance.now() + answerPatience;
    while (!flush.isDone && performance.now() < end) progress.poll(Infinity);
    return !flush.isDone;
  }

  /** Makes UCX send everything that it has yet to send, its part of connection setup included. */
  beginFlush(progress: Progress): Operation {
    const flush = this.#operation("ucp_worker_flush_nbx");
    flush.prepare("plain", UCS_MEMORY_TYPE.HOST, null, "ucx");
    progress.begunForeign(flush, this.ucp.endpoint.ucp_worker_flush_nbx(this.handle, flush.parameters));
    return flush;
  }

  #operation(call: string): Operation {
    const operation = this.operations.take();
    operation.call = call;
    return operation;
  }

  // law ucx/WorkerResources.destroy: ucx/endpoint
  /** @returns the errors of memory that UCX refuses to unregister */
  #destroy(): unknown[] {
    for (const listener of this.listeners) listener.destroy();
    this.ucp.worker.ucp_worker_destroy(this.handle);
    for (const operation of this.operations.pending()) operation.release(); // UCX has forgotten them
    this.operations.close();
    const failures = failuresOf(this.regions, (region) => region.close());
    for (const one of this.#adopted) one.close();
    return failures;
  }
}
