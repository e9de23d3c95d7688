/**
 * Errors of UCX, and what its statuses mean to the caller.
 *
 * @module
 */
import { ucs_status_t } from "../../bindings/ucp_types.ts";
import { constantName } from "../ffi/mod.ts";

/** The name of a `ucs_status_t`, for example `UCS_ERR_UNREACHABLE`. */
function statusName(status: number): string {
  return constantName(ucs_status_t, status) ?? `ucs_status_t(${status})`;
}

/** A call into UCX failed, or an operation that it started did. */
export class UcxError extends Error {
  /** `UcxError`. */
  override readonly name: string = "UcxError";
  /** The library's own code, a `ucs_status_t`. */
  readonly status: number;
  /** Its name in the header. */
  readonly statusName: string;
  /** The libucp function that returned the status, or whose operation completed with it. */
  readonly call: string;

  /** `hint`: the usual cause, as a sentence. */
  constructor(call: string, status: number, hint?: string) {
    super(`${call} failed with ${statusName(status)} (${status})${hint === undefined ? "" : `. ${hint}`}`);
    this.status = status;
    this.statusName = statusName(status);
    this.call = call;
  }
}

/** Throws unless the status is UCS_OK. */
export function checkStatus(call: string, status: number, hint?: string): void {
  if (status !== ucs_status_t.UCS_OK) throw new UcxError(call, status, hint);
}

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
