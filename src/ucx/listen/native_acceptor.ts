/**
 * Listening with UCX's own listener: any peer that connects to the port gets a connection.
 *
 * @module
 */
import { errno } from "../../../bindings/libc.ts";
import {
  UCP_LISTENER_ATTR_FIELD,
  ucp_listener_attr_t,
  UCP_LISTENER_PARAMS_FIELD,
  ucp_listener_params_t,
  ucs_status_t,
} from "../../../bindings/ucp_types.ts";
import { ffiPort, NativeArena } from "../../ffi/mod.ts";
import { checkDescriptorsLeft, keepFromChildren, ListeningSocket, nextDescriptor } from "../../unix/mod.ts";
import type { Acceptor, AcceptorContext } from "./acceptor.ts";
import { checkStatus, UcxError } from "../error.ts";
import type { UcpFunctions } from "../library.ts";
import { cannotListen, whyNotBound } from "./no_listener.ts";
import { formatHostAndPort, type HostAndPort, readSocketAddress, writeSocketAddress } from "./socket_address.ts";
import { writeFields } from "../struct_fields.ts";
import type { NativeListener, WorkerResources } from "../worker_resources.ts";

/** What a native acceptor needs. */
export interface NativeAcceptorContext extends AcceptorContext {
  readonly ucp: UcpFunctions;
  /** The worker's handle. */
  readonly worker: bigint;
  readonly resources: WorkerResources;
  /** Creates an endpoint from a connection request. */
  accept(request: bigint): void;
}

// UCX reads this setting only from the environment: ucp_config_modify does not affect its listeners.
const busy =
  "A server that has just ended leaves its port busy for a minute, unless UCX_TCP_CM_REUSEADDR=y is in the " +
  "environment";

/** How many descriptors a listener needs: its own, and one to free its port with. */
const descriptorsOfListener = 2;

// law ucx/listenNatively: ucx/listener, ucx/listener_again, ucx/dropped, ucx/failing_calls
/** Starts listening. @param at with a numeric host @throws as {@linkcode UcxWorker.listen} */
export function listenNatively(at: HostAndPort, context: NativeAcceptorContext): Acceptor {
  const { ucp } = context;
  checkDescriptorsLeft(descriptorsOfListener, `listen at ${formatHostAndPort(at)}`);
  const from = nextDescriptor();
  const listener = new Listener(at, context);
  using failed = new DisposableStack();
  failed.defer(() => listener.close()); // it refuses connections until its worker is closed
  using arena = new NativeArena();
  const attributes = arena.struct(ucp_listener_attr_t);
  attributes.field_mask = UCP_LISTENER_ATTR_FIELD.sockaddr;
  checkStatus("ucp_listener_query", ucp.listener.ucp_listener_query(listener.handle, attributes.$address));
  const bound = readSocketAddress(attributes.sockaddr);
  listener.socket = ListeningSocket.find(from, (address) => {
    const { host, port } = readSocketAddress(address);
    return port === bound.port && host === bound.host;
  });
  failed.move();
  return { ...bound, close: () => listener.close() };
}

/**
 * UCX's listener, which the worker's resources destroy. Once closed it references nothing that would keep a worker from
 * being collected.
 */
class Listener implements NativeListener {
  readonly handle: bigint;
  socket: ListeningSocket | null = null;
  readonly #ucp: UcpFunctions;
  /** Connection requests that UCX has reported, to be turned into endpoints. */
  readonly #requests: bigint[] = [];
  /** Null once it is closed. */
  #context: NativeAcceptorContext | null;

  constructor(at: HostAndPort, context: NativeAcceptorContext) {
    const { ucp, worker, resources } = context;
    this.#ucp = ucp;
    this.#context = context;
    using arena = new NativeArena();
    const sockaddr = writeSocketAddress(arena, at);
    // UCX calls this inside ucp_worker_progress, on this thread. Endpoints are created after it returns.
    const onRequest = ffiPort().callback({ args: ["ptr", "ptr"], returns: "void" }, (request) => {
      if (this.#requests.push(request) === 1) queueMicrotask(() => this.#accept());
    });
    try {
      const parameters = arena.struct(ucp_listener_params_t);
      writeFields(parameters, UCP_LISTENER_PARAMS_FIELD, {
        sockaddr,
        conn_handler: { cb: onRequest.address, arg: 0n },
      });
      const made = arena.out("ptr");
      const status = ucp.listener.ucp_listener_create(worker, parameters.$address, made.$address);
      if (status !== ucs_status_t.UCS_OK) throw refusal(at, status);
      this.handle = made.value;
      keepFromChildren();
    } catch (error) {
      onRequest.close();
      throw error;
    }
    resources.adopt(onRequest);
    resources.listeners.add(this);
  }

  #accept(): void {
    const context = this.#context;
    for (const request of this.#requests.splice(0)) {
      if (context === null || !context.hasRoom()) {
        context?.refused();
        this.#reject(request);
        continue;
      }
      try {
        context.accept(request);
      } catch {
        context.refused(); // by UCX: the peer is gone, or its UCX is a version whose addresses cannot be read here
      }
    }
  }

  #reject(request: bigint): void {
    this.#ucp.listener.ucp_listener_reject(this.handle, request);
  }

  /** Frees the port, and refuses connections. Those that peers have begun are rejected when UCX reports them. */
  close(): void {
    this.#context = null;
    for (const request of this.#requests.splice(0)) this.#reject(request);
    this.socket?.stop();
  }

  endConnections(): number {
    return this.socket?.endConnections() ?? 0;
  }

  destroy(): void {
    for (const request of this.#requests.splice(0)) this.#reject(request);
    this.#ucp.listener.ucp_listener_destroy(this.handle);
  }
}

/** Why `ucp_listener_create` failed, as the system reports it: UCX reports only that there was an error. */
function refusal(at: HostAndPort, status: number): Error {
  const cause = new UcxError("ucp_listener_create", status);
  const isBusy = status === ucs_status_t.UCS_ERR_BUSY;
  const code = isBusy ? errno.EADDRINUSE : whyNotBound(at);
  return code === 0 ? cause : cannotListen(at, "bind", code, isBusy ? busy : undefined, { cause });
}
