/**
 * What two sides have to agree on beyond UCX: how tags and the headers of active messages go over the wire, and what a
 * new connection begins with.
 *
 * @module
 */
import { type ActiveMessageFormat, plainMessages } from "./message/active_messages.ts";
import type { LimitOptions } from "./limit.ts";
import type { RawStream } from "./raw_stream.ts";
import { plainTags, type TagRule } from "./tag.ts";

/** The two ends of a connection by host and port. */
type Side = "listener" | "client";

/** How a worker speaks to others. */
export interface Protocol {
  /** Tags of what the worker receives from anybody. */
  readonly workerTags: TagRule;
  /** Tags of an endpoint that has not greeted. */
  readonly endpointTags: TagRule;
  readonly messages: ActiveMessageFormat;
  /** How a connection by host and port begins; null if nobody says anything. */
  greet: Greeting | null;
}

/**
 * Says who is here over a new connection, and learns who is there.
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
 * Has both sides know that they reach each other, where they have only told each other how: a byte and another one. The
 * client begins, for it is the last to make its endpoint.
 */
export const confirm: Greeting = async (stream, side, limits) => {
  const byte = new Uint8Array(new ArrayBuffer(1));
  if (side === "client") await stream.send(byte, limits);
  await stream.recvAll(byte, limits);
  if (side === "listener") await stream.send(byte, limits);
  return plainTags;
};

/** Causeway's own: tags and headers are on the wire what the program gave. */
export const causewayProtocol: Protocol = {
  workerTags: plainTags,
  endpointTags: plainTags,
  messages: plainMessages,
  greet: null,
};
