/**
 * Looks after the processes that endpoints lead to, once a second, for those that UCX does not look after yet.
 *
 * @module
 */
import { nodeBuiltin } from "../ffi/node_builtin.ts";
import type { PeerProcess } from "./process_identity.ts";

/** How often to look, in milliseconds: as often as UCX does, see `config.ts`. */
const interval = 1000;

/** What leads to another process. */
interface Endpoint {
  /** Ends it: the process has gone. */
  lose(): Promise<void>;
}

/** The processes of a worker's endpoints. Does not keep this process alive. */
export class PeerLiveness {
  readonly #peers = new Map<Endpoint, { readonly process: PeerProcess; missed: boolean }>();
  #timer: ReturnType<typeof import("node:timers").setInterval> | undefined;

  /** Looks after an endpoint from now on, if the process that it leads to can be seen. */
  watch(endpoint: Endpoint, process: PeerProcess | null): void {
    if (process === null) return;
    this.#peers.set(endpoint, { process, missed: false });
    this.#timer ??= nodeBuiltin("node:timers").setInterval(() => this.#poll(), interval).unref();
  }

  /** Does so no longer. */
  forget(endpoint: Endpoint): void {
    this.#peers.delete(endpoint);
    if (this.#peers.size === 0) this.close();
  }

  /** Looks after nothing any more. */
  close(): void {
    this.#peers.clear();
    nodeBuiltin("node:timers").clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #poll(): void {
    for (const [endpoint, peer] of this.#peers) {
      if (!peer.process.isGone()) continue;
      // UCX goes first: where it looks after the peer it reports within the second, and knows more.
      if (peer.missed) endpoint.lose().catch(() => {}); // a close does not fail
      else peer.missed = true;
    }
  }
}
