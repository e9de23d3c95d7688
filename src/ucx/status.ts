/**
 * What UCX's statuses mean to the caller.
 *
 * @module
 */
import { ucs_status_t } from "../../bindings/ucp_types.ts";

/** The usual cause of a status, where there is one. */
export function advice(status: number): string | undefined {
  switch (status) {
    case ucs_status_t.UCS_ERR_MESSAGE_TRUNCATED:
      return "The message is longer than the memory given to receive it";
    case ucs_status_t.UCS_ERR_CONNECTION_RESET:
    case ucs_status_t.UCS_ERR_ENDPOINT_TIMEOUT:
    case ucs_status_t.UCS_ERR_NOT_CONNECTED:
      return "The other side has closed the connection, or its process has ended";
    case ucs_status_t.UCS_ERR_UNREACHABLE:
      return "No transport that is enabled here reaches that worker: compare UCX_TLS, UCX_NET_DEVICES and the other " +
        "settings of both sides";
    default:
      return undefined;
  }
}
