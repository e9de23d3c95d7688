/**
 * Watches the peer processes of endpoints: UCX does not watch all of them, and does not end everything in flight to
 * those that it does watch.
 *
 * @module
 */
import { FfiError, nodeBuiltin, SystemError } from "../ffi/mod.ts";
import { DescriptorSet, type FileDescriptor } from "../unix/mod.ts";
import type { PeerProcess } from "./process_identity.ts";

/** How long UCX has to report that a peer is gone, in milliseconds: its own checking interval, see `config.ts`. */
const grace = 1000;

/** A connection to another process. */
interface Endpoint {
  /** Called once the process has ended. */
  processEnded(): void;
  /** Ends it, and everything in flight through it: the process has ended, or the connection has failed. */
  lose(): Promise<void>;
}

/** The peer of one or more endpoints. */
interface Peer {
  readonly isGone: () => boolean;
  readonly endpoints: Set<Endpoint>;
  /** Readable once it has ended; null where the system has no such descriptors, or its end was already detected. */
  descriptor: FileDescriptor | null;
  /** When its end was detected, by `performance.now()`. */
  goneSince: number;
}

/** Sleeps on descriptors, calls back when one is readable, and finally closes them: `Progress`. */
interface Sleeper {
  watchDescriptor(descriptors: DescriptorSet, onReadable: () => void): void;
}

/** The peer processes of a worker's endpoints. Does not keep this process alive. */
export class PeerLiveness {
  readonly #sleeper: Sleeper;
  readonly #onUnseen: () => void;
  readonly #peers = new Map<string | Endpoint, Peer>();
  readonly #keys = new Map<Endpoint, string | Endpoint>();
  #descriptors: DescriptorSet | undefined;
  /** How many peers have no descriptor. */
  #blind = 0;
  /** Set while a process is checked without a descriptor. */
  #timer: ReturnType<typeof import("node:timers").setTimeout> | undefined;

  /** @param onUnseen called when UCX's own checks matter: a peer is gone */
  constructor(sleeper: Sleeper, onUnseen: () => void) {
    this.#sleeper = sleeper;
    this.#onUnseen = onUnseen;
  }

  /** Whether a descriptor reports the end of an endpoint's peer. */
  sees(endpoint: Endpoint): boolean {
    const key = this.#keys.get(endpoint);
    return key !== undefined && (this.#peers.get(key)?.descriptor ?? null) !== null;
  }

  // law ucx/PeerLiveness.watch: ucx/peer_liveness
  /** Watches an endpoint from now on, if its peer process is visible. */
  watch(endpoint: Endpoint, process: Pick<PeerProcess, "key" | "isGone" | "open"> | null): void {
    if (process === null) return;
    this.#keys.set(endpoint, process.key);
    const known = this.#peers.get(process.key);
    if (known !== undefined) return void known.endpoints.add(endpoint);
    const descriptor = this.#waitedFor(process.open());
    const isGone = () => process.isGone();
    this.#peers.set(process.key, { isGone, endpoints: new Set([endpoint]), descriptor, goneSince: Infinity });
    if (descriptor !== null) return;
    this.#blind++;
    this.#lookLater();
  }

  /** A descriptor for which the worker wakes up from now on; null if there is none, or the system refuses that. */
  #waitedFor(descriptor: FileDescriptor | null): FileDescriptor | null {
    if (descriptor === null) return null;
    try {
      this.#descriptorSet().add(descriptor.number);
      return descriptor;
    } catch (error) {
      descriptor.close();
      if (error instanceof SystemError || error instanceof FfiError) return null; // its end is looked for
      throw error;
    }
  }

  // law ucx/PeerLiveness.failed: ucx/peer_liveness
  /** Ends an endpoint whose failure UCX reported, after the time that UCX has to end what is in flight. */
  failed(endpoint: Endpoint): void {
    this.forget(endpoint);
    this.#keys.set(endpoint, endpoint);
    const endpoints = new Set([endpoint]);
    this.#peers.set(endpoint, { isGone: () => true, endpoints, descriptor: null, goneSince: performance.now() });
    this.#blind++;
    this.#onUnseen();
    this.#lookLater();
  }

  // law ucx/PeerLiveness.forget: ucx/peer_liveness
  /** Stops watching an endpoint. */
  forget(endpoint: Endpoint): void {
    const key = this.#keys.get(endpoint);
    if (key === undefined) return;
    this.#keys.delete(endpoint);
    const peer = this.#peers.get(key);
    peer?.endpoints.delete(endpoint);
    if (peer?.endpoints.size !== 0) return;
    if (peer.descriptor === null) this.#blind--;
    else peer.descriptor.close();
    this.#peers.delete(key);
    if (this.#peers.size > 0) return;
    nodeBuiltin("node:timers").clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** Stops watching all endpoints. */
  close(): void {
    for (const endpoint of [...this.#keys.keys()]) this.forget(endpoint);
  }

  // law ucx/PeerLiveness.poll: ucx/peer_liveness
  /** Checks all peers. Called when one has ended, and periodically by a worker that does not sleep. */
  poll(): void {
    if (this.#blind === 0 && !this.#descriptors?.hasReadable()) return;
    const now = performance.now();
    for (const peer of this.#peers.values()) {
      if (peer.goneSince === Infinity && peer.isGone()) {
        peer.goneSince = now;
        if (peer.descriptor !== null) this.#blind++;
        peer.descriptor?.close(); // it stays readable from now on
        peer.descriptor = null;
        this.#onUnseen();
        for (const endpoint of peer.endpoints) endpoint.processEnded();
      }
      // UCX goes first: where it watches the peer it reports within the second, and knows more.
      if (now - peer.goneSince < grace) continue;
      for (const endpoint of peer.endpoints) endpoint.lose().catch(() => {}); // a close does not fail
    }
    if (this.#blind > 0) this.#lookLater();
  }

  #descriptorSet(): DescriptorSet {
    if (this.#descriptors === undefined) {
      this.#descriptors = new DescriptorSet();
      this.#sleeper.watchDescriptor(this.#descriptors, () => this.poll());
    }
    return this.#descriptors;
  }

  #lookLater(): void {
    this.#timer ??= lookAfter(new WeakRef(this));
  }

  /** Checks processes without a descriptor, when the timer fires. */
  look(): void {
    this.#timer = undefined;
    this.poll();
  }
}

/** A separate function, so that a worker that was dropped meanwhile can be collected. */
function lookAfter(peers: WeakRef<PeerLiveness>): ReturnType<typeof import("node:timers").setTimeout> {
  return nodeBuiltin("node:timers").setTimeout(() => peers.deref()?.look(), grace + 10).unref();
}
