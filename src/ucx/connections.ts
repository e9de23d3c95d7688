/**
 * The connections of a worker: its listeners, and its endpoints to addresses, to listeners and to connecting peers.
 *
 * @module
 */
import {
  UCP_EP_PARAMS_FIELD,
  UCP_EP_PARAMS_FLAGS,
  ucp_ep_params_t,
  UCP_ERR_HANDLING_MODE,
  ucs_status_t,
} from "../../bindings/ucp_types.ts";
import { ffiPort, NativeArena, type NativeCallback } from "../ffi/mod.ts";
import { checkOptions, isNameIn, none, type OptionNames, show } from "../layout/mod.ts";
import { abortable, checkDescriptorsLeft, keepFromChildren } from "../unix/mod.ts";
import { checkOf, isIntact, processOf, versionOf } from "./address.ts";
import { checkVersions, type ConnectAttempt, explainFailure } from "./listen/connect_failure.ts";
import { type EndpointContext, UcxEndpoint } from "./endpoint.ts";
import { advice, checkStatus, UcxError } from "./error.ts";
import { KeepaliveTimer } from "./keepalive_timer.ts";
import { checkLimits, greetingLimit, type LimitOptions, timeLimit } from "./limit.ts";
import { checkListenOptions, type ListenOptions, UcxListener } from "./listen/listener.ts";
import type { MessageLimits } from "./active_messages/message_limits.ts";
import { listenNatively } from "./listen/native_acceptor.ts";
import { PeerLiveness } from "./peer_liveness.ts";
import { isOwn, PeerProcess } from "./process_identity.ts";
import { connectWithSecret, listenWithSecret } from "./listen/secret_acceptor.ts";
import { type Secret, takeSecret } from "./listen/secret_handshake.ts";
import {
  checkFamily,
  checkPort,
  type HostAndPort,
  lookUp,
  type SocketAddress,
  writeSocketAddress,
} from "./listen/socket_address.ts";
import { isKey } from "./remote_memory.ts";
import { writeFields } from "./struct_fields.ts";
import { UnreportedPeers } from "./unreported_peers.ts";
import { PendingConnections } from "./listen/pending_connections.ts";

/** Where a worker listens, for {@linkcode UcxWorker.connect}. */
export interface ListenerAddress extends HostAndPort {
  /**
   * The secret that the listener requires, if it does: the same text or bytes. An eavesdropper cannot guess a long
   * random one. Both sides prove to each other that they know it, over a separate TCP connection; nothing is encrypted.
   * Bytes are copied. `undefined` is an error, as it may be an unset environment variable: omit the property if there
   * is no secret.
   */
  readonly secret?: Secret;
}

const listenerAddressNames: OptionNames<ListenerAddress> = { host: true, port: true, secret: true };

// law ucx/checkListenerAddress: ucx/connect_input, ucx/secret
/** Also finds a misspelled property: a secret that is misspelled would be none. */
function checkListenerAddress(to: ListenerAddress): void {
  if (typeof to !== "object" || to === null) {
    throw new TypeError(
      "Cannot connect: expected the bytes of another worker's address, or { host, port } of a listener, got " +
        show(to),
    );
  }
  if (!(to instanceof UcxListener)) checkNames(to);
  if (to.host === undefined || to.port === undefined) {
    throw new TypeError(
      `Cannot connect: expected { host, port } of a listener, got { ${Object.keys(to).join(", ")} }`,
    );
  }
  if (typeof to.host !== "string" || to.host === "") {
    throw new TypeError(`Cannot connect: expected host to be a name or a numeric address, got ${show(to.host)}`);
  }
  checkPort(to.port);
}

function checkNames(to: ListenerAddress): void {
  const misplaced = Object.keys(to).find((name) => name in connectOptionNames);
  if (misplaced === undefined) return checkOptions(to, listenerAddressNames);
  throw new TypeError(
    `Cannot connect: ${misplaced} is an option. Pass it second: connect({ host, port }, { ${misplaced} })`,
  );
}

/** Options of {@linkcode UcxWorker.connect}. */
export interface ConnectOptions {
  /**
   * Accepts the address of a worker that is not Causeway's, as UCX wrote it, or of a version of UCX that does not
   * understand this one. Damage then goes undetected, and UCX aborts the process over a damaged address. For addresses
   * only. Default false.
   */
  readonly unchecked?: boolean;
  /**
   * `peer`: sends to a process that has ended fail, and so does the endpoint. `none`: the end of the peer goes
   * undetected, and large messages between processes on one machine may be copied once (CMA), which UCX does not do
   * otherwise. It must be the listener's, too: otherwise UCX refuses the connection. Default `peer`.
   */
  readonly errors?: "peer" | "none";
  /**
   * Cancels the attempt; the promise is then rejected with the signal's reason. Connecting by a worker's address does
   * not wait: there the signal matters only if it is already aborted.
   */
  readonly signal?: AbortSignal | undefined;
  /**
   * The same after this many milliseconds, with UCS_ERR_TIMED_OUT. Default 5000; `Infinity`: no limit. Connecting by a
   * worker's address takes no time.
   */
  readonly timeout?: number;
}

const connectOptionNames: OptionNames<ConnectOptions> = { unchecked: true, errors: true, signal: true, timeout: true };

const errorModes = { peer: UCP_ERR_HANDLING_MODE.PEER, none: UCP_ERR_HANDLING_MODE.NONE } as const;

/** How an endpoint is created. */
interface EndpointParameters {
  readonly err_mode: number;
  readonly address?: bigint;
  readonly flags?: number;
  readonly sockaddr?: SocketAddress;
  readonly conn_request?: bigint;
}

/** How to connect to a worker's address. */
interface AddressOptions {
  readonly unchecked?: boolean;
  readonly limits?: Required<MessageLimits>;
  /** Whether the other side creates an endpoint for this one. */
  readonly isPaired?: boolean;
}

/** What is known about the peer of an endpoint. */
interface EndpointPeer {
  readonly limits?: Required<MessageLimits>;
  /** The process to watch, if it is visible and UCX may not watch it. */
  readonly process?: PeerProcess | null;
  /** Whether it is in this process. */
  readonly isHere?: boolean;
  /** The checksum of its worker's address. */
  readonly check?: number | null;
  /** Whether the other side creates an endpoint for this one, by this worker's address. */
  readonly isPaired?: boolean;
}

/** How many descriptors UCX may need to connect. Without them it reports an end of the other side, or nothing. */
const descriptorsOfConnection = 8;

/** What it usually means that UCX does not support an endpoint. */
const otherErrors = "If that worker is connected to this one already, both sides must take the same `errors`";

function checkErrors(errors: ConnectOptions["errors"] = "peer"): number {
  if (isNameIn(errorModes, errors)) return errorModes[errors];
  throw new RangeError(`Cannot handle errors ${show(errors)}: expected peer or none`);
}

/** What connections need from their worker. */
export interface ConnectionsContext
  extends Omit<EndpointContext, "forget" | "handlesErrors" | "isByHost" | "isPaired" | "isConnecting"> {
  /** Called when an endpoint with this handle exists. @param peer the checksum of its worker's address, if known */
  made(endpoint: bigint, peer: number | null): void;
  /** Called when there is none with this handle any more. */
  closed(endpoint: bigint, peer: number | null): void;
  /** The address family of UCX's TCP connections. */
  readonly family: 4 | 6;
  /** The UCX version. */
  readonly version: string;
  /** The worker's handle. @throws {TypeError} if it is closed */
  open(doing: string): bigint;
}

/**
 * One callback for all endpoints of a worker, as long as its connections live. UCX calls it inside ucp_worker_progress,
 * on this thread.
 */
function callOnError(connections: WeakRef<Connections>): NativeCallback {
  return ffiPort().callback({ args: ["ptr", "ptr", "i8"], returns: "void" }, (_, handle, status) => {
    connections.deref()?.failed(handle, status);
  });
}

/** The endpoints and listeners of one worker. */
export class Connections {
  readonly #context: ConnectionsContext;
  readonly #endpoints = new Map<bigint, UcxEndpoint>();
  readonly #listeners = new Set<UcxListener>();
  readonly #peers: PeerLiveness;
  readonly #unreported: UnreportedPeers<UcxEndpoint>;
  readonly #keepalive: KeepaliveTimer;
  readonly #onError: NativeCallback;

  constructor(context: ConnectionsContext) {
    const { progress } = context;
    this.#context = context;
    this.#keepalive = new KeepaliveTimer(() => progress.descriptor());
    this.#peers = new PeerLiveness(progress, () => this.#keepalive.restart());
    this.#unreported = new UnreportedPeers(context.ucp);
    progress.onLateWake(() => this.#rest());
    this.#onError = context.resources.adopt(callOnError(new WeakRef(this)));
  }

  /**
   * Called when UCX reports a failure, from inside one of its functions. Messages that arrived before, by another
   * transport, are handled first.
   */
  failed(handle: bigint, status: number): void {
    const endpoint = this.#endpoints.get(handle);
    const error = new UcxError("ucp_worker_progress", status, advice(status));
    if (endpoint === undefined) return;
    this.#context.progress.afterNews(() => {
      endpoint.fail(error);
      // UCX 1.13 forgets some sends and flushes of a connection that has failed.
      if (this.#endpoints.get(handle) === endpoint) this.#peers.failed(endpoint);
    });
  }

  /** The endpoint with this UCX handle. */
  find(handle: bigint): UcxEndpoint | undefined {
    return this.#endpoints.get(handle);
  }

  // law ucx/Connections.connect: ucx/connect_input, ucx/ucxx_protocol, ucx/secret, ucx/listener
  /** As {@linkcode UcxWorker.connect}. */
  async connect(to: Uint8Array | ListenerAddress, options: ConnectOptions): Promise<UcxEndpoint> {
    checkOptions(options, connectOptionNames);
    this.#context.open("connect");
    const { errors = "peer", signal, timeout, unchecked } = options;
    const err_mode = checkErrors(errors);
    checkLimits(options);
    if (unchecked !== undefined && typeof unchecked !== "boolean") {
      throw new TypeError(`Expected unchecked to be true or false, got ${show(unchecked)}`);
    }
    if (to instanceof Uint8Array) {
      checkDescriptorsLeft(descriptorsOfConnection, "connect");
      return this.#connectToAddress(to, err_mode, { unchecked: unchecked ?? false });
    }
    checkListenerAddress(to);
    if (unchecked !== undefined) {
      throw new TypeError("Cannot leave a host unchecked: { unchecked } is about the bytes of a worker's address");
    }
    const { version, protocol } = this.#context;
    const greets = protocol.greet !== null;
    const secret = to instanceof UcxListener ? null : takeSecret(to);
    if (greets && secret !== null) throw new TypeError("Cannot prove a secret: UCXX has none");
    checkDescriptorsLeft(descriptorsOfConnection, "connect");
    const limit = timeLimit("ucp_ep_create", {
      ...(signal === undefined ? {} : { signal }),
      timeout: timeout ?? greetingLimit,
    });
    const attempt: ConnectAttempt = {
      to: { host: to.host, port: to.port },
      version,
      greets,
      isGreeting: false,
      errors,
      secret: secret === null ? "none" : "unproved",
      listenersVersion: null,
    };
    try {
      return secret === null
        ? await this.#connectToListener(attempt, err_mode, limit.signal)
        : await this.#connectWithSecret(attempt, secret, err_mode, limit.signal);
    } catch (error) {
      throw explainFailure(error, attempt);
    } finally {
      limit.clear();
    }
  }

  /** Connects to a native UCX listener. */
  async #connectToListener(
    attempt: ConnectAttempt,
    err_mode: number,
    signal: AbortSignal | undefined,
  ): Promise<UcxEndpoint> {
    const { family } = this.#context;
    const { host, port } = attempt.to;
    const address = await abortable(lookUp(host, family), signal);
    checkFamily(address, family);
    using arena = new NativeArena();
    const sockaddr = writeSocketAddress(arena, { host: address, port });
    const flags = UCP_EP_PARAMS_FLAGS.CLIENT_SERVER;
    const endpoint = this.#createEndpoint(arena, { flags, sockaddr, err_mode });
    return await this.#begin(endpoint, async () => {
      await endpoint.established(signal);
      attempt.isGreeting = attempt.greets;
      await endpoint.greet("protocol", "client", signal);
    });
  }

  // law ucx/Connections.connectWithSecret: ucx/secret
  /** Connects to a listener that requires a secret. */
  async #connectWithSecret(
    attempt: ConnectAttempt,
    secret: Secret,
    err_mode: number,
    signal: AbortSignal = new AbortController().signal,
  ): Promise<UcxEndpoint> {
    const own = this.#context.address();
    const { host, port } = attempt.to;
    const to = { host: await abortable(lookUp(host, 0), signal), port };
    const address = await connectWithSecret(to, secret, own, signal);
    attempt.secret = "proved";
    if (isIntact(address)) attempt.listenersVersion = versionOf(address);
    checkVersions(attempt.version, attempt.listenersVersion ?? attempt.version);
    const endpoint = this.#connectToAddress(address, err_mode, { isPaired: true });
    return await this.#begin(endpoint, () => endpoint.greet("secret", "client", signal));
  }

  /** Waits until a connection is established. It is closed if that fails. */
  async #begin(endpoint: UcxEndpoint, begin: () => Promise<void>): Promise<UcxEndpoint> {
    try {
      await begin();
      return endpoint;
    } catch (error) {
      void endpoint.close({ force: true });
      throw error;
    }
  }

  // law ucx/Connections.stand: ucx/brief
  /**
   * Waits until a connection that was accepted is established. One whose other side has gone meanwhile is accepted as
   * well, if nothing is asked of it: what it sent has arrived.
   */
  async #stand(endpoint: UcxEndpoint, hasToGreet: boolean, signal: AbortSignal | undefined): Promise<void> {
    try {
      await endpoint.established(signal);
    } catch (error) {
      if (hasToGreet || signal?.aborted === true || !(error instanceof UcxError)) throw error;
    }
  }

  // law ucx/Connections.listen: ucx/ucxx_protocol, ucx/secret, ucx/behaviours, ucx/sends_first
  /** As {@linkcode UcxWorker.listen}. */
  listen(options: ListenOptions): UcxListener {
    const { ucp, family, progress, protocol, open, resources } = this.#context;
    const { host, port, secret, timeout, ...limits } = checkListenOptions(options, this.#context);
    const worker = open("listen");
    const err_mode = checkErrors(options.errors);
    const pending = new PendingConnections(limits);
    const refused = () => pending.refuse();
    // UCX 1.13 ends the process, or sends nothing, if a message of 100 bytes or more is sent over a connection by its
    // listener that is not established yet: a fault, or a failed assertion (rndv.c, packed_rkey_size).
    const hasToStand = secret === null || err_mode === UCP_ERR_HANDLING_MODE.NONE;
    const hasToGreet = secret !== null || protocol.greet !== null;
    const greet = !hasToGreet && !hasToStand ? null : async (endpoint: UcxEndpoint) => {
      const limit = timeLimit("ucp_stream_recv_nbx", { timeout });
      try {
        if (hasToStand) await this.#stand(endpoint, hasToGreet, limit.signal);
        if (hasToGreet) await endpoint.greet(secret === null ? "protocol" : "secret", "listener", limit.signal);
      } finally {
        limit.clear();
      }
    };
    if (secret === null) checkFamily(host, family);
    const acceptor = secret === null
      ? listenNatively({ host, port }, {
        refused,
        hasRoom: () => pending.makeRoom(), // these peers are not authenticated
        ucp,
        worker,
        resources,
        accept: (conn_request) => {
          using arena = new NativeArena();
          const flags = UCP_EP_PARAMS_FLAGS.NO_LOOPBACK;
          pending.add(this.#createEndpoint(arena, { flags, conn_request, err_mode }, { limits }), greet);
        },
      })
      : listenWithSecret({ host, port }, {
        refused,
        hasRoom: () => pending.hasRoom, // peers that have yet to confirm have proved the secret
        secret,
        handshakes: limits.handshakes,
        patience: timeout,
        address: this.#context.address,
        accept: (address) => pending.add(this.#connectToAddress(address, err_mode, { limits, isPaired: true }), greet),
      });
    progress.answerPeers();
    const release = progress.retainProcess(); // an open listener keeps the process alive
    const listener = new UcxListener(acceptor, pending, (closed) => {
      this.#listeners.delete(closed);
      release();
    });
    this.#listeners.add(listener);
    return listener;
  }

  /** As {@linkcode UcxWorker.fence}. */
  fence(): void {
    for (const endpoint of this.#endpoints.values()) endpoint.fence();
  }

  /** As {@linkcode UcxWorker.flush}. */
  async flush(options: LimitOptions): Promise<void> {
    // A close includes a flush.
    const open = Array.from(this.#endpoints.values()).filter((endpoint) => !endpoint.isClosed);
    await Promise.all(open.map((endpoint) => endpoint.flush(options)));
  }

  /** Closes all listeners and endpoints, once everything sent has arrived. */
  async finish(): Promise<void> {
    this.#stopListening();
    await Promise.all(Array.from(this.#endpoints.values(), (endpoint) => endpoint.close()));
  }

  /** Closes all listeners and endpoints at once. */
  abort(): void {
    this.#stopListening();
    for (const endpoint of this.#endpoints.values()) endpoint.abort();
  }

  // law ucx/Connections.stopListening: ucx/failing_calls
  #stopListening(): void {
    for (const listener of this.#listeners) listener.close().catch(() => {}); // UCX's is destroyed with the worker
  }

  /** Stops watching peers, after the worker has slept for the last time. */
  stopWatching(): void {
    this.#peers.close();
  }

  // law ucx/Connections.rest: ucx/keepalive_timer
  /** Lets the worker sleep until there is news, if the system reports the end of every peer. */
  #rest(): void {
    if (!this.#keepalive.mayLook) return; // first: it saves asking about each endpoint
    if (this.#unreported.areNone((endpoint) => this.#peers.sees(endpoint))) this.#keepalive.stop();
  }

  // law ucx/Connections.connectToAddress: ucx/connect_failure
  #connectToAddress(
    to: Uint8Array,
    err_mode: number,
    { unchecked = false, limits = this.#context.limits, isPaired = false }: AddressOptions,
  ): UcxEndpoint {
    if (to.length === 0) throw new TypeError("Cannot connect: expected a worker's address, got no bytes");
    const isOurs = isIntact(to);
    if (isKey(to)) throw new TypeError("Cannot connect: expected a worker's address, got the key of a memory region");
    if (!unchecked && !isOurs) {
      throw new TypeError(
        `Cannot connect: expected the bytes of a worker's address, got ${to.length} other or damaged bytes. ` +
          "Pass { unchecked: true } for the address of a worker that is not Causeway's.",
      );
    }
    // By a listener only the side that connects checks, and says why: the other would hang up without a word.
    if (isOurs && !unchecked && !isPaired) checkVersions(this.#context.version, versionOf(to));
    const process = isOurs ? PeerProcess.find(processOf(to)) : null; // first: the process may end at any time
    using arena = new NativeArena();
    const address = arena.bytes(to.length);
    address.bytes.set(to);
    const isWatched = err_mode === UCP_ERR_HANDLING_MODE.PEER;
    // Otherwise a stream to this same worker would arrive at the endpoint that sent it.
    const flags = isPaired ? { flags: UCP_EP_PARAMS_FLAGS.NO_LOOPBACK } : none;
    return this.#createEndpoint(arena, { address: address.address, err_mode, ...flags }, {
      limits,
      process: isWatched ? process : null,
      isHere: isOurs && isOwn(processOf(to)),
      check: isOurs ? checkOf(to) : null,
      isPaired,
    });
  }

  #createEndpoint(
    arena: NativeArena,
    given: EndpointParameters,
    { limits = this.#context.limits, process = null, isHere = false, check = null, isPaired = false }: EndpointPeer =
      none,
  ): UcxEndpoint {
    const worker = this.#context.open("connect"); // it may have been closed meanwhile
    const parameters = arena.struct(ucp_ep_params_t);
    const err_handler = { cb: this.#onError.address, arg: 0n };
    const isWatched = given.err_mode === UCP_ERR_HANDLING_MODE.PEER;
    writeFields(parameters, UCP_EP_PARAMS_FIELD, isWatched ? { ...given, err_handler } : given);
    const made = arena.out("ptr");
    const { ucp, progress, resources } = this.#context;
    const status = ucp.endpoint.ucp_ep_create(worker, parameters.$address, made.$address);
    checkStatus("ucp_ep_create", status, status === ucs_status_t.UCS_ERR_UNSUPPORTED ? otherErrors : advice(status));
    keepFromChildren();
    const forget = (gone: bigint) => {
      this.#peers.forget(endpoint);
      this.#unreported.forget(endpoint);
      // UCX may have reused the handle for a newer endpoint.
      if (this.#endpoints.get(gone) !== endpoint) return;
      this.#endpoints.delete(gone);
      this.#context.closed(gone, check);
    };
    const endpoint: UcxEndpoint = new UcxEndpoint(
      {
        ...this.#context,
        limits,
        handlesErrors: isWatched,
        isByHost: given.address === undefined,
        isPaired,
        isConnecting: given.conn_request === undefined,
        forget,
      },
      made.value,
    );
    resources.endpoints.add(made.value);
    this.#endpoints.set(made.value, endpoint);
    this.#context.made(made.value, check);
    progress.answerPeers();
    this.#peers.watch(endpoint, process);
    if (isWatched && !isHere) this.#unreported.add(endpoint);
    this.#keepalive.restart();
    return endpoint;
  }
}
