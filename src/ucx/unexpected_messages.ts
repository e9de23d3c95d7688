/**
 * Unexpected messages: tagged ones that have arrived without a receive that matches, for a worker that limits them.
 *
 * UCX keeps them itself, has no setting for how many, and does not count them. So they are taken from it as they
 * arrive, in order, and receives look here first: what is here arrived before what UCX has.
 *
 * @module
 */
import { ucp_tag_recv_info_t } from "../../bindings/ucp_types.ts";
import { NativeArena, type StructView } from "../ffi/mod.ts";
import type { Progress } from "./progress.ts";
import { everyBit } from "./tag.ts";
import type { WorkerResources } from "./worker_resources.ts";

/** A message that has arrived. */
export interface Arrived {
  /** UCX's handle. */
  readonly handle: bigint;
  /** The sender's tag. */
  readonly tag: bigint;
  /** Size in bytes. */
  readonly length: number;
}

/** The messages of one worker that wait for a receive, up to a limit. */
export class UnexpectedMessages {
  readonly #resources: WorkerResources;
  readonly #progress: Progress;
  readonly #limit: number;
  readonly #info: StructView<typeof ucp_tag_recv_info_t>;
  /** In the order of arrival. */
  readonly #waiting = new Set<Arrived>();
  /** The same by their tags: most receives ask for one, and a peer may send many that nobody asks for. */
  readonly #byTag = new Map<bigint, Set<Arrived>>();
  #dropped = 0;
  #isCollecting = false;

  /** @param limit how many may wait: later ones are dropped */
  constructor(resources: WorkerResources, progress: Progress, limit: number) {
    this.#resources = resources;
    this.#progress = progress;
    this.#limit = limit;
    this.#info = resources.adopt(new NativeArena()).struct(ucp_tag_recv_info_t);
    progress.onDriven(() => this.#collect());
  }

  /** How many were dropped. */
  get dropped(): number {
    return this.#dropped;
  }

  // law ucx/UnexpectedMessages.find: ucx/probe, ucx/unexpected_messages
  /** The earliest message that matches, if any. It stays. */
  find(tag: bigint, mask: bigint): Arrived | undefined {
    if (mask === everyBit) return this.#byTag.get(tag)?.values().next().value;
    return this.#waiting.values().find((message) => ((message.tag ^ tag) & mask) === 0n);
  }

  /** As {@linkcode find}, and removes it. The caller receives it, or else it is discarded with the worker. */
  take(tag: bigint, mask: bigint): Arrived | undefined {
    const found = this.find(tag, mask);
    if (found === undefined) return undefined;
    this.#waiting.delete(found);
    const same = this.#byTag.get(found.tag);
    same?.delete(found);
    if (same?.size === 0) this.#byTag.delete(found.tag);
    return found;
  }

  // law ucx/UnexpectedMessages.collect: ucx/probe, ucx/unexpected_messages
  /** Takes all messages that UCX has. */
  #collect(): void {
    if (this.#isCollecting) return; // dropping a message looks for completed operations, too
    this.#isCollecting = true;
    const { ucp, handle: worker, taken } = this.#resources;
    const { ucp_tag_probe_nb } = ucp.tag;
    const info = this.#info;
    for (;;) {
      const handle = ucp_tag_probe_nb(worker, 0n, 0n, 1, info.$address);
      if (handle === 0n) break;
      if (this.#waiting.size < this.#limit) {
        taken.add(handle);
        const message = { handle, tag: info.sender_tag, length: info.length };
        this.#waiting.add(message);
        this.#byTag.getOrInsertComputed(message.tag, () => new Set()).add(message);
      } else {
        this.#dropped++;
        this.#resources.discard(this.#progress, handle);
      }
    }
    this.#isCollecting = false;
  }
}
