/**
 * Listening for other programs, by host and port.
 *
 * @module
 */
import { ffiPort } from "../../ffi/mod.ts";
import { checkMade, checkOptions, none, type OptionNames, show, showAs } from "../../layout/mod.ts";
import type { Acceptor } from "./acceptor.ts";
import type { UcxEndpoint } from "../endpoint.ts";
import {
  checkLimitKinds,
  checkTimeout,
  greetingLimit,
  limitOptionNames,
  type LimitOptions,
  timeLimit,
} from "../limit.ts";
import { checkLimitNumbers, messageLimitNames, type MessageLimits } from "../active_messages/message_limits.ts";
import type { Protocol } from "../protocol.ts";
import { type Secret, takeSecret } from "./secret_handshake.ts";
import { checkPort, numericHost } from "./socket_address.ts";
import type { PendingConnections } from "./pending_connections.ts";

/**
 * How much a listener accepts. A connection that sends more or larger messages than its {@linkcode MessageLimits} allow
 * is closed, with UCS_ERR_EXCEEDS_LIMIT; limits that are not given default to the worker's.
 */
export interface ListenLimits extends MessageLimits {
  /** Connections of this listener that may be open at a time; others are refused. Default 65,536. */
  readonly connections?: number;
  /** With a secret: how many handshakes may run at a time; beyond that the oldest is dropped. Default 256. */
  readonly handshakes?: number;
}

/** Options of {@linkcode UcxWorker.listen}. */
export interface ListenOptions {
  /**
   * The address to listen on: that of one interface of this machine, or `0.0.0.0` or `::` for all of them, or
   * `localhost`. Other names are not resolved. Default `127.0.0.1`, which only programs on this machine can reach.
   */
  readonly host?: string;
  /** The port. Default 0: any free one. */
  readonly port?: number;
  /**
   * How many connections may wait to be taken; beyond that, others are rejected. Connections that have yet to greet
   * count, too, and are dropped when there is no room for another one. Default 1024.
   */
  readonly backlog?: number;
  /**
   * Whether endpoints detect the end of the other side, see {@linkcode ConnectOptions.errors}; clients need the same.
   * Default `peer`.
   */
  readonly errors?: "peer" | "none";
  /**
   * The secret that a connecting peer has to know, see {@linkcode ListenerAddress.secret}. Both sides prove it to each
   * other before either learns the address of the other's worker. Bytes are copied. Default none: any peer that reaches
   * the port may connect; `undefined` is an error, as it may be an unset environment variable.
   */
  readonly secret?: Secret;
  /**
   * With a secret, or the protocol `ucxx`: how long a new connection may take to begin, in milliseconds, before it is
   * refused. Default 5000.
   */
  readonly timeout?: number;
  /** How much the listener accepts. */
  readonly limits?: ListenLimits;
}

const listenOptionNames: OptionNames<ListenOptions> = {
  host: true,
  port: true,
  backlog: true,
  errors: true,
  secret: true,
  timeout: true,
  limits: true,
};

const limitNames: OptionNames<ListenLimits> = {
  ...messageLimitNames,
  connections: true,
  handshakes: true,
};

// law ucx/checkListenOptions: ucx/listener, ucx/active_messages
/**
 * Checks the options and fills in defaults.
 *
 * @param worker its protocol, the address family that UCX uses, and the default limits
 * @throws {TypeError} for an unknown option, or one that does not apply here
 * @throws {RangeError} if a number is out of range
 */
export function checkListenOptions(
  options: ListenOptions,
  worker: { protocol: Protocol; family: 4 | 6; limits: Required<MessageLimits> },
) {
  const greets = worker.protocol.greet !== null;
  checkOptions(options, listenOptionNames);
  const { port = 0, backlog = 1024, timeout, limits = {} } = options;
  const secret = takeSecret(options);
  const { host: given = secret === null && worker.family === 6 ? "::1" : "127.0.0.1" } = options;
  const host = typeof given === "string" ? numericHost(given, secret === null ? worker.family : 0) : null;
  if (host === null) {
    const shown = typeof given === "string" ? given : show(given);
    throw new TypeError(
      `Cannot listen at ${shown}: expected an address of this machine, 0.0.0.0, :: or localhost. Look the name up first.`,
    );
  }
  checkOptions(limits, limitNames);
  if (!Number.isInteger(backlog) || backlog < 1) {
    throw new RangeError(`Cannot keep ${show(backlog)} connections waiting: expected an integer of at least 1`);
  }
  const { connections = 65_536, handshakes = 256 } = limits;
  const { messages = worker.limits.messages, messageBytes = worker.limits.messageBytes } = limits;
  checkLimitNumbers({ connections, handshakes, messages, messageBytes });
  if (secret !== null && greets) {
    throw new TypeError("Cannot ask for a secret: UCXX has none. Use a worker with Causeway's own protocol.");
  }
  if (timeout !== undefined) {
    checkTimeout(timeout);
    if (secret === null && !greets) {
      throw new TypeError('Cannot limit how long connecting takes: expected a secret or the protocol "ucxx"');
    }
  }
  if (secret === null && limits.handshakes !== undefined) {
    throw new TypeError("Cannot limit handshakes: there are none without a secret");
  }
  checkPort(port);
  const patience = timeout ?? greetingLimit;
  return { host, port, backlog, secret, timeout: patience, connections, handshakes, messages, messageBytes };
}

/** The listeners of this thread that are open. */
const open = new Set<Acceptor>();
let isWatching = false;

// law ucx/closeAtUnload: ucx/reloaded
/** Closes what listens when the program's modules are loaded again: they will want the same port. */
function closeAtUnload(acceptor: Acceptor): void {
  open.add(acceptor);
  if (isWatching) return;
  isWatching = true;
  ffiPort().atUnload(() => open.forEach((one) => one.close()));
}

/**
 * Accepts connections: each is an endpoint, in the order in which they were requested. An open listener keeps the
 * process alive.
 *
 * @example
 * ```ts ignore
 * const listener = worker.listen({ port: 13337 });
 * for await (const endpoint of listener) serve(endpoint);
 * ```
 */
export class UcxListener implements AsyncIterable<UcxEndpoint> {
  /** The numeric address that it listens on. */
  readonly host: string;
  /** The port. */
  readonly port: number;
  readonly #acceptor: Acceptor;
  readonly #pending: PendingConnections;
  readonly #forget: (listener: UcxListener) => void;
  #isClosed = false;

  /** Use {@linkcode UcxWorker.listen}. `forget`: called once, when it is closed. */
  constructor(acceptor: Acceptor, pending: PendingConnections, forget: (listener: UcxListener) => void) {
    checkMade(forget, "UcxListener", "worker.listen()");
    this.#acceptor = acceptor;
    this.#pending = pending;
    this.#forget = forget;
    this.host = acceptor.host;
    this.port = acceptor.port;
    closeAtUnload(acceptor);
  }

  /**
   * How many connections were refused: because there were too many, the peer did not know the secret or greet, or UCX
   * could not connect back.
   */
  get rejected(): number {
    return this.#pending.refused;
  }

  /**
   * The next connection, or null if the listener is closed. Its other side may be gone already, which the endpoint
   * reports (`closed`).
   *
   * @throws {UcxError} UCS_ERR_TIMED_OUT
   */
  async accept(options: LimitOptions = none): Promise<UcxEndpoint | null> {
    checkOptions(options, limitOptionNames);
    checkLimitKinds(options);
    const { signal, clear } = timeLimit("ucp_worker_progress", options);
    return await this.#pending.next(signal).finally(clear);
  }

  /** The connections, until the listener is closed. */
  [Symbol.asyncIterator](): AsyncIterator<UcxEndpoint> {
    return this.#pending.iterate();
  }

  /** Whether it is closed. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  // law ucx/UcxListener.close: ucx/listener, ucx/failing_calls
  /** Accepts no more connections, and closes those not yet taken. Closing twice is harmless. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    try {
      this.#acceptor.close();
    } finally { // nobody goes on waiting for a connection
      open.delete(this.#acceptor);
      this.#forget(this);
      await this.#pending.end();
    }
  }

  /** Accepts no more connections. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  static {
    showAs(UcxListener, (listener) => `at ${listener.host}:${listener.port}${listener.#isClosed ? ", closed" : ""}`);
  }
}
