/**
 * How the connection of an endpoint begins and ends. It has two states, which change independently: what has become of
 * the connection, and how far this side has closed it. Neither goes back; both may skip states.
 *
 * The connection, by UCX and the other side:
 *
 * - Connecting: UCX may still be establishing it (`established`), and the two sides greet (`beforeClose`). All is
 *   allowed; but a close by force first lets UCX finish. By a worker's address nothing says when that is over.
 * - Standing: all is allowed.
 * - Peer closed (`peerClosed`): the other side has announced its close, after everything that it sent. All is allowed.
 *   Once the connection stands this side acknowledges, whereupon the other side closes, which UCX reports as a failure;
 *   with a secret it would not, and this side is lost at once.
 * - Failed (`fail`; the operations have the reason): UCX has reported it, a flush has failed, the process of the other
 *   side has ended (`lose`), or the other side has sent too much (`exceed`). `closed` settles. Nothing begins, and
 *   receives are rejected; what has arrived can be taken. UCX ends what is in flight, but forgets some: a second later
 *   the worker calls `lose`, which ends that and leaves.
 *
 * This side, by the program and the worker:
 *
 * - Open: what the connection allows.
 * - Closing (`close`): nothing begins; what is in flight goes on, and messages can be taken. `#finish` waits until
 *   sends are drained, the stream's bytes are delivered, the close that it announces is acknowledged, and all is
 *   flushed; after a failure it skips the last two. Then it leaves.
 * - Leaving (`#leave`): all ends for its callers, and the handle is given up. Messages that were not taken are dropped:
 *   all of them if the program or its worker has closed the endpoint, otherwise those whose data are at the sender.
 *   UCX may first finish connecting; then, or when the worker is closed at once (`abort`), it is asked to close the
 *   handle. A close by force, a limit of a close, `lose`, `exceed` and `abort` come here from open and from closing.
 * - Closed: UCX has closed the handle. What it has forgotten ends, the worker forgets the endpoint, `closed` settles.
 *
 * @module
 */
import { UCP_EP_CLOSE_FLAG, ucs_status_t } from "../../bindings/ucp_types.ts";
import { nodeBuiltin } from "../ffi/mod.ts";
import { checkBoolean, checkOptions, type OptionNames } from "../layout/mod.ts";
import type { UcxActiveMessage } from "./active_messages/active_messages.ts";
import type { MessageQueue } from "./active_messages/message_queue.ts";
import type { EndpointOperations, WorkerParts } from "./endpoint_operations.ts";
import { advice, UcxError } from "./error.ts";
import { checkLimitKinds, closeWithin, farewell, timeLimit } from "./limit.ts";
import type { Operation } from "./operation.ts";
import type { ByteStream } from "./stream/byte_stream.ts";

/** Options of {@linkcode UcxEndpoint.close}. */
export interface CloseOptions {
  /** Whether to close without waiting for everything sent to arrive. Default false, unless the other side is gone. */
  readonly force?: boolean;
  /** How long to wait, in milliseconds, before closing by force. Default: as long as it takes. */
  readonly timeout?: number;
  /** Closes by force once it is aborted, as does {@linkcode timeout}: the promise is not rejected. */
  readonly signal?: AbortSignal | undefined;
}

const closeOptionNames: OptionNames<CloseOptions> = { force: true, timeout: true, signal: true };

/** How long a close waits for the other program's event loop to turn, in milliseconds. */
const acknowledgedWithin = 1000;

/** Why an endpoint is closed: `null` if it was closed here, otherwise what UCX reported. */
export type CloseReason = UcxError | null;

/** What the lifecycle of an endpoint needs from its worker. */
export interface LifecycleContext extends WorkerParts {
  /** Called when a forced close cuts sends short. */
  cutShort(): void;
  /** Whether the connection was made by host and port: the other side then has an endpoint, too. */
  readonly isByHost: boolean;
  /** Whether it was made with a secret, by address: UCX then reports no close to the other side, which has one, too. */
  readonly isPaired: boolean;
  /** Whether this side initiates the connection, which may not be established yet. */
  readonly isConnecting: boolean;
  /** Called once, when the endpoint is gone. */
  forget(handle: bigint): void;
}

/** The parts of an endpoint that end with it. */
interface EndpointParts {
  readonly operations: EndpointOperations;
  readonly byteStream: ByteStream;
  /** Active messages, and those that are arrays, not yet taken. */
  readonly messages: MessageQueue<UcxActiveMessage>;
  readonly arrays: MessageQueue<UcxActiveMessage>;
}

function gone(call: string, status: number = ucs_status_t.UCS_ERR_CONNECTION_RESET): UcxError {
  return new UcxError(call, status, advice(status));
}

// law ucx/once: ucx/endpoint
/** @returns a function that acts when it is first called, and always returns the same promise */
function once(act: () => Promise<void>): () => Promise<void> {
  let over: Promise<void> | undefined;
  return () => over ??= act();
}

/** Establishes, fails and closes the connection of one endpoint. */
export class EndpointLifecycle {
  readonly #context: LifecycleContext;
  readonly #parts: EndpointParts;
  /** Settles once the connection has failed, or is closed. */
  readonly #closed = Promise.withResolvers<CloseReason>();
  /** Lets the worker be collected again after `closed` was read; once that has settled there is nothing to release. */
  #releaseWorker: (() => void) | undefined;
  /** Settles when a listener may give the endpoint's place to another. */
  readonly #vacated = Promise.withResolvers<void>();
  /** Whether UCX may still be establishing the connection, so that a close by force has to wait. */
  #isConnecting: boolean;
  /** Settles when the connection is established, or both sides have greeted, or cannot; null if nobody waits for it. */
  #standing: Promise<void> | null = null;
  /** Whether the other side has announced the close of its endpoint, after everything it sent. */
  #isPeerClosed = false;
  /** Settles when the other side has acknowledged the close of this endpoint, or never will. */
  readonly #acknowledged = Promise.withResolvers<void>();
  /** Whether messages are no longer taken: it was closed here, or the other side has sent too much. */
  #isDismissed = false;
  /** Settles when a close in order is over; set from closing on. */
  #closing: Promise<void> | undefined;
  /** Settles when UCX has closed the endpoint; set from leaving on. */
  #leaving: Promise<void> | undefined;
  /** Has UCX close the handle, once; set when the handle is given up. */
  #closeNow: (() => Promise<void>) | undefined;

  constructor(context: LifecycleContext, parts: EndpointParts) {
    this.#context = context;
    this.#parts = parts;
    this.#isConnecting = context.isConnecting;
  }

  // law ucx/EndpointLifecycle.closed: ucx/dropped
  /** As {@linkcode UcxEndpoint.closed}. */
  get closed(): Promise<CloseReason> {
    // Whether a promise is awaited cannot be observed: any holder may await it.
    this.#releaseWorker ??= this.#context.progress.retainWorker();
    return this.#closed.promise;
  }

  /** Whether what had arrived can still be received after a failure, because the other side had closed in order. */
  get canReceiveArrived(): boolean {
    return this.#isPeerClosed && !this.#isDismissed;
  }

  /** As {@linkcode UcxEndpoint.onVacated}. */
  onVacated(act: () => void): void {
    void this.#vacated.promise.then(act);
  }

  /** As {@linkcode UcxEndpoint.processEnded}. */
  processEnded(): void {
    this.#vacated.resolve();
  }

  /** As {@linkcode UcxEndpoint.established}. */
  async established(signal: AbortSignal | undefined): Promise<void> {
    const own = this.#parts.operations;
    const flush = own.foreign("ucp_ep_create", null);
    const { ucp, progress } = this.#context;
    await this.beforeClose(() => {
      progress.begunForeign(flush, ucp.endpoint.ucp_ep_flush_nbx(own.handle, flush.parameters));
      return progress.settled(flush, signal);
    });
    this.#isConnecting = false;
  }

  // law ucx/EndpointLifecycle.beforeClose: ucx/endpoint, ucx/brief
  /** Does what a connection begins with: the close of the other side is acknowledged only afterwards. */
  async beforeClose<T>(begin: () => Promise<T>): Promise<T> {
    const begun = Promise.withResolvers<void>();
    this.#standing = begun.promise;
    try {
      return await begin();
    } finally {
      this.#standing = null;
      begun.resolve();
    }
  }

  /** The other side has announced its close. Called inside a UCX callback. */
  peerClosed(): void {
    this.#isPeerClosed = true;
    this.#context.progress.afterNews(() => void this.#acknowledgeClose());
  }

  // law ucx/EndpointLifecycle.acknowledgeClose: ucx/endpoint
  /**
   * Lets the other side close its endpoint, which ends this one. A side that sends and closes at once may have done so
   * before this side knows that the connection is established: `connect` would be rejected, or an accepted connection
   * dropped, and what was sent lost.
   */
  async #acknowledgeClose(): Promise<void> {
    if (this.#standing !== null) await this.#standing;
    this.#parts.byteStream.notify("acknowledged");
    if (this.#context.isPaired) void this.lose(); // UCX will not report it
  }

  /** The other side has acknowledged the close of this one. */
  acknowledged(): void {
    this.#acknowledged.resolve();
  }

  /** As {@linkcode UcxEndpoint.fail}. */
  fail(error: UcxError): void {
    const { operations: own, byteStream, messages, arrays } = this.#parts;
    const { protocol, progress } = this.#context;
    const { call, status } = error;
    // UCXX closes by force, so that its orderly end looks like any other that the system detects.
    const isInOrder = this.#isPeerClosed ||
      (protocol.greet !== null && status === ucs_status_t.UCS_ERR_CONNECTION_RESET);
    messages.end(isInOrder ? null : error);
    arrays.end();
    progress.cancelAllOf(own.receives, () => gone(call, status));
    own.fail(error);
    this.#acknowledged.resolve();
    byteStream.end(error);
    this.#settleClosed(error);
  }

  // law ucx/EndpointLifecycle.lose: ucx/endpoint, ucx/two_processes
  /** As {@linkcode UcxEndpoint.lose}. */
  async lose(): Promise<void> {
    const own = this.#parts.operations;
    if (own.handle === 0n) return;
    if (own.failure === undefined) {
      this.#context.progress.poll(); // handles what the peer sent before
      this.fail(gone("ucp_worker_progress"));
    }
    own.abandon(({ call }) => gone(call)); // UCX may never complete them
    await this.#leave(UCP_EP_CLOSE_FLAG.FORCE);
  }

  // law ucx/EndpointLifecycle.exceed: ucx/listener, ucx/secret
  /** Fails and closes the endpoint, because the other side has sent more than the limits allow. */
  exceed(error: UcxError): void {
    const { operations: own, byteStream } = this.#parts;
    if (own.failure !== undefined || own.handle === 0n) return;
    if (this.#context.isPaired) byteStream.notify("closed"); // which a failed endpoint cannot any more
    this.fail(error);
    this.#dismiss();
    void this.#leave(UCP_EP_CLOSE_FLAG.FORCE);
  }

  // law ucx/EndpointLifecycle.close: ucx/endpoint
  /** As {@linkcode UcxEndpoint.close}. */
  async close(options: CloseOptions): Promise<void> {
    checkOptions(options, closeOptionNames);
    checkBoolean("force", options.force);
    const { force = this.#parts.operations.failure !== undefined, ...limits } = options;
    checkLimitKinds(limits);
    if (this.#leaving !== undefined) {
      this.#dismiss();
      return await this.#leaving; // nothing is drained any more
    }
    this.#isDismissed = true;
    if (force) return await this.#leave(UCP_EP_CLOSE_FLAG.FORCE);
    this.#closing ??= this.#finish();
    await closeWithin(this.#closing, limits, () => void this.#leave(UCP_EP_CLOSE_FLAG.FORCE));
  }

  // law ucx/EndpointLifecycle.finish: ucx/byte_stream
  /**
   * Waits until everything sent has arrived, or cannot arrive any more. UCX's own close would not wait: it drops sends
   * that wait for their receiver, and once begun it cannot be forced.
   */
  async #finish(): Promise<void> {
    const { operations: own, byteStream } = this.#parts;
    const { ucp, progress } = this.#context;
    progress.poll(); // a peer that has announced writes to the stream must be notified
    byteStream.closing(new TypeError("The endpoint was closed"));
    const drained = own.drain();
    if (drained !== null) await drained;
    const { delivered } = byteStream;
    if (delivered !== null) await delivered; // UCX would drop bytes sent and not received
    const acknowledged = this.#announceClose();
    if (acknowledged !== null) await acknowledged;
    if (own.failure === undefined && own.handle !== 0n) {
      const flush = own.foreign("ucp_ep_flush_nbx", null);
      await this.#follow(flush, ucp.endpoint.ucp_ep_flush_nbx(own.handle, flush.parameters));
    }
    await this.#leave(own.failure === undefined ? 0 : UCP_EP_CLOSE_FLAG.FORCE);
  }

  // law ucx/EndpointLifecycle.announceClose: ucx/endpoint, ucx/active_messages
  /**
   * Notifies the other side of an orderly close. With a connection by host and port, UCX reports the end over a
   * separate connection, which overtakes data sent through shared memory, and then drops that data: so all of it must
   * have arrived before.
   *
   * @returns a promise that settles when it has; null if no acknowledgement is expected
   */
  #announceClose(): Promise<void> | null {
    const { operations: own, byteStream } = this.#parts;
    const { protocol, isByHost, isPaired, progress } = this.#context;
    if (own.failure !== undefined || own.handle === 0n || protocol.greet !== null) return null;
    if (!(own.hasSentMessages || isByHost || isPaired) || !byteStream.notify("closed") || !isByHost) return null;
    const { setTimeout, clearTimeout } = nodeBuiltin("node:timers");
    const timer = setTimeout(() => this.#acknowledged.resolve(), acknowledgedWithin);
    return progress.waitsFor(this.#acknowledged.promise).finally(() => clearTimeout(timer));
  }

  // law ucx/EndpointLifecycle.abort: ucx/endpoint, ucx/limits, ucx/lifecycle
  /** As {@linkcode UcxEndpoint.abort}. UCX has been asked to close the handle when it returns. */
  abort(): void {
    this.#dismiss();
    this.#isConnecting = false; // no time for that
    void this.#leave(UCP_EP_CLOSE_FLAG.FORCE);
    void this.#closeNow?.(); // it may be letting UCX connect
  }

  // law ucx/EndpointLifecycle.leave: ucx/failing_calls
  /** Ends all operations and has UCX close the endpoint, once. */
  #leave(flags: number): Promise<void> {
    if (this.#leaving === undefined) {
      this.#leaving = this.#endAndClose(flags);
      this.#leaving.catch(() => {}); // not all wait for it, and the worker's end closes what this could not
    }
    return this.#leaving;
  }

  async #endAndClose(flags: number): Promise<void> {
    const { operations: own, byteStream, messages, arrays } = this.#parts;
    const { isPaired, progress } = this.#context;
    const closed = new TypeError("The endpoint was closed");
    if (flags !== 0 && isPaired) byteStream.notify("closed"); // as far as it still can
    byteStream.end(closed);
    const handle = own.end(closed);
    this.#acknowledged.resolve();
    for (const queue of [messages, arrays]) {
      queue.end();
      for (const message of queue.takeAll((message) => this.#isDismissed || !message.adoptData())) message.release();
    }
    progress.cancelAllOf(own.receives, () => closed);
    if (own.isBusy && own.failure === undefined) this.#context.cutShort();
    this.#closeNow ??= once(() => this.#closeHandle(handle, flags));
    if (flags !== 0 && this.#isConnecting && own.failure === undefined) await this.#letConnect(handle);
    await this.#closeNow();
  }

  /**
   * Gives UCX a moment to establish the connection: if an endpoint is closed by force while it connects over TCP, UCX
   * 1.13 aborts the process with a failed assertion.
   */
  async #letConnect(handle: bigint): Promise<void> {
    const flush = this.#parts.operations.foreign("ucp_ep_flush_nbx", null);
    const limit = timeLimit(flush.call, { timeout: farewell });
    const { ucp } = this.#context;
    await this.#follow(flush, ucp.endpoint.ucp_ep_flush_nbx(handle, flush.parameters), limit.signal);
    limit.clear();
  }

  async #closeHandle(handle: bigint, flags: number): Promise<void> {
    const own = this.#parts.operations;
    const { resources, progress } = this.#context;
    const close = own.foreign("ucp_ep_close_nbx", resources.canCloseInOrder ? flags : UCP_EP_CLOSE_FLAG.FORCE);
    await this.#follow(close, resources.closeEndpoint(handle, close.parameters));
    progress.poll(Infinity); // UCX ends what was in flight soon after, which frees its memory
    const status = own.failure === undefined ? ucs_status_t.UCS_ERR_CANCELED : undefined; // the status that UCX uses
    own.abandon(({ call }) => gone(call, status)); // operations that UCX has forgotten
    this.#context.forget(handle);
    this.#settleClosed(null);
  }

  // law ucx/EndpointLifecycle.settleClosed: ucx/dropped
  #settleClosed(reason: CloseReason): void {
    this.#closed.resolve(reason);
    this.#vacated.resolve();
    this.#releaseWorker?.();
    this.#releaseWorker = () => {};
  }

  /** Drops messages not yet taken. */
  #dismiss(): void {
    const { messages, arrays } = this.#parts;
    this.#isDismissed = true;
    for (const message of [...messages.takeAll(), ...arrays.takeAll()]) message.release();
  }

  /** Waits for a flush or a close, however it ends: `closed` reports that the other side went first. */
  async #follow(operation: Operation, begun: bigint, signal?: AbortSignal): Promise<void> {
    const { progress } = this.#context;
    try {
      progress.begunForeign(operation, begun);
      await progress.settled(operation, signal);
    } catch (error) {
      const isOurs = this.#leaving !== undefined; // the close itself, or a flush that it has cancelled
      if (error instanceof UcxError && !isOurs) this.fail(error);
    }
  }
}
