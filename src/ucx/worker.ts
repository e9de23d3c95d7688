/**
 * A worker: where UCX makes progress, where messages arrive, and from which endpoints lead to other workers.
 *
 * @module
 */
import {
  UCP_EP_PARAMS_FIELD,
  UCP_EP_PARAMS_FLAGS,
  ucp_ep_params_t,
  UCP_ERR_HANDLING_MODE,
  UCP_WORKER_ATTR_FIELD,
  ucp_worker_attr_t,
  UCP_WORKER_PARAMS_FIELD,
  ucp_worker_params_t,
  UCS_MEMORY_TYPE,
  UCS_THREAD_MODE,
} from "../../bindings/ucp_types.ts";
import { ffiPort, NativeArena, type NativeCallback, nodeBuiltin } from "../ffi/mod.ts";
import { checkOptions, none, type OptionNames } from "../layout/mod.ts";
import { hostWaits } from "../order/mod.ts";
import { isIntact, processOf, withTrailer } from "./address.ts";
import { ActiveMessages, type UcxActiveMessage } from "./active_messages.ts";
import { UcxEndpoint } from "./endpoint.ts";
import { checkStatus, UcxError } from "./error.ts";
import type { UcpFunctions } from "./library.ts";
import { checkTimeout, limitOptionNames, type LimitOptions, timeLimit } from "./limit.ts";
import { listenOptionNames, type ListenOptions, openListener, type UcxListener } from "./listener.ts";
import { type Receivable, takeMemory } from "./message_memory.ts";
import { MessageQueue } from "./message_queue.ts";
import { Operations } from "./operation.ts";
import { UcxMemoryRegion } from "./remote_memory.ts";
import { type HostAndPort, type SocketAddress, writeSocketAddress } from "./socket_address.ts";
import { writeFields } from "./struct_fields.ts";
import { PeerLiveness } from "./peer_liveness.ts";
import { ownIdentity, PeerProcess } from "./process_identity.ts";
import { Progress, type ProgressMode, progressModes } from "./progress.ts";
import { advice } from "./status.ts";
import { type Received, type ReceiveOptions, Receiver, type ReceiveSyncOptions, type UcxMessage } from "./receiver.ts";
import { everyBit } from "./tag.ts";

/**
 * For how long a worker lets connections get made before it closes, in milliseconds. A large send has UCX ask the other
 * side to connect back, and when either side goes meanwhile, UCX before 1.14 ends the process of that other side with a
 * failed assertion (openucx/ucx#8175).
 */
const farewell = 200;

/** Options of {@linkcode Ucx.createWorker}. */
export interface WorkerOptions {
  /** How the worker waits for messages. Default `adaptive`. */
  readonly progress?: ProgressMode;
}

const workerOptionNames: OptionNames<WorkerOptions> = { progress: true };

/** Options of {@linkcode UcxWorker.connect}. */
export interface ConnectOptions {
  /**
   * Takes the address of a worker that is not Causeway's, as UCX wrote it. Nothing notices then whether it is damaged,
   * and UCX aborts the process over a damaged one. Default false.
   */
  readonly unchecked?: boolean;
  /**
   * `peer`: what is sent to a process that has ended fails, and the endpoint with it. `none`: nothing of it is noticed,
   * and large messages between processes of one machine may be copied once (CMA), which UCX does not do otherwise.
   * Default `peer`.
   */
  readonly errors?: "peer" | "none";
  /** Gives up; the promise is then rejected with the signal's reason. */
  readonly signal?: AbortSignal;
  /** The same after so many milliseconds, with UCS_ERR_TIMED_OUT. Default none. */
  readonly timeout?: number;
}

const connectOptionNames: OptionNames<ConnectOptions> = { unchecked: true, errors: true, signal: true, timeout: true };

const errorModes = { peer: UCP_ERR_HANDLING_MODE.PEER, none: UCP_ERR_HANDLING_MODE.NONE } as const;

/** How an endpoint is made. */
interface EndpointParameters {
  readonly err_mode: number;
  readonly address?: bigint;
  readonly flags?: number;
  readonly sockaddr?: SocketAddress;
  readonly conn_request?: bigint;
}

function checkErrors(errors: ConnectOptions["errors"] = "peer"): number {
  const mode = errorModes[errors];
  if (mode === undefined) throw new RangeError(`Cannot handle errors "${errors}": expected peer or none`);
  return mode;
}

/** What a worker needs of its context. */
export interface WorkerContext {
  readonly ucp: UcpFunctions;
  readonly context: bigint;
  readonly hasCuda: boolean;
  /** Bytes of a request of UCX's. */
  readonly requestBytes: number;
  /** Of the addresses that UCX connects by over TCP. */
  readonly family: 4 | 6;
  /** Called once, when the worker is closed: whether it is gone, or has to stay as long as the process. */
  forget(isGone: boolean): void;
}

/** A UCX worker. All of it happens on the JavaScript thread. */
export class UcxWorker {
  readonly #context: WorkerContext;
  readonly #arena = new NativeArena();
  readonly #operations: Operations;
  readonly #endpoints = new Map<bigint, UcxEndpoint>();
  readonly #listeners = new Set<UcxListener>();
  readonly #regions = new Set<UcxMemoryRegion>();
  readonly #onError: NativeCallback;
  readonly #progress: Progress;
  readonly #peers = new PeerLiveness();
  readonly #receiver: Receiver;
  readonly #active: ActiveMessages;
  readonly #messages = new MessageQueue<UcxActiveMessage>();
  #longestHeader: number | undefined;
  #handle: bigint;
  /** Until when peers may still connect back, by `performance.now()`. */
  #answersUntil = 0;
  #closing: Promise<void> | undefined;
  #address: Uint8Array<ArrayBuffer> | undefined;

  /** Use {@linkcode Ucx.createWorker}. */
  constructor(context: WorkerContext, options: WorkerOptions = none) {
    checkOptions(options, workerOptionNames);
    const { progress = "adaptive" } = options;
    if (!progressModes.includes(progress)) {
      throw new RangeError(`Cannot wait "${progress}": expected one of ${progressModes.join(", ")}`);
    }
    this.#context = context;
    const parameters = this.#arena.struct(ucp_worker_params_t);
    writeFields(parameters, UCP_WORKER_PARAMS_FIELD, { thread_mode: UCS_THREAD_MODE.SINGLE });
    const worker = this.#arena.out("ptr");
    const status = context.ucp.opening.ucp_worker_create(context.context, parameters.$address, worker.$address);
    if (status !== 0) this.#arena.close();
    checkStatus("ucp_worker_create", status);
    this.#handle = worker.value;
    this.#operations = new Operations(context.requestBytes);
    this.#progress = new Progress(context.ucp, this.#handle, this.#operations, progress);
    this.#receiver = new Receiver(context, this.#handle, this.#operations, this.#progress);
    this.#active = new ActiveMessages({
      ucp: context.ucp,
      hasCuda: context.hasCuda,
      worker: this.#handle,
      operations: this.#operations,
      progress: this.#progress,
      deliver: (message, from) =>
        (this.#endpoints.get(from)?.deliver(message) ?? false) || this.#messages.push(message),
    });
    // One callback for all endpoints of the worker: UCX calls it inside ucp_worker_progress, on this thread.
    this.#onError = ffiPort().callback({ args: ["ptr", "ptr", "i8"], returns: "void" }, (_, endpoint, failure) => {
      this.#endpoints.get(endpoint)?.fail(new UcxError("ucp_worker_progress", failure, advice(failure)));
    });
  }

  /**
   * What another worker needs to connect to this one: UCX's address, which process of which machine it is, and a check
   * of its integrity; UCX itself reads only the first. It can be sent by any means, and holds no secret.
   */
  get address(): Uint8Array<ArrayBuffer> {
    if (this.#address === undefined) {
      const { worker } = this.#context.ucp;
      const handle = this.#open("read the address");
      const at = this.#arena.out("ptr");
      const length = this.#arena.out("size");
      checkStatus("ucp_worker_get_address", worker.ucp_worker_get_address(handle, at.$address, length.$address));
      this.#address = withTrailer(new Uint8Array(ffiPort().memory(at.value, length.value)), ownIdentity());
      worker.ucp_worker_release_address(handle, at.value);
      this.#progress.watch(); // from now on others may connect, and need this worker to answer
    }
    return this.#address;
  }

  /**
   * Connects to a worker by its address, or to a listener by its host and port.
   *
   * To a listener the promise settles when the connection stands. To an address it settles before the other side has
   * been reached: whether it can be is known when the first message has arrived.
   *
   * @throws {UcxError} if no transport reaches it, nobody listens there, or UCS_ERR_TIMED_OUT
   * @throws {TypeError} if the bytes are no address, or not all of it
   */
  async connect(to: Uint8Array | HostAndPort, options: ConnectOptions = none): Promise<UcxEndpoint> {
    checkOptions(options, connectOptionNames);
    this.#open("connect");
    const { errors, signal, timeout } = options;
    const err_mode = checkErrors(errors);
    signal?.throwIfAborted();
    if (timeout !== undefined) checkTimeout(timeout);
    using arena = new NativeArena();
    if (to instanceof Uint8Array) return this.#connectToAddress(arena, to, err_mode, options.unchecked ?? false);
    const sockaddr = await writeSocketAddress(arena, to, this.#context.family);
    this.#open("connect"); // it may have been closed meanwhile
    const flags = UCP_EP_PARAMS_FLAGS.CLIENT_SERVER;
    const endpoint = this.#createEndpoint(arena, { flags, sockaddr, err_mode }, null);
    const limit = timeLimit("ucp_ep_create", options);
    try {
      await endpoint.established(limit.signal);
    } catch (error) {
      void endpoint.close({ force: true });
      throw error;
    } finally {
      limit.clear();
    }
    return endpoint;
  }

  /**
   * Listens for other programs.
   *
   * @throws {UcxError} UCS_ERR_BUSY or another status if the port is taken, or the address is not this machine's
   * @throws {TypeError} if the worker is closed, or for an unknown option
   * @throws {RangeError} if the port or the backlog is out of range
   */
  async listen(options: ListenOptions = none): Promise<UcxListener> {
    checkOptions(options, listenOptionNames);
    this.#open("listen");
    const err_mode = checkErrors(options.errors);
    const listener = await openListener({
      ucp: this.#context.ucp,
      family: this.#context.family,
      worker: () => this.#open("listen"), // it may be closed while a name is looked up
      accept: (conn_request) => {
        using arena = new NativeArena();
        this.#open("accept");
        const flags = UCP_EP_PARAMS_FLAGS.NO_LOOPBACK;
        return this.#createEndpoint(arena, { flags, conn_request, err_mode }, null);
      },
      watch: () => this.#progress.watch(),
      forget: (listener) => this.#listeners.delete(listener),
    }, options);
    this.#listeners.add(listener);
    return listener;
  }

  #connectToAddress(arena: NativeArena, to: Uint8Array, err_mode: number, unchecked: boolean): UcxEndpoint {
    if (to.length === 0) throw new TypeError("Cannot connect: expected a worker's address, got no bytes");
    const isOurs = isIntact(to);
    if (!unchecked && !isOurs) {
      throw new TypeError(
        `Cannot connect: expected what a worker's address says, got ${to.length} other or damaged bytes. ` +
          "Pass { unchecked: true } for the address of a worker that is not Causeway's.",
      );
    }
    const process = isOurs ? PeerProcess.find(processOf(to)) : null; // first: it may end any time
    const address = arena.bytes(to.length);
    address.bytes.set(to);
    const isWatched = err_mode === UCP_ERR_HANDLING_MODE.PEER;
    return this.#createEndpoint(arena, { address: address.address, err_mode }, isWatched ? process : null);
  }

  /** @param process what to watch, if the endpoint leads to a process that can be seen and UCX may not watch it */
  #createEndpoint(arena: NativeArena, given: EndpointParameters, process: PeerProcess | null): UcxEndpoint {
    const parameters = arena.struct(ucp_ep_params_t);
    const err_handler = { cb: this.#onError.address, arg: 0n };
    const isWatched = given.err_mode === UCP_ERR_HANDLING_MODE.PEER;
    writeFields(parameters, UCP_EP_PARAMS_FIELD, isWatched ? { ...given, err_handler } : given);
    const made = arena.out("ptr");
    const { ucp, hasCuda } = this.#context;
    const status = ucp.endpoint.ucp_ep_create(this.#handle, parameters.$address, made.$address);
    checkStatus("ucp_ep_create", status, advice(status));
    const endpoint: UcxEndpoint = new UcxEndpoint({
      ucp,
      hasCuda,
      progress: this.#progress,
      operations: this.#operations,
      receiver: this.#receiver,
      longestHeader: () => this.#longestHeader ??= this.#askLongestHeader(),
      cutShort: () => {
        this.#answersUntil = performance.now() + farewell;
      },
      forget: (gone) => {
        this.#peers.forget(endpoint);
        // UCX may have given the same handle to a newer endpoint meanwhile.
        if (this.#endpoints.get(gone) === endpoint) this.#endpoints.delete(gone);
      },
    }, made.value);
    this.#endpoints.set(made.value, endpoint);
    this.#progress.watch();
    this.#peers.watch(endpoint, process);
    return endpoint;
  }

  /**
   * Receives the next message with a matching tag from any endpoint. The memory belongs to UCX until the promise is
   * settled. Memory with a home stream is UCX's when that stream's next work could begin, and that of later receives
   * after it; the event loop goes on meanwhile.
   *
   * @param into contiguous writable memory: a view, a buffer, JavaScript's own, or another library's array
   * @throws {UcxError} UCS_ERR_MESSAGE_TRUNCATED if the message is longer than the memory
   * @throws {TypeError} if the worker is closed, or the memory is read-only or not contiguous
   * @throws {RangeError} if the tag or the mask has more than 64 bits
   */
  recv(into: Receivable, options: ReceiveOptions = none): Promise<Received> {
    return this.#receiver.recv(into, options, null);
  }

  /**
   * Receives the next message with a matching tag, and waits for it in place: nothing else happens in this thread
   * meanwhile. For loops that count microseconds.
   *
   * @param into contiguous writable memory: a view, a buffer, JavaScript's own, or another library's array
   * @throws {UcxError} UCS_ERR_MESSAGE_TRUNCATED if the message is longer than the memory; UCS_ERR_TIMED_OUT
   * @throws {TypeError} as {@linkcode recv}, and if earlier receives wait for a stream: await them first
   * @throws {RangeError} if the tag or the mask has more than 64 bits
   */
  recvSync(into: Receivable, options: ReceiveSyncOptions = none): Received {
    return this.#receiver.recvSync(into, options, null);
  }

  /**
   * Whether a message with a matching tag has come that no receive has asked for. It stays for the next one that does.
   *
   * @param tag the tag to match. Default 0
   * @param mask the bits of the tag that count. Default all
   * @throws {RangeError} if the tag or the mask has more than 64 bits
   */
  probe(tag = 0n, mask: bigint = everyBit): Received | null {
    return this.#receiver.probe(tag, mask);
  }

  /**
   * As {@linkcode probe}, and takes the message away from all receives: whoever takes it receives it.
   *
   * @throws {RangeError} if the tag or the mask has more than 64 bits
   */
  take(tag = 0n, mask: bigint = everyBit): UcxMessage | null {
    return this.#receiver.take(tag, mask);
  }

  /**
   * The active messages of those to whom no endpoint of this worker leads, in the order in which they come, until the
   * worker is closed. Those of the others come to their endpoints. Whoever takes one receives or releases it.
   */
  messages(): AsyncIterable<UcxActiveMessage> {
    this.#open("take messages");
    return this.#messages;
  }

  /**
   * Lets others read and write memory by themselves, until the region is closed, or the worker.
   *
   * @param what contiguous writable memory: a view, a buffer, JavaScript's own, or another library's array. It is
   *   the program's business that no stream of a GPU uses it meanwhile: others write to it at any time
   * @throws {UcxError} if UCX cannot register it
   * @throws {TypeError} if the worker is closed, or the memory is read-only or not contiguous
   */
  register(what: Receivable): UcxMemoryRegion {
    this.#open("register memory");
    const operation = this.#operations.take();
    try {
      const buffer = takeMemory(operation, what, "receive into", this.#context.hasCuda);
      if (buffer !== null) hostWaits(buffer);
      const { ucp, context } = this.#context;
      const forget = (gone: UcxMemoryRegion) => this.#regions.delete(gone);
      const region = new UcxMemoryRegion({ ucp, context, forget }, operation);
      this.#regions.add(region);
      return region;
    } finally {
      operation.release();
      this.#operations.give(operation);
    }
  }

  /**
   * Settles when everything that was sent and put before, over all endpoints, is at the other sides.
   *
   * @throws {UcxError} if one of them is gone, or UCS_ERR_TIMED_OUT
   */
  async flush(options: LimitOptions = none): Promise<void> {
    checkOptions(options, limitOptionNames);
    this.#open("flush");
    if (options.timeout !== undefined) checkTimeout(options.timeout);
    const { signal, clear } = timeLimit("ucp_worker_flush_nbx", options);
    await this.#flush(signal).finally(clear);
  }

  /**
   * Lets UCX work once, and settles what has ended: for programs that wait in a loop of their own.
   *
   * @returns how many operations have ended
   */
  poll(): number {
    this.#open("poll");
    return this.#progress.poll();
  }

  /**
   * Closes every endpoint after what was sent has arrived, then the worker; connections that others are making with it
   * get up to 200 ms. Closing twice is harmless.
   */
  close(): Promise<void> {
    this.#closing ??= this.#finish();
    return this.#closing;
  }

  // law ucx/UcxWorker.finish: ucx/lifecycle
  async #finish(): Promise<void> {
    for (const listener of this.#listeners) void listener.close();
    await Promise.all(Array.from(this.#endpoints.values(), (endpoint) => endpoint.close()));
    if (this.#handle === 0n) return;
    const { setTimeout: pause } = nodeBuiltin("node:timers/promises");
    const left = this.#answersUntil - performance.now();
    await Promise.race([this.#flush().catch(() => {}), pause(farewell, undefined, { ref: false })]);
    if (left > 0) await pause(left);
    // Messages whose receive was cancelled while they arrived: the other side, maybe in this process, has to turn, too.
    const end = performance.now() + farewell;
    while (this.#progress.cancelAll(new TypeError("The worker was closed")) > 0 && performance.now() < end) {
      await pause(1);
    }
    this.abort();
  }

  /** Has UCX send what it has yet to send, its part of making connections included. */
  async #flush(signal?: AbortSignal): Promise<void> {
    const operation = this.#operations.take();
    operation.call = "ucp_worker_flush_nbx";
    operation.prepare("plain", UCS_MEMORY_TYPE.HOST, null, "its own");
    const begun = this.#context.ucp.endpoint.ucp_worker_flush_nbx(this.#handle, operation.parameters);
    this.#progress.begunForeign(operation, begun);
    await this.#progress.settled(operation, signal);
  }

  // law ucx/UcxWorker.abort: ucx/order, ucx/probe
  /** Closes the worker at once: what is under way is cancelled, what was sent may not arrive. */
  abort(): void {
    if (this.#handle === 0n) return;
    for (const listener of this.#listeners) void listener.close();
    for (const endpoint of this.#endpoints.values()) endpoint.close({ force: true }).catch(() => {}); // the worker goes first
    const reason = new TypeError("The worker was closed");
    this.#receiver.close(reason);
    this.#messages.end();
    this.#active.release();
    this.#progress.stop(reason);
    this.#peers.close();
    // A message that is still arriving cannot be taken from UCX 1.13, which would end the process with a failed
    // assertion.
    const isArriving = this.#operations.pending().some(({ call }) => call.includes("recv"));
    if (!isArriving) this.#destroy();
    this.#handle = 0n;
    this.#context.forget(!isArriving);
  }

  #askLongestHeader(): number {
    using arena = new NativeArena();
    const attributes = arena.struct(ucp_worker_attr_t);
    attributes.field_mask = UCP_WORKER_ATTR_FIELD.max_am_header;
    const status = this.#context.ucp.information.ucp_worker_query(this.#handle, attributes.$address);
    checkStatus("ucp_worker_query", status);
    return attributes.max_am_header;
  }

  #destroy(): void {
    this.#context.ucp.worker.ucp_worker_destroy(this.#handle);
    for (const operation of this.#operations.pending()) operation.release(); // UCX has forgotten them
    this.#operations.close();
    for (const region of this.#regions) region.close();
    this.#onError.close();
    this.#active.close();
    this.#arena.close();
  }

  /** Closes the worker after what was sent has arrived. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #open(doing: string): bigint {
    if (this.#handle === 0n) throw new TypeError(`Cannot ${doing}: the worker is closed`);
    return this.#handle;
  }
}
