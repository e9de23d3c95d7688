/**
 * Listening for other programs, by host and port.
 *
 * @module
 */
import {
  UCP_LISTENER_ATTR_FIELD,
  ucp_listener_attr_t,
  UCP_LISTENER_PARAMS_FIELD,
  ucp_listener_params_t,
} from "../../bindings/ucp_types.ts";
import { ffiPort, NativeArena, type NativeCallback } from "../ffi/mod.ts";
import type { OptionNames } from "../layout/mod.ts";
import type { UcxEndpoint } from "./endpoint.ts";
import { checkStatus } from "./error.ts";
import type { UcpFunctions } from "./library.ts";
import { readSocketAddress, writeSocketAddress } from "./socket_address.ts";
import { writeFields } from "./struct_fields.ts";

/** Options of {@linkcode UcxWorker.listen}. */
export interface ListenOptions {
  /**
   * The address to listen at: that of one interface of this machine, or `0.0.0.0` or `::` for all of them. Default
   * `127.0.0.1`, which only programs of this machine reach.
   */
  readonly host?: string;
  /** The port. Default 0: any that is free. */
  readonly port?: number;
  /** How many connections may wait to be taken; others are rejected then. Default 1024. */
  readonly backlog?: number;
  /** What endpoints notice of the other side's end, see {@linkcode ConnectOptions.errors}. Default `peer`. */
  readonly errors?: "peer" | "none";
}

/** The names of the options. */
export const listenOptionNames: OptionNames<ListenOptions> = { host: true, port: true, backlog: true, errors: true };

/** What a listener needs of its worker. */
export interface ListenerContext {
  readonly ucp: UcpFunctions;
  /** The worker's handle. @throws {TypeError} if it is closed */
  worker(): bigint;
  /** Of the addresses that UCX connects by over TCP. */
  readonly family: 4 | 6;
  /** Makes an endpoint of a connection that has been asked for. */
  accept(request: bigint): UcxEndpoint;
  /** Has the worker answer from now on. */
  watch(): void;
  /** Called once, when it is closed. */
  forget(listener: UcxListener): void;
}

/**
 * Takes connections: each is an endpoint, in the order in which they were asked for.
 *
 * @example
 * ```ts ignore
 * const listener = await worker.listen({ port: 13337 });
 * for await (const endpoint of listener) serve(endpoint);
 * ```
 */
export class UcxListener implements AsyncIterable<UcxEndpoint> {
  /** The address that it listens at. */
  readonly host: string;
  /** The port. */
  readonly port: number;
  readonly #context: ListenerContext;
  readonly #onRequest: NativeCallback;
  readonly #backlog: number;
  /** Connections that nobody has taken. */
  readonly #waiting: UcxEndpoint[] = [];
  readonly #takers: ((endpoint: UcxEndpoint | null) => void)[] = [];
  /** Requests that UCX has reported and that are to be endpoints. */
  readonly #requests: bigint[] = [];
  #handle: bigint;
  #rejected = 0;

  /** Use {@linkcode UcxWorker.listen}. */
  constructor(
    context: ListenerContext,
    arena: NativeArena,
    address: { addr: bigint; addrlen: number },
    backlog: number,
  ) {
    this.#context = context;
    this.#backlog = backlog;
    const { ucp, worker } = context;
    // UCX calls it inside ucp_worker_progress, on this thread. Endpoints are made when it is over.
    this.#onRequest = ffiPort().callback({ args: ["ptr", "ptr"], returns: "void" }, (request) => this.#add(request));
    try {
      const parameters = arena.struct(ucp_listener_params_t);
      const conn_handler = { cb: this.#onRequest.address, arg: 0n };
      writeFields(parameters, UCP_LISTENER_PARAMS_FIELD, { sockaddr: address, conn_handler });
      const made = arena.out("ptr");
      const status = ucp.listener.ucp_listener_create(worker(), parameters.$address, made.$address);
      checkStatus("ucp_listener_create", status, "Is the port taken, or not this machine's address?");
      this.#handle = made.value;
    } catch (error) {
      this.#onRequest.close();
      throw error;
    }
    const attributes = arena.struct(ucp_listener_attr_t);
    attributes.field_mask = UCP_LISTENER_ATTR_FIELD.sockaddr;
    checkStatus("ucp_listener_query", ucp.listener.ucp_listener_query(this.#handle, attributes.$address));
    const { host, port } = readSocketAddress(attributes.sockaddr);
    this.host = host;
    this.port = port;
    context.watch();
  }

  /** How many connections were rejected, because too many waited. */
  get rejected(): number {
    return this.#rejected;
  }

  /**
   * The next connection, or null if the listener is closed. Its other side may have gone already, which the endpoint
   * says (`closed`).
   */
  accept(): Promise<UcxEndpoint | null> {
    const next = this.#waiting.shift();
    if (next !== undefined || this.#handle === 0n) return Promise.resolve(next ?? null);
    const { promise, resolve } = Promise.withResolvers<UcxEndpoint | null>();
    this.#takers.push(resolve);
    return promise;
  }

  /** The connections, until the listener is closed. */
  async *[Symbol.asyncIterator](): AsyncIterator<UcxEndpoint> {
    for (let next = await this.accept(); next !== null; next = await this.accept()) yield next;
  }

  // law ucx/UcxListener.close: ucx/listener
  /** Takes no more connections, and closes those that nobody has taken. Closing twice is harmless. */
  async close(): Promise<void> {
    if (this.#handle === 0n) return;
    const { ucp } = this.#context;
    for (const request of this.#requests.splice(0)) ucp.listener.ucp_listener_reject(this.#handle, request);
    ucp.listener.ucp_listener_destroy(this.#handle);
    this.#handle = 0n;
    this.#onRequest.close();
    this.#context.forget(this);
    for (const take of this.#takers.splice(0)) take(null);
    await Promise.all(this.#waiting.splice(0).map((endpoint) => endpoint.close({ force: true })));
  }

  /** Takes no more connections. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  // law ucx/UcxListener.add: ucx/listener
  /** Called by UCX, inside a function of its own: what it reports is dealt with when that is over. */
  #add(request: bigint): void {
    if (this.#requests.push(request) === 1) queueMicrotask(() => this.#accept());
  }

  // law ucx/UcxListener.accept: ucx/listener
  #accept(): void {
    for (const request of this.#requests.splice(0)) {
      if (this.#waiting.length >= this.#backlog) {
        this.#rejected++;
        this.#context.ucp.listener.ucp_listener_reject(this.#handle, request);
        continue;
      }
      let endpoint: UcxEndpoint;
      try {
        endpoint = this.#context.accept(request);
      } catch {
        continue; // who asked has gone
      }
      const take = this.#takers.shift();
      if (take === undefined) this.#waiting.push(endpoint);
      else take(endpoint);
    }
  }
}

/** Begins to listen. @throws as {@linkcode UcxWorker.listen} */
export async function openListener(
  context: ListenerContext,
  { host = "127.0.0.1", port = 0, backlog = 1024 }: ListenOptions,
): Promise<UcxListener> {
  if (!Number.isInteger(backlog) || backlog < 1) {
    throw new RangeError(`Cannot keep ${backlog} connections waiting: expected an integer of at least 1`);
  }
  using arena = new NativeArena();
  return new UcxListener(context, arena, await writeSocketAddress(arena, { host, port }, context.family), backlog);
}
