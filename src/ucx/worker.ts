/**
 * A worker: where UCX makes progress, messages arrive, and endpoints to other workers start.
 *
 * @module
 */
import {
  UCP_WORKER_ATTR_FIELD,
  ucp_worker_attr_t,
  UCP_WORKER_PARAMS_FIELD,
  ucp_worker_params_t,
  UCS_THREAD_MODE,
} from "../../bindings/ucp_types.ts";
import { turnIfDue } from "./event_loop.ts";
import { closeIfDropped, placeOfCall } from "./finalizer.ts";
import { ffiPort, NativeArena, nodeBuiltin, runAll } from "../ffi/mod.ts";
import { checkMade, checkOptions, isNameIn, none, type OptionNames, show, showAs } from "../layout/mod.ts";
import { hostWaits } from "../order/mod.ts";
import type { StridedMemoryView } from "../view/mod.ts";
import { checkDescriptorsLeft, keepFromChildren } from "../unix/mod.ts";
import {
  type ActiveMessageFormat,
  ActiveMessages,
  arrayMessages,
  messagesOf,
  type UcxActiveMessage,
} from "./active_messages/active_messages.ts";
import { withTrailer, withVersion } from "./address.ts";
import { type ReceiveArrayOptions, recvArray } from "./arrays.ts";
import { Connections, type ConnectOptions, type ListenerAddress } from "./connections.ts";
import { patienceOfDispose, type UcxEndpoint } from "./endpoint.ts";
import { checkStatus } from "./error.ts";
import type { UcpFunctions } from "./library.ts";
import { checkLimitKinds, closeWithin, farewell, limitOptionNames, type LimitOptions } from "./limit.ts";
import type { ListenOptions, UcxListener } from "./listen/listener.ts";
import { excessOf, takeWorkerLimits, type WorkerLimits } from "./active_messages/message_limits.ts";
import { type Receivable, takeMemory } from "./message_memory.ts";
import { MessageQueue } from "./active_messages/message_queue.ts";
import { ownIdentity } from "./process_identity.ts";
import type { ReceiveManyOptions } from "./parts_receiver.ts";
import type { PoolStaging } from "./pool_staging.ts";
import { Progress, type ProgressMode, progressModes } from "./progress.ts";
import { StreamControlDelivery } from "./stream/stream_control.ts";
import { type Received, type ReceiveOptions, Receiver, type ReceiveSyncOptions, type UcxMessage } from "./receiver.ts";
import { causewayProtocol, type Protocol } from "./protocol.ts";
import { checkRemoteMemory, UcxMemoryRegion } from "./remote_memory.ts";
import { writeFields } from "./struct_fields.ts";
import { everyBit } from "./tag.ts";
import { ucxxProtocol } from "./ucxx_protocol.ts";
import { type WorkerDescription, type WorkerOwner, WorkerResources } from "./worker_resources.ts";

/** Options of {@linkcode Ucx.createWorker}. */
export interface WorkerOptions {
  /** How the worker waits for messages. Default `adaptive`. */
  readonly progress?: ProgressMode;
  /**
   * The worker's protocol with its peers. `causeway`: tags and headers go over the wire unchanged. `ucxx`: the protocol
   * of UCXX's Python package, with its greeting, hashed tags, and header of active messages. Default `causeway`.
   */
  readonly protocol?: "causeway" | "ucxx";
  /**
   * How many unsolicited messages are kept: per endpoint, which is closed with UCS_ERR_EXCEEDS_LIMIT when its other
   * side has sent more, and for all peers without an endpoint here, whose excess messages are dropped and counted
   * ({@linkcode UcxWorker.dropped}). `listen` may override this for its connections. Tagged messages have a limit of
   * their own. Default: as many as fit in memory.
   */
  readonly limits?: WorkerLimits;
}

const workerOptionNames: OptionNames<WorkerOptions> = { progress: true, protocol: true, limits: true };

const protocols = { causeway: causewayProtocol, ucxx: ucxxProtocol } as const;

/** Options of {@linkcode UcxWorker.close}. */
export interface CloseWorkerOptions {
  /** How long to wait, in milliseconds, before closing at once. Default: as long as it takes. */
  readonly timeout?: number;
  /** Closes at once when it is aborted, as after the timeout: the promise is not rejected. */
  readonly signal?: AbortSignal | undefined;
}

const closeWorkerOptionNames: OptionNames<CloseWorkerOptions> = { timeout: true, signal: true };

/** What a worker needs from its context. */
export interface WorkerContext {
  readonly ucp: UcpFunctions;
  /** The UCX version. */
  readonly version: string;
  readonly context: bigint;
  /** Staging for large messages in pool memory; null if GPU memory cannot be sent or received. */
  readonly cuda: PoolStaging | null;
  /** Whether remote memory is enabled. */
  readonly hasRemoteMemory: boolean;
  /** Size of a UCX request in bytes. */
  readonly requestBytes: number;
  /** The address family of UCX's TCP connections. */
  readonly family: 4 | 6;
  /** Closes the worker together with the context. It must not reference the worker. */
  readonly owner: WorkerOwner & { add(resources: WorkerResources, worker: UcxWorker): void };
  /** Kept alive as long as the worker. */
  readonly root: object;
}

/**
 * How many descriptors UCX may need for a worker: two for each network interface, and some. UCX 1.13 ends the process
 * without those of its last transports.
 */
const descriptorsOfWorker = 24;

/** A container has 64 MiB of it, unless its options say otherwise. */
const sharedMemoryHint =
  'Is /dev/shm full? A worker takes some 4 MB of it: make it larger, or open UCX with { config: { TLS: "^posix" } }';

// law ucx/createWorker: ucx/failing_calls
/** @throws {SystemError} if there are too few descriptors left @throws {UcxError} if there is no memory left */
function createWorker(description: WorkerDescription, context: bigint): WorkerResources {
  const { ucp } = description;
  checkDescriptorsLeft(descriptorsOfWorker, "create a worker");
  using arena = new NativeArena();
  const parameters = arena.struct(ucp_worker_params_t);
  writeFields(parameters, UCP_WORKER_PARAMS_FIELD, { thread_mode: UCS_THREAD_MODE.SINGLE });
  const worker = arena.out("ptr");
  const status = ucp.opening.ucp_worker_create(context, parameters.$address, worker.$address);
  checkStatus("ucp_worker_create", status, sharedMemoryHint);
  keepFromChildren();
  try {
    return new WorkerResources(description, worker.value);
  } catch (error) {
    ucp.worker.ucp_worker_destroy(worker.value);
    throw error;
  }
}

/** How many workers were created. */
let made = 0;

/**
 * A UCX worker. All of it runs on the JavaScript thread.
 *
 * A worker that is dropped without being closed is closed at once, as by {@linkcode UcxWorker.abort}, when it is
 * garbage-collected. It is not collected while any object of it (an endpoint, a region, a message) is referenced,
 * anything of it is awaited, or a listener of it is open.
 */
export class UcxWorker {
  /** Its number within the process, for console output. */
  readonly #number = ++made;
  readonly #context: WorkerContext;
  readonly #protocol: Protocol;
  readonly #resources: WorkerResources;
  readonly #connections: Connections;
  readonly #progress: Progress;
  readonly #receiver: Receiver;
  readonly #active: readonly ActiveMessages[];
  readonly #messages = new MessageQueue<UcxActiveMessage>(() => this.#progress.retainProcess(), turnIfDue);
  readonly #arrays = new MessageQueue<UcxActiveMessage>(() => this.#progress.retainProcess(), turnIfDue);
  readonly #limits: Required<WorkerLimits>;
  #dropped = 0;
  #longestHeader: number | undefined;
  /** 0n until it is created, and once it is closed. */
  #handle = 0n;
  /** Until when peers may still connect back, by `performance.now()`. */
  #answersUntil = 0;
  #closing: Promise<void> | undefined;
  #address: Uint8Array<ArrayBuffer> | undefined;

  // law ucx/UcxWorker.constructor: ucx/failing_calls
  /** Use {@linkcode Ucx.createWorker}. */
  constructor(context: WorkerContext, options: WorkerOptions = none) {
    checkMade(context?.ucp, "UcxWorker", "ucx.createWorker()");
    checkOptions(options, workerOptionNames);
    const { progress = "adaptive", protocol: name = "causeway" } = options;
    if (!progressModes.includes(progress)) {
      throw new RangeError(`Cannot use progress mode ${show(progress)}: expected one of ${progressModes.join(", ")}`);
    }
    const protocol: Protocol | undefined = isNameIn(protocols, name) ? protocols[name] : undefined;
    if (protocol === undefined) throw new RangeError(`Cannot use protocol ${show(name)}: expected causeway or ucxx`);
    this.#protocol = protocol;
    this.#limits = takeWorkerLimits(options.limits ?? none);
    this.#context = context;
    const { ucp, version, requestBytes, owner } = context;
    const resources = createWorker({ ucp, version, requestBytes, owner, madeAt: placeOfCall() }, context.context);
    this.#resources = resources;
    owner.add(resources, this);
    using failed = new DisposableStack();
    failed.defer(() => resources.close());
    this.#progress = new Progress(resources, progress, this);
    this.#receiver = new Receiver(resources, this.#progress, context.cuda, this.#limits.taggedMessages);
    const receive = (
      kind: "message" | "array",
      mine: MessageQueue<UcxActiveMessage>,
      format: ActiveMessageFormat,
    ) =>
      new ActiveMessages({
        resources,
        cuda: context.cuda,
        progress: this.#progress,
        // A failed endpoint's messages have no consumer: they do not go to the worker, either.
        deliver: (message, from) => this.#connections.find(from)?.deliver(message, kind) ?? this.#accept(mine, message),
      }, format);
    this.#active = [
      receive("message", this.#messages, protocol.messages),
      receive("array", this.#arrays, arrayMessages),
    ];
    const streamControl = new StreamControlDelivery({
      resources,
      deliver: (control, from) => {
        const endpoint = this.#connections.find(from);
        endpoint?.onStreamControl(control.kind, control.taken);
        return endpoint !== undefined;
      },
    });
    this.#connections = new Connections({
      resources,
      ucp,
      cuda: context.cuda,
      hasRemoteMemory: context.hasRemoteMemory,
      family: context.family,
      version,
      protocol,
      progress: this.#progress,
      operations: resources.operations,
      receiver: this.#receiver,
      keys: resources.keys,
      open: (doing) => this.#open(doing),
      made: (endpoint, peer) => streamControl.made(endpoint, peer),
      closed: (endpoint, peer) => streamControl.closed(endpoint, peer),
      address: () => this.address,
      limits: this.#limits,
      longestHeader: () => this.#longestHeader ??= this.#askLongestHeader(),
      cutShort: () => this.#answersUntil = performance.now() + farewell,
    });
    this.#handle = resources.handle;
    failed.move();
    closeIfDropped(this, resources);
  }

  /**
   * What another worker needs to connect to this one: UCX's address, its version, the identity of the process and
   * machine, and a checksum; UCX itself reads only the first. It can be sent by any means, and contains no secret.
   */
  get address(): Uint8Array<ArrayBuffer> {
    if (this.#address === undefined) {
      const { worker } = this.#context.ucp;
      const handle = this.#open("read the address");
      using arena = new NativeArena();
      const at = arena.out("ptr");
      const length = arena.out("size");
      checkStatus("ucp_worker_get_address", worker.ucp_worker_get_address(handle, at.$address, length.$address));
      const address = new Uint8Array(ffiPort().memory(at.value, length.value));
      this.#address = withTrailer(withVersion(address, this.#context.version), ownIdentity());
      worker.ucp_worker_release_address(handle, at.value);
      this.#progress.answerPeers(); // from now on peers may connect, and need this worker to answer
    }
    return this.#address;
  }

  /**
   * Connects to a worker by its address, or to a listener by its host and port.
   *
   * For a listener, the promise settles when the connection is established. For an address, it settles before the other
   * side has been reached: whether it can be reached is known when the first message has arrived.
   *
   * @throws {UcxError} if no transport reaches it, nobody listens there, or UCS_ERR_TIMED_OUT
   * @throws {SecretError} if the listener does not know the secret, or violates the handshake
   * @throws {SystemError} EMFILE if there are too few descriptors left
   * @throws {FfiError} if Deno lacks network permission, for a host by name
   * @throws {TypeError} if the bytes are not a complete address
   */
  async connect(to: Uint8Array | ListenerAddress, options: ConnectOptions = none): Promise<UcxEndpoint> {
    return await this.#connections.connect(to, options);
  }

  /**
   * Starts listening for other programs.
   *
   * @throws {SystemError} EADDRINUSE if the port is taken, EADDRNOTAVAIL if the address is not this machine's, EACCES
   *   if the port is privileged
   * @throws {UcxError} if UCX cannot listen there for another reason
   * @throws {TypeError} if the worker is closed, for an unknown option, or if the host is a name
   * @throws {RangeError} if the port or the backlog is out of range
   */
  listen(options: ListenOptions = none): UcxListener {
    return this.#connections.listen(options);
  }

  /**
   * Receives the next message with a matching tag from any endpoint. The memory belongs to UCX until the promise is
   * settled. Memory with a home stream is UCX's when that stream's next work could begin, and that of later receives
   * afterwards; the event loop keeps running meanwhile.
   *
   * @param into contiguous writable memory: a view, a buffer, JavaScript's own, or another library's array
   * @throws {UcxError} UCS_ERR_MESSAGE_TRUNCATED if the message is longer than the memory
   * @throws {TypeError} if the worker is closed, or the memory is read-only or not contiguous; if it is a resizable
   *   ArrayBuffer, or is transferred before UCX is done with it ({@linkcode Receivable})
   * @throws {RangeError} if the tag or the mask has more than 64 bits
   */
  recv(into: Receivable, options: ReceiveOptions = none): Promise<Received> {
    return this.#receiver.recv(into, options, null, this.#protocol.workerTags);
  }

  /**
   * Receives the next message with a matching tag, and blocks this thread until it has arrived. For loops that count
   * microseconds.
   *
   * @param into contiguous writable memory: a view, a buffer, JavaScript's own, or another library's array
   * @throws {UcxError} UCS_ERR_MESSAGE_TRUNCATED if the message is longer than the memory; UCS_ERR_TIMED_OUT
   * @throws {TypeError} as {@linkcode recv}, and if earlier receives wait for a stream: await them first
   * @throws {RangeError} if the tag or the mask has more than 64 bits
   */
  recvSync(into: Receivable, options: ReceiveSyncOptions = none): Received {
    return this.#receiver.recvSync(into, options, null, this.#protocol.workerTags);
  }

  /**
   * Receives the parts of a message from {@linkcode UcxEndpoint.sendMany}, in new memory. Receives whose tags and masks
   * can match the same message take turns, in the order of the calls: a later one waits until an earlier one has its
   * message. All parts have the message's tag, and UCX does not say whose they are: give each sender a tag of its own,
   * or the parts of two senders may mix, and let no other receive match it meanwhile.
   *
   * @returns the parts, as bytes, and the sender's tag as on the wire: an array with a property `tag`. Closing a view
   *   frees its memory
   * @throws {UcxError} as {@linkcode recv}
   * @throws {TypeError} if the worker is closed, or what has arrived is not such a message
   */
  async recvMany(options: ReceiveManyOptions = none): Promise<StridedMemoryView<"uint8">[] & { readonly tag: bigint }> {
    return await this.#receiver.recvMany(options, () => null, this.#protocol.workerTags, this.#limits.messageBytes);
  }

  /**
   * Whether a message with a matching tag has arrived that no receive has claimed. It stays for the next one that does.
   *
   * @param tag the tag to match. Default 0
   * @param mask the bits of the tag that count. Default all
   * @throws {RangeError} if the tag or the mask has more than 64 bits
   */
  probe(tag = 0n, mask: bigint = everyBit): Received | null {
    return this.#receiver.probe(tag, mask);
  }

  /**
   * As {@linkcode probe}, and takes the message away from all receives: only the caller can receive it.
   *
   * @throws {RangeError} if the tag or the mask has more than 64 bits
   */
  take(tag = 0n, mask: bigint = everyBit): UcxMessage | null {
    return this.#receiver.take(tag, mask);
  }

  /**
   * The active messages of peers without an endpoint on this worker, in order of arrival, until the worker is closed.
   * Those of other peers go to their endpoints. The consumer receives or releases each one that it takes.
   *
   * @param options limits of each wait for a message
   */
  messages(options: LimitOptions = none): AsyncIterable<UcxActiveMessage> {
    this.#open("take messages");
    return messagesOf(this.#messages, options);
  }

  /**
   * How many messages were dropped: active ones and arrays of peers without an endpoint, and tagged ones of all peers.
   * See {@linkcode WorkerOptions.limits}.
   */
  get dropped(): number {
    return this.#dropped + this.#receiver.dropped;
  }

  /** The next array of peers without an endpoint on this worker, as {@linkcode UcxEndpoint.recvArray}. */
  async recvArray(options: ReceiveArrayOptions = none): Promise<StridedMemoryView> {
    this.#protocol.checkExtra("recvArray");
    this.#open("receive");
    return await recvArray(this.#arrays, options, () => new TypeError("Cannot receive an array: the worker is closed"));
  }

  /**
   * Lets peers read and write memory directly, until the region or the worker is closed.
   *
   * @param what contiguous writable memory: a view, a buffer, JavaScript's own, or another library's array. The program
   *   must ensure that no GPU stream uses it meanwhile: peers write to it at any time. Nor must an ArrayBuffer be
   *   transferred, which goes undetected: peers would write to memory that has another owner, or was freed
   * @throws {UcxError} if UCX cannot register it
   * @throws {TypeError} if the worker is closed, or the memory is read-only or not contiguous
   */
  register(what: Receivable): UcxMemoryRegion {
    this.#open("register memory");
    checkRemoteMemory(this.#context.hasRemoteMemory);
    const { operations } = this.#resources;
    const operation = operations.take();
    try {
      const buffer = takeMemory(operation, what, "register", this.#context.cuda?.unstaged ?? null);
      this.#open("register memory"); // again: another library's array is called for its memory, and may have closed it
      if (buffer !== null) hostWaits(buffer);
      const { context } = this.#context;
      return new UcxMemoryRegion({ resources: this.#resources, context, worker: this }, operation);
    } finally {
      operations.putBack(operation);
    }
  }

  /**
   * As {@linkcode UcxEndpoint.flush} of all endpoints.
   *
   * @throws {UcxError} if one of them is gone, or UCS_ERR_TIMED_OUT
   */
  async flush(options: LimitOptions = none): Promise<void> {
    checkOptions(options, limitOptionNames);
    this.#open("flush");
    checkLimitKinds(options);
    // Each endpoint separately: UCX's flush of a worker never completes once the process of a peer was killed.
    await this.#connections.flush(options);
  }

  /**
   * Makes the puts, gets and atomic operations that begin from now on take effect at each other side after all those
   * that began before, which need not have completed. They wait for a {@linkcode flush}, and later sends with them.
   *
   * @throws {TypeError} if the worker is closed
   */
  fence(): void {
    this.#open("fence");
    this.#connections.fence();
  }

  /**
   * Drives UCX once, and settles completed operations: for programs that wait in their own loop.
   *
   * @returns how many operations have completed
   */
  poll(): number {
    this.#open("poll");
    return this.#progress.poll();
  }

  /** Whether it is closing or closed. */
  get isClosed(): boolean {
    return this.#closing !== undefined || this.#resources.closed;
  }

  // law ucx/UcxWorker.close: ucx/closed_in_thread
  /**
   * Closes every endpoint once everything sent has arrived, then the worker; connections that peers are making to it
   * get up to 200 ms. Closing twice is harmless.
   *
   * @throws {RangeError} if the timeout is not a number of at least 0
   */
  async close(options: CloseWorkerOptions = none): Promise<void> {
    checkOptions(options, closeWorkerOptionNames);
    checkLimitKinds(options);
    this.#closing ??= this.#finish().then(() => this.#watchEnds());
    await closeWithin(this.#closing, options, () => this.abort());
  }

  // law ucx/UcxWorker.finish: ucx/lifecycle
  async #finish(): Promise<void> {
    await this.#connections.finish();
    if (this.#handle === 0n) return;
    const { setTimeout: pause } = nodeBuiltin("node:timers/promises");
    const flushed = this.#progress.settled(this.#resources.beginFlush(this.#progress));
    await Promise.race([flushed.catch(() => {}), pause(farewell, undefined, { ref: false })]);
    const left = this.#answersUntil - performance.now();
    if (left > 0) await pause(left);
    // Messages whose receive was cancelled while they arrived: the other side, maybe in this process, must turn, too.
    const end = performance.now() + farewell;
    while (this.#progress.cancelAll(new TypeError("The worker was closed")) > 0 && performance.now() < end) {
      await pause(1);
    }
    this.abort();
  }

  /** The JavaScript thread may end once this is closed: the watch's thread and descriptors would be left behind. */
  async #watchEnds(): Promise<void> {
    const { setTimeout: pause } = nodeBuiltin("node:timers/promises");
    const end = performance.now() + farewell;
    while (this.#resources.watch?.isEnded === false && performance.now() < end) await pause(1);
  }

  // law ucx/UcxWorker.abort: ucx/order, ucx/probe, ucx/failing_calls
  /** Closes the worker at once: operations in flight are cancelled, sent messages may not arrive. */
  abort(): void {
    if (this.#handle === 0n) return;
    const reason = new TypeError("The worker was closed");
    runAll([
      () => this.#resources.answer(this.#progress),
      () => this.#connections.abort(),
      () => this.#receiver.close(reason),
      () => this.#messages.end(),
      () => this.#arrays.end(),
      ...this.#active.map((active) => () => active.release()),
      () => this.#resources.releaseAll(this.#progress, reason),
      () => this.#connections.stopWatching(),
      () => this.#handle = 0n,
    ]);
  }

  // law ucx/UcxWorker.accept: ucx/active_messages
  /** @returns whether a message that no endpoint takes is accepted */
  #accept(queue: MessageQueue<UcxActiveMessage>, message: UcxActiveMessage): boolean {
    const waiting = this.#messages.size + this.#arrays.size;
    if (excessOf(this.#limits, waiting, message.length) === null) return queue.push(message);
    this.#dropped++;
    return false;
  }

  #askLongestHeader(): number {
    using arena = new NativeArena();
    const attributes = arena.struct(ucp_worker_attr_t);
    attributes.field_mask = UCP_WORKER_ATTR_FIELD.max_am_header;
    const status = this.#context.ucp.information.ucp_worker_query(this.#handle, attributes.$address);
    checkStatus("ucp_worker_query", status);
    return attributes.max_am_header;
  }

  /**
   * Closes the worker once everything sent has arrived. After 5 seconds it is closed at once, so that a block that has
   * thrown ends: await your sends, or {@linkcode close}, if they may take longer.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close({ timeout: patienceOfDispose });
  }

  #open(doing: string): bigint {
    if (this.#handle === 0n) throw new TypeError(`Cannot ${doing}: the worker is closed`);
    return this.#handle;
  }

  static {
    showAs(UcxWorker, (worker) => {
      const number = worker.#number;
      const { version, cuda } = worker.#context;
      return `${number} of UCX ${version}${cuda !== null ? " with CUDA" : ""}${worker.isClosed ? ", closed" : ""}`;
    });
  }
}
