/**
 * The addresses of both ends of a connection to a listener.
 *
 * @module
 */
import { UCP_EP_ATTR_FIELD, ucp_ep_attr_t, ucs_status_t } from "../../../bindings/ucp_types.ts";
import { NativeArena } from "../../ffi/mod.ts";
import type { UcpFunctions } from "../library.ts";
import { readSocketAddress } from "./socket_address.ts";

// law ucx/isWithinMachine: ucx/keepalive_timer
/**
 * Whether an endpoint was connected by a host that is this machine, or by a listener here for a client that is. The
 * system then closes the connection's socket as soon as the other process ends, and UCX reports it.
 */
export function isWithinMachine(ucp: UcpFunctions, endpoint: bigint): boolean {
  using arena = new NativeArena();
  const ends = arena.struct(ucp_ep_attr_t);
  ends.field_mask = UCP_EP_ATTR_FIELD.local_sockaddr | UCP_EP_ATTR_FIELD.remote_sockaddr;
  if (ucp.endpoint.ucp_ep_query(endpoint, ends.$address) !== ucs_status_t.UCS_OK) return false;
  return readSocketAddress(ends.local_sockaddr).host === readSocketAddress(ends.remote_sockaddr).host;
}
