/**
 * What UCX's documentation says of tag matching, as a function of all that has happened: no code of it is shared with
 * what it judges.
 *
 * @module
 */

/** A message that has come. */
export interface TagMessage {
  readonly index: number;
  readonly tag: bigint;
  readonly size: number;
}

/** A receive for what fits its tag in the bits of its mask. */
export interface TagReceive {
  readonly tag: bigint;
  readonly mask: bigint;
}

/** Something that happens to the queues of one worker. */
export type TagEvent<R extends TagReceive> =
  | { readonly kind: "come"; readonly message: TagMessage }
  | { readonly kind: "post"; readonly receive: R }
  /** Somebody takes the earliest message that fits, to receive it later. */
  | { readonly kind: "take"; readonly match: TagReceive }
  /** A receive is given up. One that has a message already keeps it from all others. */
  | { readonly kind: "withdraw"; readonly receive: R };

/** How the queues are after some events. */
export interface TagState<R extends TagReceive> {
  /** Messages that nobody has, the earliest first. */
  readonly unexpected: readonly TagMessage[];
  /** Receives that have no message, the earliest first. */
  readonly posted: readonly R[];
  readonly received: ReadonlyMap<R, TagMessage>;
}

/** Whether a message is one that a receive asks for. */
export function fits({ tag, mask }: TagReceive, message: TagMessage): boolean {
  return ((tag ^ message.tag) & mask) === 0n;
}

/**
 * A message goes to the earliest receive that it fits, else it waits; a receive gets the earliest message that fits it,
 * else it waits.
 */
export function stateAfter<R extends TagReceive>(events: readonly TagEvent<R>[]): TagState<R> {
  let unexpected: TagMessage[] = [];
  let posted: R[] = [];
  const received = new Map<R, TagMessage>();
  for (const event of events) {
    if (event.kind === "come") {
      const receive = posted.find((one) => fits(one, event.message));
      if (receive === undefined) unexpected.push(event.message);
      else received.set(receive, event.message);
      posted = posted.filter((one) => one !== receive);
    } else if (event.kind === "withdraw") posted = posted.filter((one) => one !== event.receive);
    else {
      const wanted = event.kind === "post" ? event.receive : event.match;
      const message = unexpected.find((one) => fits(wanted, one));
      unexpected = unexpected.filter((one) => one !== message);
      if (event.kind === "take") continue;
      if (message === undefined) posted.push(event.receive);
      else received.set(event.receive, message);
    }
  }
  return { unexpected, posted, received };
}
