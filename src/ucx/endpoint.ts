/**
 * An endpoint: the way from one worker to another.
 *
 * @module
 */
import {
  UCP_EP_CLOSE_FLAG,
  UCP_REQUEST_PARAM_FIELD,
  type ucp_request_param_t,
  UCS_MEMORY_TYPE,
} from "../../bindings/ucp_types.ts";
import type { StructView } from "../ffi/struct.ts";
import { UcxError } from "./error.ts";
import type { UcpFunctions } from "./library.ts";
import { type Sendable, sendMemory } from "./memory.ts";
import { printed } from "./printed.ts";
import type { Progress } from "./progress.ts";

/** Options of {@linkcode UcxEndpoint.send}. */
export interface SendOptions {
  /** The tag that the receiver matches. Default 0. */
  readonly tag?: bigint;
  /** Cancels the send if UCX still can; the promise is then rejected with the signal's reason. */
  readonly signal?: AbortSignal;
}

/** Why an endpoint is closed: `null` if it was closed here, otherwise what UCX reported. */
export type CloseReason = UcxError | null;

/** What an endpoint needs of its worker. */
export interface EndpointHome {
  readonly ucp: UcpFunctions;
  readonly progress: Progress;
  /** Scratch: UCX reads it during a call only. */
  readonly parameters: StructView<typeof ucp_request_param_t>;
  readonly hasCuda: boolean;
  /** Called once, when the endpoint is gone. */
  forget(handle: bigint): void;
}

/** A connection to another worker. */
export class UcxEndpoint {
  /** Settles when the endpoint is no longer usable: with `null` if it was closed here, else with UCX's reason. */
  readonly closed: Promise<CloseReason>;
  readonly #home: EndpointHome;
  readonly #settleClosed: (reason: CloseReason) => void;
  #handle: bigint;
  #failure: UcxError | undefined;
  #closing: Promise<void> | undefined;

  /** Use {@linkcode UcxWorker.connect}. */
  constructor(home: EndpointHome, handle: bigint) {
    const { promise, resolve } = Promise.withResolvers<CloseReason>();
    this.#home = home;
    this.#handle = handle;
    this.closed = promise;
    this.#settleClosed = resolve;
  }

  /**
   * Sends bytes. They must not change until the promise is settled; they are then the receiver's, or on their way in
   * memory of UCX.
   *
   * @param what contiguous memory: a view, a buffer or a Uint8Array
   * @throws {UcxError} if the other side is gone
   * @throws {TypeError} if the endpoint is closed, if the memory is not contiguous, or if it is a GPU's and this UCX
   *   was built without CUDA
   */
  async send(what: Sendable, options: SendOptions = {}): Promise<void> {
    const handle = this.#open("send");
    options.signal?.throwIfAborted();
    const memory = sendMemory(what, this.#home.hasCuda);
    const { parameters, ucp, progress } = this.#home;
    parameters.op_attr_mask = UCP_REQUEST_PARAM_FIELD.memory_type;
    parameters.memory_type = memory.cuda ? UCS_MEMORY_TYPE.CUDA : UCS_MEMORY_TYPE.HOST;
    const { address, length, keep } = memory;
    const begun = ucp.tag.ucp_tag_send_nbx(handle, address, BigInt(length), options.tag ?? 0n, parameters.$address);
    await progress.follow(begun, {
      call: "ucp_tag_send_nbx",
      keep,
      immediate: () => {},
      result: () => {},
      signal: options.signal,
    });
  }

  /**
   * The transports that UCX chose for this endpoint, for example `["tcp/lo", "cma/memory"]`. It is complete once the
   * first message has passed.
   */
  transports(): string[] {
    const { ucp } = this.#home;
    const handle = this.#open("list transports");
    const text = printed((file) => ucp.information.ucp_ep_print_info(handle, file));
    return [
      ...new Set(Array.from(text.matchAll(/lane\[\d+\]:\s*\d+:([\w/.-]+?)(?:\.\d+)?\s/g), ([, name]) => name ?? "")),
    ];
  }

  /** Reports the failure of the connection. Called by the worker. */
  fail(error: UcxError): void {
    this.#failure ??= error;
    this.#settleClosed(error);
  }

  /**
   * Closes the endpoint after what was sent has arrived; with `force`, at once.
   *
   * Closing twice is harmless.
   */
  close(options: { readonly force?: boolean } = {}): Promise<void> {
    this.#closing ??= this.#close(options.force ?? this.#failure !== undefined);
    return this.#closing;
  }

  /** Closes the endpoint after what was sent has arrived. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(force: boolean): Promise<void> {
    const { parameters, ucp, progress } = this.#home;
    const handle = this.#handle;
    this.#handle = 0n;
    parameters.op_attr_mask = UCP_REQUEST_PARAM_FIELD.flags;
    parameters.flags = force ? UCP_EP_CLOSE_FLAG.FORCE : 0;
    const begun = ucp.endpoint.ucp_ep_close_nbx(handle, parameters.$address);
    try {
      const followed = progress.follow(begun, {
        call: "ucp_ep_close_nbx",
        keep: this,
        immediate: () => {},
        result: () => {},
      });
      await followed;
    } catch (error) {
      // The endpoint is gone either way; that the other side went first is what `closed` reports.
      if (error instanceof UcxError) this.fail(error);
      else throw error;
    } finally {
      this.#home.forget(handle);
      this.#settleClosed(null);
    }
  }

  #open(doing: string): bigint {
    if (this.#failure !== undefined) {
      throw new UcxError(
        `Cannot ${doing}, the endpoint has failed before: ${this.#failure.call}`,
        this.#failure.status,
      );
    }
    if (this.#handle === 0n) throw new TypeError(`Cannot ${doing}: the endpoint is closed`);
    return this.#handle;
  }
}
