/**
 * The callback by which UCX reports active messages of one id.
 *
 * @module
 */
import {
  UCP_AM_HANDLER_PARAM_FIELD,
  ucp_am_handler_param_t,
  UCP_AM_RECV_ATTR,
  ucp_am_recv_param_t,
  ucs_status_t,
} from "../../../bindings/ucp_types.ts";
import { ffiPort, layoutOf, littleEndian, NativeArena, type NativeCallback } from "../../ffi/mod.ts";
import { checkStatus } from "../error.ts";
import type { UcpFunctions } from "../library.ts";
import { writeFields } from "../struct_fields.ts";

/** A message as UCX reports it. */
export interface Incoming {
  readonly header: Uint8Array<ArrayBuffer>;
  /** The data, or UCX's handle for them while they are at the sender; owned by UCX, unless they are kept. */
  readonly data: bigint;
  /** Size of the data in bytes. */
  readonly length: number;
  /**
   * Where the data are: still at the sender, in memory that UCX can lend, or in memory that is valid only during the
   * call.
   */
  readonly place: "sender" | "borrowed" | "call";
  /** The handle of the endpoint to the sender; 0n if UCX does not report it. */
  readonly from: bigint;
}

/** The consumer of incoming messages. */
export interface MessageTaker {
  /** Takes a message; must not poll UCX. @returns whether the data are kept */
  takeIncoming(message: Incoming): boolean;
}

const field = layoutOf(ucp_am_recv_param_t).offsets;

// law ucx/handleMessages: ucx/active_messages, ucx/dropped
/**
 * Makes UCX call a taker for each active message with an id, as long as the taker lives: UCX does not keep it alive.
 *
 * @returns the callback, to be closed only when UCX makes no more calls
 */
export function handleMessages(
  { ucp, handle }: { readonly ucp: UcpFunctions; readonly handle: bigint },
  id: number,
  taker: MessageTaker,
): NativeCallback {
  const reference = new WeakRef(taker);
  const signature = { args: ["ptr", "ptr", "u64", "ptr", "u64", "ptr"], returns: "i8" } as const;
  // UCX calls it inside ucp_worker_progress, on this thread.
  const handler = ffiPort().callback(signature, (_, header, headerLength, data, length, parameters) => {
    const view = new DataView(ffiPort().memory(parameters, layoutOf(ucp_am_recv_param_t).size));
    const attributes = view.getBigUint64(field.recv_attr, littleEndian);
    const has = (bit: bigint) => (attributes & bit) !== 0n;
    const isTaken = reference.deref()?.takeIncoming({
      header: copyOf(header, Number(headerLength)),
      data,
      length: Number(length),
      place: has(UCP_AM_RECV_ATTR.FLAG_RNDV) ? "sender" : has(UCP_AM_RECV_ATTR.FLAG_DATA) ? "borrowed" : "call",
      from: has(UCP_AM_RECV_ATTR.FIELD_REPLY_EP) ? view.getBigUint64(field.reply_ep, littleEndian) : 0n,
    });
    return isTaken === true ? ucs_status_t.UCS_INPROGRESS : ucs_status_t.UCS_OK;
  });
  using arena = new NativeArena();
  const parameters = arena.struct(ucp_am_handler_param_t);
  writeFields(parameters, UCP_AM_HANDLER_PARAM_FIELD, { id, cb: handler.address, arg: 0n });
  const status = ucp.activeMessage.ucp_worker_set_am_recv_handler(handle, parameters.$address);
  if (status !== 0) handler.close();
  checkStatus("ucp_worker_set_am_recv_handler", status);
  return handler;
}

/** Copies bytes that UCX owns. */
export function copyOf(address: bigint, length: number): Uint8Array<ArrayBuffer> {
  return length === 0 ? new Uint8Array(new ArrayBuffer(0)) : new Uint8Array(ffiPort().memory(address, length).slice(0));
}
