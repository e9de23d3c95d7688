/**
 * Peers whose end the system might not report: only UCX's own checks, by its timer, notice it.
 *
 * @module
 */
import { UCP_EP_ATTR_FIELD, ucp_ep_attr_t, ucs_status_t } from "../../bindings/ucp_types.ts";
import { NativeArena } from "../ffi/mod.ts";
import type { UcpFunctions } from "./library.ts";
import { readSocketAddress } from "./listen/socket_address.ts";

/** A connection to another process. */
interface Endpoint {
  /** Its UCX handle; 0n from when UCX was asked to close it, which frees it at any time. */
  readonly handle: bigint;
}

/** The endpoints of a worker that have such peers, as far as is known. */
export class UnreportedPeers<E extends Endpoint> {
  readonly #ucp: UcpFunctions;
  readonly #endpoints = new Set<E>();

  constructor(ucp: UcpFunctions) {
    this.#ucp = ucp;
  }

  /** Adds an endpoint about whose peer nothing is known. */
  add(endpoint: E): void {
    this.#endpoints.add(endpoint);
  }

  /** Forgets an endpoint that is closed. */
  forget(endpoint: E): void {
    this.#endpoints.delete(endpoint);
  }

  // law ucx/UnreportedPeers.areNone: ucx/unreported_peers, ucx/keepalive_timer
  /**
   * Whether there are none. An endpoint that is being closed counts, until it is closed: nothing can be asked about it.
   *
   * @param sees whether the end of an endpoint's peer is reported otherwise
   */
  areNone(sees: (endpoint: E) => boolean): boolean {
    for (const endpoint of this.#endpoints) {
      if (sees(endpoint)) continue;
      const { handle } = endpoint;
      if (handle === 0n || !isWithinMachine(this.#ucp, handle)) return false;
      this.#endpoints.delete(endpoint); // the system reports its end
    }
    return true;
  }
}

// law ucx/isWithinMachine: ucx/keepalive_timer
/**
 * Whether an endpoint was connected by a host that is this machine, or by a listener here for a client that is. The
 * system then closes the connection's socket as soon as the other process ends, and UCX reports it.
 */
function isWithinMachine(ucp: UcpFunctions, endpoint: bigint): boolean {
  using arena = new NativeArena();
  const ends = arena.struct(ucp_ep_attr_t);
  ends.field_mask = UCP_EP_ATTR_FIELD.local_sockaddr | UCP_EP_ATTR_FIELD.remote_sockaddr;
  if (ucp.endpoint.ucp_ep_query(endpoint, ends.$address) !== ucs_status_t.UCS_OK) return false;
  return readSocketAddress(ends.local_sockaddr).host === readSocketAddress(ends.remote_sockaddr).host;
}
