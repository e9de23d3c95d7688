/**
 * What UCX answers when it begins an operation, and what is remembered of the operation until it ends.
 *
 * @module
 */
import { ucs_status_t } from "../../bindings/ucp_types.ts";

/** What a function of type `ucs_status_ptr_t` answered. */
export type StatusPointer =
  | { readonly kind: "done" }
  | { readonly kind: "failed"; readonly status: number }
  | { readonly kind: "pending"; readonly request: bigint };

/** Reads a `ucs_status_ptr_t`: 0, a status from -1 to UCS_ERR_LAST, or the address of a request. */
export function readStatusPointer(value: bigint): StatusPointer {
  if (value === 0n) return { kind: "done" };
  if (value < 0n && value >= BigInt(ucs_status_t.UCS_ERR_LAST)) return { kind: "failed", status: Number(value) };
  return { kind: "pending", request: BigInt.asUintN(64, value) };
}

/** An operation under way. UCX may read or write its memory until it is finished. */
export interface Operation {
  /** UCX's request. */
  readonly request: bigint;
  /** Unpins the memory and settles the operation's promise, once the request has ended with a status. */
  readonly finish: (status: number) => void;
  /** Rejects the operation's promise. */
  readonly reject: (reason: unknown) => void;
  /** The reason to reject with instead of UCX's own, once the operation has been cancelled. */
  cancelled?: unknown;
}

/** The usual cause of a status, where there is one. */
export function advice(status: number): string | undefined {
  switch (status) {
    case ucs_status_t.UCS_ERR_MESSAGE_TRUNCATED:
      return "The message is longer than the memory given to receive it";
    case ucs_status_t.UCS_ERR_CONNECTION_RESET:
    case ucs_status_t.UCS_ERR_ENDPOINT_TIMEOUT:
    case ucs_status_t.UCS_ERR_NOT_CONNECTED:
      return "The other process has ended";
    case ucs_status_t.UCS_ERR_UNREACHABLE:
      return "No transport that is enabled here reaches that worker: compare UCX_TLS and UCX_NET_DEVICES of both sides";
    default:
      return undefined;
  }
}
