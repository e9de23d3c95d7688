/**
 * UCX's documented tag matching, as a function of the whole history: it shares no code with the code under test.
 *
 * @module
 */

/** A message that has arrived. */
export interface TagMessage {
  readonly index: number;
  readonly tag: bigint;
  readonly size: number;
}

/** A receive for messages that match its tag in the bits of its mask. */
export interface TagReceive {
  readonly tag: bigint;
  readonly mask: bigint;
}

/** An event on the queues of one worker. */
export type TagEvent<R extends TagReceive> =
  | { readonly kind: "arrive"; readonly message: TagMessage }
  | { readonly kind: "post"; readonly receive: R }
  /** The earliest matching message is taken, to be received later. */
  | { readonly kind: "take"; readonly match: TagReceive }
  /** A receive is cancelled. If it already has a message, no other receive gets that message. */
  | { readonly kind: "withdraw"; readonly receive: R };

/** The state of the queues after some events. */
export interface TagState<R extends TagReceive> {
  /** Messages without a receive, the earliest first. */
  readonly unexpected: readonly TagMessage[];
  /** Receives without a message, the earliest first. */
  readonly posted: readonly R[];
  readonly received: ReadonlyMap<R, TagMessage>;
}

/** Whether a message matches a receive. */
export function fits({ tag, mask }: TagReceive, message: TagMessage): boolean {
  return ((tag ^ message.tag) & mask) === 0n;
}

/**
 * A message goes to the earliest matching receive, else it waits; a receive gets the earliest matching message, else it
 * waits.
 */
export function stateAfter<R extends TagReceive>(events: readonly TagEvent<R>[]): TagState<R> {
  let unexpected: TagMessage[] = [];
  let posted: R[] = [];
  const received = new Map<R, TagMessage>();
  for (const event of events) {
    if (event.kind === "arrive") {
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
