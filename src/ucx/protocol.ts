/**
 * What two sides must agree on beyond UCX: the wire format of tags and of active message headers, and how a new
 * connection begins.
 *
 * @module
 */
import { type ActiveMessageFormat, plainMessages } from "./active_messages/active_messages.ts";
import type { LimitOptions } from "./limit.ts";
import type { RawStream } from "./raw_stream.ts";
import { plainTags, type TagRule } from "./tag.ts";

/** The two ends of a connection by host and port. */
type Side = "listener" | "client";

/** What Causeway's own protocol adds to UCX, by active messages that another program does not handle. */
export type Extra = "sendArray" | "recvArray" | "readable" | "writable";

/** A worker's protocol with its peers. */
export interface Protocol {
  /** Tags of messages that the worker receives from any peer. */
  readonly workerTags: TagRule;
  /** Tags of an endpoint that has not greeted. */
  readonly endpointTags: TagRule;
  readonly messages: ActiveMessageFormat;
  /** The greeting of a connection by host and port; null if there is none. */
  greet: Greeting | null;
  /** @throws {TypeError} if the other side does not know it; the message says what to use instead */
  checkExtra(name: Extra): void;
}

/**
 * Identifies both sides to each other over a new connection.
 *
 * @returns the tags of the endpoint
 */
export type Greeting = (
  stream: Pick<RawStream, "send" | "recvAll">,
  side: Side,
  limits: LimitOptions,
) => Promise<TagRule>;

// law ucx/confirm: ucx/secret
/**
 * Confirms to both sides that they reach each other, where they have only exchanged addresses: one byte each way. The
 * client begins, because it creates its endpoint last.
 */
export const confirm: Greeting = async (stream, side, limits) => {
  const byte = new Uint8Array(new ArrayBuffer(1));
  if (side === "client") await stream.send(byte, limits);
  await stream.recvAll(byte, limits);
  if (side === "listener") await stream.send(byte, limits);
  return plainTags;
};

/** Causeway's own protocol: tags and headers go over the wire unchanged. */
export const causewayProtocol: Protocol = {
  workerTags: plainTags,
  endpointTags: plainTags,
  messages: plainMessages,
  greet: null,
  checkExtra() {},
};
