/**
 * What the two ends of a byte stream say to each other beside the bytes: active messages of their own, which come also
 * while nobody reads.
 *
 * @module
 */
import { UCS_MEMORY_TYPE } from "../../../bindings/ucp_types.ts";
import { littleEndian } from "../../ffi/mod.ts";
import { none } from "../../layout/mod.ts";
import type { EndpointOperations } from "../endpoint_operations.ts";
import { handleMessages, type Incoming, type MessageTaker } from "../message/message_handler.ts";
import { sendActiveMessage } from "../message_sender.ts";
import type { WorkerResources } from "../worker_resources.ts";

/** The number by which UCX tells these from other active messages. */
const controlId = 3;

/**
 * The reader: it has `taken` bytes; it has taken the `end`; it takes no more, `cancelled`. The writer: there is one,
 * `writing`, whom a reader that goes has to notify. Either: its endpoint is being `closed` in order, not lost; it has
 * `acknowledged` that, and all that was sent before.
 */
export const controlKinds = ["taken", "end", "cancelled", "writing", "closed", "acknowledged"] as const;

/** What the other end says. */
export interface StreamControl {
  readonly kind: typeof controlKinds[number];
  /** Bytes that the reader has taken since the stream began. */
  readonly taken: number;
}

/** Whether it stays true until the endpoint is closed, also for an endpoint that leads back and is made later. */
export function isLasting(kind: StreamControl["kind"]): kind is "cancelled" | "writing" {
  return kind === "cancelled" || kind === "writing";
}

/** What has come, and of whom. */
interface Received extends StreamControl {
  /** The check of the sending worker's address. */
  readonly sender: number;
}

/** A kind, a number of bytes, and the sender. */
const controlBytes = 24;

// law ucx/readControl: ucx/byte_stream
/** @returns null if it is something else */
export function readControl(bytes: Uint8Array): Received | null {
  if (bytes.length !== controlBytes) return null;
  const view = new DataView(bytes.buffer, bytes.byteOffset, controlBytes);
  const kind = controlKinds[Number(view.getBigUint64(0, littleEndian))];
  if (kind === undefined) return null;
  return {
    kind,
    taken: Number(view.getBigUint64(8, littleEndian)),
    sender: Number(view.getBigUint64(16, littleEndian)),
  };
}

/** Notifies the other end, if the endpoint still can. @param sender the check of this worker's address */
export function sendControl(own: EndpointOperations, { kind, taken }: StreamControl, sender: number): void {
  if (own.failure !== undefined || own.handle === 0n) return;
  const bytes = new Uint8Array(controlBytes);
  const view = new DataView(bytes.buffer);
  view.setBigUint64(0, BigInt(controlKinds.indexOf(kind)), littleEndian);
  view.setBigUint64(8, BigInt(taken), littleEndian);
  view.setBigUint64(16, BigInt(sender), littleEndian);
  const operation = own.take("ucp_am_send_nbx");
  operation.address = 0n;
  operation.bytes = 0;
  operation.memoryType = UCS_MEMORY_TYPE.HOST;
  sendActiveMessage(own, operation, controlId, bytes, null, none).catch(() => {}); // the endpoint says why
}

/** What it needs of its worker. */
export interface StreamControlContext {
  readonly resources: WorkerResources;
  /** Hands it to the endpoint with this handle. @returns whether there is one */
  deliver(control: StreamControl, from: bigint): boolean;
}

/** Peers whose endpoints here have yet to be made that are remembered: of more, the oldest are forgotten. */
export const mostEarly = 1024;

/** Delivers what comes to the endpoints of a worker. */
export class StreamControlDelivery implements MessageTaker {
  readonly #context: StreamControlContext;
  /**
   * What lasts and was said to endpoints that the program has yet to make, by their handles. UCX gives the handle of one
   * that is gone to another: so it counts only for an endpoint to the worker that has said it.
   */
  readonly #early = new Map<bigint, { readonly sender: number; readonly kinds: Set<"cancelled" | "writing"> }>();

  constructor(context: StreamControlContext) {
    this.#context = context;
    context.resources.keep(handleMessages(context.resources, controlId, this));
  }

  /** Called by UCX. */
  takeIncoming({ header, from }: Incoming): boolean {
    const control = readControl(header);
    if (control !== null && from !== 0n) this.deliver(control, from);
    return false;
  }

  /** How many peers are remembered. */
  get remembered(): number {
    return this.#early.size;
  }

  // law ucx/StreamControlDelivery.deliver: ucx/byte_stream, ucx/stream_control
  /** Takes what has come to the endpoint with a handle. */
  deliver(control: Received, from: bigint): void {
    const { kind, sender } = control;
    if (this.#context.deliver(control, from)) return;
    const early = this.#early.get(from);
    if (kind === "closed") this.#early.delete(from);
    if (!isLasting(kind)) return;
    this.#early.delete(from); // to be the newest
    const kinds = early?.sender === sender ? early.kinds : new Set<typeof kind>();
    this.#early.set(from, { sender, kinds: kinds.add(kind) });
    const [oldest] = this.#early.size > mostEarly ? this.#early.keys() : [];
    if (oldest !== undefined) this.#early.delete(oldest);
  }

  // law ucx/StreamControlDelivery.made: ucx/byte_stream, ucx/stream_control
  /** An endpoint has been made: what it was said before comes now. @param peer the check of its worker's address, if known */
  made(endpoint: bigint, peer: number | null): void {
    const early = this.#early.get(endpoint);
    this.#early.delete(endpoint);
    if (early === undefined || early.sender !== peer) return;
    for (const kind of early.kinds) this.#context.deliver({ kind, taken: 0 }, endpoint);
  }
}
