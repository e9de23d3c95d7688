/**
 * An endpoint: the connection from one worker to another.
 *
 * @module
 */
import {
  UCP_EP_CLOSE_FLAG,
  UCP_REQUEST_PARAM_FIELD,
  type ucp_request_param_t,
  UCS_MEMORY_TYPE,
  ucs_status_t,
} from "../../bindings/ucp_types.ts";
import type { StructView } from "../ffi/mod.ts";
import { checkOptions, none, type OptionNames } from "../layout/mod.ts";
import { UcxError } from "./error.ts";
import type { UcpFunctions } from "./library.ts";
import { type Sendable, sendMemory } from "./message_memory.ts";
import { printInfo } from "./print_info.ts";
import type { Progress } from "./progress.ts";
import { advice } from "./request.ts";
import { StartQueue } from "./start_queue.ts";
import { checkTag } from "./tag.ts";

/** Options of {@linkcode UcxEndpoint.send}. */
export interface SendOptions {
  /** The tag that the receiver matches. Default 0. */
  readonly tag?: bigint;
  /** Cancels the send if UCX still can; the promise is then rejected with the signal's reason. */
  readonly signal?: AbortSignal;
}

const closeOptionNames = { force: true } as const;

const sendOptionNames: OptionNames<SendOptions> = { tag: true, signal: true };

/** Why an endpoint is closed: `null` if it was closed here, otherwise what UCX reported. */
export type CloseReason = UcxError | null;

/** What an endpoint needs of its worker. */
export interface EndpointContext {
  readonly ucp: UcpFunctions;
  readonly progress: Progress;
  /** Scratch: UCX reads it during a call only. */
  readonly parameters: StructView<typeof ucp_request_param_t>;
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
  async send(what: Sendable, options: SendOptions = none): Promise<void> {
    checkOptions(options, sendOptionNames);
    const handle = this.#open("send");
    const tag = checkTag("tag", options.tag ?? 0n);
    const { signal } = options;
    signal?.throwIfAborted();
    const { address, length, cuda, ready, release: releaseMemory } = sendMemory(what, this.#context.hasCuda);
    const release = () => {
      releaseMemory();
      if (--this.#underWay === 0) this.#drained?.resolve();
    };
    this.#underWay++;
    await this.#starts.add({ ready, release, signal }, () => {
      const { parameters, ucp, progress } = this.#context;
      parameters.op_attr_mask = UCP_REQUEST_PARAM_FIELD.memory_type;
      parameters.memory_type = cuda ? UCS_MEMORY_TYPE.CUDA : UCS_MEMORY_TYPE.HOST;
      return progress.follow(ucp.tag.ucp_tag_send_nbx(handle, address, BigInt(length), tag, parameters.$address), {
        call: "ucp_tag_send_nbx",
        release,
        immediate: () => {},
        result: () => {},
        signal,
        reason: () => this.#isLost ? gone("ucp_tag_send_nbx") : undefined,
      });
    });
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
    this.#starts.stop(this.#isLost ? gone("ucp_tag_send_nbx") : error);
    this.#settleClosed(error);
  }

  // law ucx/UcxEndpoint.lose: ucx/endpoint, ucx/two_processes
  /** Fails what UCX would leave waiting: the other process has ended. Called by the worker. */
  async lose(): Promise<void> {
    if (this.#failure !== undefined || this.#handle === 0n) return;
    this.#isLost = true;
    this.fail(gone("ucp_worker_progress"));
    await this.#end(UCP_EP_CLOSE_FLAG.FORCE);
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
    const { parameters, ucp } = this.#context;
    if (this.#failure === undefined && this.#handle !== 0n) {
      parameters.op_attr_mask = 0;
      await this.#follow("ucp_ep_flush_nbx", ucp.endpoint.ucp_ep_flush_nbx(this.#handle, parameters.$address));
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
    const { parameters, ucp } = this.#context;
    const handle = this.#handle;
    this.#handle = 0n;
    this.#starts.stop(new TypeError("The endpoint was closed"));
    this.#drained?.resolve(); // a close that waits for sends need not wait any longer
    parameters.op_attr_mask = UCP_REQUEST_PARAM_FIELD.flags;
    parameters.flags = flags;
    if (this.#underWay > 0 && this.#failure === undefined) this.#context.cutShort();
    await this.#follow("ucp_ep_close_nbx", ucp.endpoint.ucp_ep_close_nbx(handle, parameters.$address));
    this.#context.forget(handle);
    this.#settleClosed(null);
  }

  /** The end of a flush or a close, however it ends: that the other side went first is what `closed` reports. */
  async #follow(call: string, begun: bigint): Promise<void> {
    try {
      await this.#context.progress.follow(begun, { call, release: () => {}, immediate: () => {}, result: () => {} });
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
