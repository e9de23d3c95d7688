/**
 * Receiving messages of several parts, one at a time of those that can match the same message.
 *
 * @module
 */
import { ucs_status_t } from "../../bindings/ucp_types.ts";
import type { OptionNames } from "../layout/mod.ts";
import { abortable } from "../unix/mod.ts";
import type { StridedMemoryView } from "../view/mod.ts";
import { checkLimitNumbers } from "./active_messages/message_limits.ts";
import { UcxError } from "./error.ts";
import { checkLimits, limitOptionNames, timeLimit } from "./limit.ts";
import { isKnown } from "./memory_route.ts";
import { type Part, partHeaderBytes, readPartHeader } from "./message_parts.ts";
import { NewMemory, placeOptionNames, type PlaceOptions } from "./new_memory.ts";
import type { Owner } from "./operation.ts";
import type { PoolStaging } from "./pool_staging.ts";
import type { Received, ReceiveOptions, Receiver } from "./receiver.ts";
import { everyBit, type Match, plainTags, type TagRule } from "./tag.ts";

/** Options of {@linkcode UcxWorker.recvMany}. */
export interface ReceiveManyOptions extends ReceiveOptions, PlaceOptions {
  /** The maximum size of all parts, in bytes; more is UCS_ERR_EXCEEDS_LIMIT. Default: as many as fit in memory. */
  readonly messageBytes?: number;
}

/** The names of the options. */
export const receiveManyOptionNames: OptionNames<ReceiveManyOptions> = {
  tag: true,
  mask: true,
  exact: true,
  ...limitOptionNames,
  ...placeOptionNames,
  messageBytes: true,
};

/** The parts of a message, as bytes, and the sender's tag. */
export type ReceivedParts = StridedMemoryView<"uint8">[] & { readonly tag: bigint };

/**
 * The most parts that a message may have: their descriptions are kept before any part has arrived, and each takes some
 * hundred bytes, however short the part is.
 */
function maxParts(messageBytes: number): number {
  return Math.min(1_000_000, Math.max(100, messageBytes / 64));
}

/** For how long at most the next part of a message that is refused is waited for, in milliseconds. */
const patience = 1000;

function exceedsLimit(bytes: number, parts: number, maxBytes: number): UcxError {
  const message = `The other side has sent ${bytes} bytes in ${parts} parts, but at most ${maxBytes} are accepted`;
  return new UcxError("ucp_tag_recv_nbx", ucs_status_t.UCS_ERR_EXCEEDS_LIMIT, message);
}

/** Receives the messages of a worker that have several parts. */
export class PartsReceiver {
  readonly #receiver: Pick<Receiver, "recv">;
  readonly #cuda: PoolStaging | null;
  readonly #turns = new ReceiveTurns();

  constructor(receiver: Pick<Receiver, "recv">, cuda: PoolStaging | null) {
    this.#receiver = receiver;
    this.#cuda = cuda;
  }

  // law ucx/PartsReceiver.recv: ucx/message_parts, ucx/limits
  /**
   * Receives messages of several parts, one at a time of those that can match the same message: the parts of one have
   * the tag of the next one's header.
   *
   * @param ownerOf what its receives end with: asked again in its turn, as the message may have been an earlier one's
   * @param maxBytes the maximum size of all parts of a message, in bytes
   */
  async recv(
    options: ReceiveManyOptions,
    ownerOf: () => Owner | null,
    tags: TagRule,
    maxBytes: number,
  ): Promise<ReceivedParts> {
    const match: Match = { tag: tags.toReceive(options), mask: options.mask ?? everyBit };
    checkLimits(options);
    const { messageBytes = Infinity } = options;
    checkLimitNumbers({ messageBytes });
    const memory = new NewMemory(options);
    const { signal, clear } = timeLimit("ucp_tag_recv_nbx", options, ownerOf()?.over);
    const { before, pass } = this.#turns.take(match);
    let parts: Promise<unknown> | undefined;
    try {
      if (before !== undefined) await abortable(before, signal);
      const owner = ownerOf();
      const header = new Uint8Array(new ArrayBuffer(partHeaderBytes));
      const limits = signal === undefined ? {} : { signal };
      const first = await this.#receiver.recv(header, { ...match, ...limits }, owner, plainTags);
      // Its parts are received even if the limits end this before they arrive: otherwise the next receive for the tag
      // would take them for messages.
      const limit = Math.min(maxBytes, messageBytes);
      let discarded: Promise<void> | undefined;
      const received = this.#recvParts(header, first, memory, owner, limit, (all) => discarded = all);
      parts = Promise.allSettled([received]).then(() => discarded);
      return await abortable(received, signal).catch((error) => {
        received.then((views) => views.forEach((view) => view.close()), () => {});
        throw error;
      });
    } finally {
      clear();
      pass(parts);
    }
  }

  // law ucx/PartsReceiver.recvParts: ucx/message_parts, ucx/limits
  /**
   * Receives the parts that a header describes, and tells the sender's tag.
   *
   * @param discarding receives what settles when the parts of a message that is refused have been discarded: the next
   *   receive for the tag would take them for messages
   */
  async #recvParts(
    header: Uint8Array<ArrayBuffer>,
    { length, tag }: Received,
    memory: NewMemory,
    owner: Owner | null,
    maxBytes: number,
    discarding: (discarded: Promise<void>) => void,
  ): Promise<ReceivedParts> {
    const fromSender = { tag, mask: everyBit };
    const parts: Part[] = [];
    let read = readPartHeader(header, length);
    for (let total = 0;;) {
      parts.push(...read.parts);
      total = read.parts.reduce((sum, { bytes }) => sum + bytes, total);
      if (total > Math.min(maxBytes, Number.MAX_SAFE_INTEGER) || parts.length > maxParts(maxBytes)) {
        discarding(this.#discard(parts.length, read.hasNext, fromSender, owner));
        throw exceedsLimit(total, parts.length, maxBytes);
      }
      if (!read.hasNext) break;
      const received = await this.#receiver.recv(header, fromSender, owner, plainTags);
      read = readPartHeader(header, received.length);
    }
    const views: StridedMemoryView<"uint8">[] = [];
    try {
      for (const { bytes } of parts) views.push(memory.bytes(bytes));
    } catch (error) {
      for (const view of views) view.close();
      discarding(this.#discard(parts.length, false, fromSender, owner));
      throw error;
    }
    try {
      const arrived = await Promise.allSettled(views.map((view) =>
        memory.receive(
          view,
          isKnown(view.buffer, this.#cuda),
          (into) => this.#receiver.recv(into, fromSender, owner, plainTags),
        )
      ));
      arrived.forEach((part, i) => {
        if (part.status === "rejected") throw part.reason;
        const { bytes } = parts[i] ?? { bytes: 0 };
        if (part.value.length !== bytes) {
          throw new TypeError(`Cannot receive parts: expected one of ${bytes} bytes, got ${part.value.length}`);
        }
      });
      return Object.assign(views, { tag });
    } catch (error) {
      for (const view of views) view.close();
      throw error;
    }
  }

  // law ucx/PartsReceiver.discard: ucx/message_parts, ucx/limits
  /**
   * Consumes the rest of a message that is refused: its other headers, and its parts, which follow it at once. A peer
   * that has announced more than it sends, or whose messages a limit drops, is not waited for.
   */
  async #discard(count: number, hasNext: boolean, fromSender: Match, owner: Owner | null): Promise<void> {
    const options = { ...fromSender, timeout: patience };
    const header = new Uint8Array(new ArrayBuffer(partHeaderBytes));
    while (hasNext) {
      const { length } = await this.#receiver.recv(header, options, owner, plainTags);
      const read = readPartHeader(header, length);
      count += read.parts.length;
      hasNext = read.hasNext;
    }
    const nothing = new Uint8Array(new ArrayBuffer(0));
    for (; count > 0; count--) {
      await this.#receiver.recv(nothing, options, owner, plainTags).catch((error: unknown) => {
        const isTooLong = error instanceof UcxError && error.status === ucs_status_t.UCS_ERR_MESSAGE_TRUNCATED;
        if (!isTooLong) throw error; // a message that is too long is consumed
      });
    }
  }
}

/** A receive that has its turn, or waits for it. */
interface Turn extends Match {
  /** Settles when it and all turns before it are over. */
  readonly over: Promise<void>;
}

/**
 * Serializes the receives of a worker: two that could match the same message never run at once, because a part of one
 * would be taken for the header of the other.
 */
class ReceiveTurns {
  /** For each tag that is compared in all bits, the last receive. */
  readonly #exact = new Map<bigint, Turn>();
  /** For each other tag and mask, the last receive. */
  readonly #masked = new Map<string, Turn>();

  // law ucx/ReceiveTurns.take: ucx/message_parts, ucx/limits
  /**
   * Takes the next turn.
   *
   * @returns what it has to wait for, if anything, and a function that passes the turn on when `after` has settled
   */
  take(
    { tag, mask }: Match,
  ): { before: Promise<unknown> | undefined; pass(after: Promise<unknown> | undefined): void } {
    const isExact = mask === everyBit;
    const { promise: over, resolve } = Promise.withResolvers<void>();
    const turn: Turn = { tag, mask, over };
    const key = isExact ? "" : `${tag & mask} ${mask}`;
    const same = isExact ? this.#exact.get(tag) : undefined;
    const rivals = [
      ...(same === undefined ? [] : [same]),
      ...(isExact ? [] : this.#exact.values()),
      ...this.#masked.values(),
    ].filter((other) => ((other.tag ^ tag) & other.mask & mask) === 0n);
    if (isExact) this.#exact.set(tag, turn);
    else this.#masked.set(key, turn);
    const before = rivals.length === 0 ? undefined : Promise.all(rivals.map((other) => other.over));
    const pass = (after: Promise<unknown> | undefined) => {
      void Promise.allSettled([before, after]).then(() => {
        if (this.#exact.get(tag) === turn) this.#exact.delete(tag);
        if (this.#masked.get(key) === turn) this.#masked.delete(key);
        resolve();
      });
    };
    return { before, pass };
  }
}
