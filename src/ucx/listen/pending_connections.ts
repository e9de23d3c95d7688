/**
 * Connections made to a listener: in order of arrival, up to a limit, with refusals counted.
 *
 * @module
 */
import type { UcxEndpoint } from "../endpoint.ts";
import { MessageQueue } from "../active_messages/message_queue.ts";

/** How many connections a listener accepts. */
export interface ConnectionLimits {
  /** Connections that may wait to be taken. */
  readonly backlog: number;
  /** Connections that may be open at a time. */
  readonly connections: number;
}

/** The connections of one listener. */
export class PendingConnections {
  readonly #limits: ConnectionLimits;
  /** Connections not yet taken. */
  readonly #queue = new MessageQueue<UcxEndpoint>();
  /** Connections that have yet to greet, in order of arrival. */
  readonly #greeting = new Set<UcxEndpoint>();
  readonly #open = new Set<UcxEndpoint>();
  #refused = 0;
  #isOver = false;

  constructor(limits: ConnectionLimits) {
    this.#limits = limits;
  }

  /** How many connections were refused. */
  get refused(): number {
    return this.#refused;
  }

  // law ucx/PendingConnections.hasRoom: ucx/listener, ucx/secret
  /** Whether there is room for another connection. */
  get hasRoom(): boolean {
    const { backlog, connections } = this.#limits;
    return this.#queue.size + this.#greeting.size < backlog && this.#open.size < connections;
  }

  // law ucx/PendingConnections.makeRoom: ucx/ucxx_protocol
  /**
   * Drops the oldest connection that has yet to greet if there is no room otherwise: a silent peer keeps no other out.
   *
   * @returns whether there is room for another connection
   */
  makeRoom(): boolean {
    const [oldest] = this.#greeting;
    if (!this.hasRoom && oldest !== undefined) this.#drop(oldest);
    return this.hasRoom;
  }

  /** Counts a refused connection. */
  refuse(): void {
    this.#refused++;
  }

  /** Adds a connection: at once, or when it has greeted. The others do not wait for it. */
  add(endpoint: UcxEndpoint, greet: ((endpoint: UcxEndpoint) => Promise<void>) | null): void {
    this.#open.add(endpoint);
    endpoint.onVacated(() => this.#open.delete(endpoint));
    if (this.#isOver) void endpoint.close({ force: true });
    else if (greet === null) this.#queue.push(endpoint);
    else void this.#greet(endpoint, greet);
  }

  /** The next connection; null if there will be no more. */
  next(signal?: AbortSignal): Promise<UcxEndpoint | null> {
    return this.#queue.next(signal);
  }

  /** The connections, until there will be no more. */
  iterate(): AsyncIterableIterator<UcxEndpoint> {
    return this.#queue.iterate();
  }

  // law ucx/PendingConnections.end: ucx/listener
  /** Accepts no more connections, and closes those not yet taken. */
  async end(): Promise<void> {
    this.#isOver = true;
    this.#queue.end();
    const left = [...this.#greeting, ...this.#queue.takeAll()];
    await Promise.all(left.map((endpoint) => endpoint.close({ force: true })));
  }

  // law ucx/PendingConnections.greet: ucx/ucxx_protocol
  async #greet(endpoint: UcxEndpoint, greet: (endpoint: UcxEndpoint) => Promise<void>): Promise<void> {
    this.#greeting.add(endpoint);
    try {
      await greet(endpoint);
      if (this.#greeting.delete(endpoint)) this.#queue.push(endpoint); // otherwise it was dropped
    } catch {
      if (this.#greeting.has(endpoint)) this.#drop(endpoint);
    }
  }

  // law ucx/PendingConnections.drop: ucx/ucxx_protocol
  /** Refuses a connection that has not greeted. */
  #drop(endpoint: UcxEndpoint): void {
    this.#greeting.delete(endpoint);
    this.#open.delete(endpoint); // at once, to make room for another
    if (!this.#isOver) this.#refused++;
    void endpoint.close({ force: true });
  }
}
