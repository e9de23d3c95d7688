/**
 * Watches the processes that endpoints lead to, once a second: UCX does not watch all of them.
 *
 * @module
 */
import { nodeBuiltin } from "../ffi/mod.ts";
import type { PeerProcess } from "./process_identity.ts";

/** How often to check, in milliseconds: as often as UCX does, see `config.ts`. */
const interval = 1000;

/** A connection to another process. */
interface Endpoint {
  /** Ends it: the process has ended. */
  lose(): Promise<void>;
}

/** The processes of a worker's endpoints. Does not keep this process alive. */
export class PeerLiveness {
  readonly #peers = new Map<Endpoint, { readonly process: PeerProcess; missed: boolean }>();
  #timer: ReturnType<typeof import("node:timers").setInterval> | undefined;

  // law ucx/PeerLiveness.watch: ucx/peer_liveness
  /** Watches an endpoint from now on, if the process that it leads to can be seen. */
  watch(endpoint: Endpoint, process: PeerProcess | null): void {
    if (process === null) return;
    this.#peers.set(endpoint, { process, missed: false });
    this.#timer ??= nodeBuiltin("node:timers").setInterval(() => this.#poll(), interval).unref();
  }

  // law ucx/PeerLiveness.forget: ucx/peer_liveness
  /** Stops watching an endpoint. */
  forget(endpoint: Endpoint): void {
    this.#peers.delete(endpoint);
    if (this.#peers.size === 0) this.close();
  }

  /** Stops watching all of them. */
  close(): void {
    this.#peers.clear();
    nodeBuiltin("node:timers").clearInterval(this.#timer);
    this.#timer = undefined;
  }

  // law ucx/PeerLiveness.poll: ucx/peer_liveness
  #poll(): void {
    for (const [endpoint, peer] of this.#peers) {
      if (!peer.process.isGone()) continue;
      // UCX goes first: where it watches the peer it reports within the second, and knows more.
      if (peer.missed) endpoint.lose().catch(() => {}); // a close does not fail
      else peer.missed = true;
    }
  }
}
