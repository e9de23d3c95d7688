/**
 * Control messages between the two ends of a byte stream: separate active messages, which arrive even while nothing is
 * read.
 *
 * @module
 */
import { UCS_MEMORY_TYPE } from "../../../bindings/ucp_types.ts";
import { littleEndian } from "../../ffi/mod.ts";
import { none } from "../../layout/mod.ts";
import type { EndpointOperations } from "../endpoint_operations.ts";
import { handleMessages, type Incoming, type MessageTaker } from "../active_messages/message_handler.ts";
import { sendActiveMessage } from "../active_messages/message_sender.ts";
import type { WorkerResources } from "../worker_resources.ts";

/** The id by which UCX tells these from other active messages. */
const controlId = 3;

/**
 * From the reader: it has `taken` bytes; it has taken the `end`; it takes no more, `cancelled`. From the writer: it
 * exists (`writing`), so a reader that leaves must notify it. From either: its endpoint is being `closed` in order, not
 * lost; it has `acknowledged` that, and everything sent before.
 */
export const controlKinds = ["taken", "end", "cancelled", "writing", "closed", "acknowledged"] as const;

/** A control message from the other end. */
export interface StreamControl {
  readonly kind: typeof controlKinds[number];
  /** Bytes that the reader has taken since the stream began. */
  readonly taken: number;
}

/**
 * Whether it stays true until the endpoint is closed, even for an endpoint back to the sender that is created later.
 */
function isLasting(kind: StreamControl["kind"]): kind is "cancelled" | "writing" {
  return kind === "cancelled" || kind === "writing";
}

/** A received control message, with its sender. */
interface Received extends StreamControl {
  /** The checksum of the sending worker's address. */
  readonly sender: number;
}

/** Size of a control message: a kind, a number of bytes, and the sender. */
const controlBytes = 24;

// law ucx/readControl: ucx/byte_stream
/** @returns null if it is not a control message */
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

/**
 * Notifies the other end, if the endpoint still can. The message begins before this returns; what is returned is
 * rejected if UCX refuses it.
 *
 * @param sender the checksum of this worker's address
 */
export async function sendControl(
  own: EndpointOperations,
  { kind, taken }: StreamControl,
  sender: () => number,
): Promise<void> {
  if (own.failure !== undefined || own.handle === 0n) return;
  const bytes = new Uint8Array(controlBytes);
  const view = new DataView(bytes.buffer);
  view.setBigUint64(0, BigInt(controlKinds.indexOf(kind)), littleEndian);
  view.setBigUint64(8, BigInt(taken), littleEndian);
  view.setBigUint64(16, BigInt(sender()), littleEndian);
  const operation = own.take("ucp_am_send_nbx");
  operation.address = 0n;
  operation.bytes = 0;
  operation.memoryType = UCS_MEMORY_TYPE.HOST;
  await sendActiveMessage(own, operation, controlId, bytes, null, none);
}

/** What delivery needs from its worker. */
export interface StreamControlContext {
  readonly resources: WorkerResources;
  /** Passes a control message to the endpoint with this handle. @returns whether there is one */
  deliver(control: StreamControl, from: bigint): boolean;
}

/** How many peers are remembered whose endpoints here have yet to be created: beyond that the oldest are forgotten. */
export const maxEarly = 1024;

/** Delivers control messages to the endpoints of a worker. */
export class StreamControlDelivery implements MessageTaker {
  readonly #context: StreamControlContext;
  /**
   * Lasting messages to endpoints that the program has yet to create, by their handles. UCX reuses the handles of
   * endpoints that are gone: so a message counts only for an endpoint to the worker that sent it.
   */
  readonly #early = new Map<bigint, { readonly sender: number; readonly kinds: Set<"cancelled" | "writing"> }>();

  /**
   * Peers of endpoints that were closed here, by the handles, which UCX reuses. What their other side cancels only then
   * is nothing to the next endpoint between the same two workers.
   */
  readonly #gone = new Map<bigint, number | null>();

  constructor(context: StreamControlContext) {
    this.#context = context;
    context.resources.adopt(handleMessages(context.resources, controlId, this));
  }

  /** Called by UCX. */
  takeIncoming({ header, from }: Incoming): boolean {
    const control = readControl(header);
    if (control !== null && from !== 0n) this.deliver(control, from);
    return false;
  }

  /** How many peers are remembered. */
  get remembered(): number {
    return Math.max(this.#early.size, this.#gone.size);
  }

  // law ucx/StreamControlDelivery.deliver: ucx/byte_stream, ucx/stream_control
  /** Delivers a control message to the endpoint with a handle. */
  deliver(control: Received, from: bigint): void {
    const { kind, sender } = control;
    if (this.#context.deliver(control, from)) return;
    const early = this.#early.get(from);
    if (kind === "closed") this.#early.delete(from);
    if (!isLasting(kind) || (kind === "cancelled" && this.#gone.get(from) === sender)) return;
    const kinds = early?.sender === sender ? early.kinds : new Set<typeof kind>();
    remember(this.#early, from, { sender, kinds: kinds.add(kind) });
  }

  // law ucx/StreamControlDelivery.made: ucx/byte_stream, ucx/stream_control
  /** Delivers what was sent to a new endpoint before. @param peer the checksum of its worker's address, if known */
  made(endpoint: bigint, peer: number | null): void {
    const early = this.#early.get(endpoint);
    this.#early.delete(endpoint);
    if (early === undefined || early.sender !== peer) return;
    for (const kind of early.kinds) this.#context.deliver({ kind, taken: 0 }, endpoint);
  }

  // law ucx/StreamControlDelivery.closed: ucx/stream_control
  /** Notes that an endpoint was closed here. @param peer as for {@linkcode made} */
  closed(endpoint: bigint, peer: number | null): void {
    remember(this.#gone, endpoint, peer);
  }
}

// law ucx/remember: ucx/byte_stream, ucx/stream_control
/** Adds an entry as the newest, and forgets the oldest if there are more than {@linkcode maxEarly}. */
function remember<V>(entries: Map<bigint, V>, endpoint: bigint, value: V): void {
  entries.delete(endpoint);
  entries.set(endpoint, value);
  const [oldest] = entries.size > maxEarly ? entries.keys() : [];
  if (oldest !== undefined) entries.delete(oldest);
}
