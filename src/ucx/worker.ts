/**
 * A worker: where UCX makes progress, where messages arrive, and from which endpoints lead to other workers.
 *
 * @module
 */
import {
  UCP_EP_PARAMS_FIELD,
  ucp_ep_params_t,
  UCP_ERR_HANDLING_MODE,
  UCP_WORKER_PARAMS_FIELD,
  ucp_worker_params_t,
  UCS_MEMORY_TYPE,
  UCS_THREAD_MODE,
} from "../../bindings/ucp_types.ts";
import { ffiPort, NativeArena, type NativeCallback, nodeBuiltin } from "../ffi/mod.ts";
import { checkOptions, none, type OptionNames } from "../layout/mod.ts";
import type { MemoryBuffer } from "../memory/mod.ts";
import { hostReady, hostWaits } from "../order/mod.ts";
import { isIntact, processOf, withTrailer } from "./address.ts";
import { UcxEndpoint } from "./endpoint.ts";
import { checkStatus, UcxError } from "./error.ts";
import type { UcpFunctions } from "./library.ts";
import { checkTimeout, timeLimit } from "./limit.ts";
import { type Receivable, takeMemory } from "./message_memory.ts";
import { type Operation, Operations } from "./operation.ts";
import { writeFields } from "./struct_fields.ts";
import { PeerLiveness } from "./peer_liveness.ts";
import { ownIdentity, PeerProcess } from "./process_identity.ts";
import { Progress, type ProgressMode, progressModes } from "./progress.ts";
import { advice } from "./status.ts";
import { StartQueue } from "./start_queue.ts";
import { checkMatch, everyBit } from "./tag.ts";

/**
 * For how long a worker lets connections get made before it closes, in milliseconds. A large send has UCX ask the other
 * side to connect back, and when either side goes meanwhile, UCX before 1.14 ends the process of that other side with a
 * failed assertion (openucx/ucx#8175).
 */
const farewell = 200;

/** What has been received. */
export interface Received {
  /** Bytes that arrived, at most as many as there was room for. */
  readonly length: number;
  /** The sender's tag. */
  readonly tag: bigint;
}

/** Options of {@linkcode UcxWorker.recv}. */
export interface ReceiveOptions {
  /** The tag to match. Default 0. */
  readonly tag?: bigint;
  /** The bits of the tag that count. Default all. */
  readonly mask?: bigint;
  /** Cancels the receive; the promise is then rejected with the signal's reason. */
  readonly signal?: AbortSignal;
  /** The same after so many milliseconds, with UCS_ERR_TIMED_OUT. */
  readonly timeout?: number;
}

const receiveOptionNames: OptionNames<ReceiveOptions> = { tag: true, mask: true, signal: true, timeout: true };

/** Options of {@linkcode UcxWorker.recvSync}. */
export interface ReceiveSyncOptions {
  /** The tag to match. Default 0. */
  readonly tag?: bigint;
  /** The bits of the tag that count. Default all. */
  readonly mask?: bigint;
  /** Cancels the receive after so many milliseconds, with UCS_ERR_TIMED_OUT. */
  readonly timeout?: number;
}

const receiveSyncOptionNames: OptionNames<ReceiveSyncOptions> = { tag: true, mask: true, timeout: true };

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
}

const connectOptionNames: OptionNames<ConnectOptions> = { unchecked: true };

/** What a worker needs of its context. */
export interface WorkerContext {
  readonly ucp: UcpFunctions;
  readonly context: bigint;
  readonly hasCuda: boolean;
  /** Bytes of a request of UCX's. */
  readonly requestBytes: number;
  /** Called once, when the worker is closed: whether it is gone, or has to stay as long as the process. */
  forget(isGone: boolean): void;
}

/** A UCX worker. All of it happens on the JavaScript thread. */
export class UcxWorker {
  readonly #context: WorkerContext;
  readonly #arena = new NativeArena();
  readonly #operations: Operations;
  readonly #endpoints = new Map<bigint, UcxEndpoint>();
  readonly #onError: NativeCallback;
  readonly #progress: Progress;
  readonly #peers = new PeerLiveness();
  readonly #starts = new StartQueue();
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
   * Connects to the worker with the given address. The promise settles before the other side has been reached: whether
   * it can be is known when the first message has arrived.
   *
   * @throws {UcxError} if no transport reaches it
   * @throws {TypeError} if the bytes are no address, or not all of it
   */
  // deno-lint-ignore require-await -- a listener's answer, in the same method, will take time
  async connect(to: Uint8Array, options: ConnectOptions = {}): Promise<UcxEndpoint> {
    checkOptions(options, connectOptionNames);
    const handle = this.#open("connect");
    if (to.length === 0) throw new TypeError("Cannot connect: expected a worker's address, got no bytes");
    const isOurs = isIntact(to);
    if (!options.unchecked && !isOurs) {
      throw new TypeError(
        `Cannot connect: expected what a worker's address says, got ${to.length} other or damaged bytes. ` +
          "Pass { unchecked: true } for the address of a worker that is not Causeway's.",
      );
    }
    const process = isOurs ? PeerProcess.find(processOf(to)) : null; // first: it may end any time
    using arena = new NativeArena();
    const address = arena.bytes(to.length);
    address.bytes.set(to);
    const parameters = arena.struct(ucp_ep_params_t);
    writeFields(parameters, UCP_EP_PARAMS_FIELD, {
      address: address.address,
      err_mode: UCP_ERR_HANDLING_MODE.PEER,
      err_handler: { cb: this.#onError.address, arg: 0n },
    });
    const made = arena.out("ptr");
    const { ucp, hasCuda } = this.#context;
    const status = ucp.endpoint.ucp_ep_create(handle, parameters.$address, made.$address);
    checkStatus("ucp_ep_create", status, advice(status));
    const endpoint: UcxEndpoint = new UcxEndpoint({
      ucp,
      hasCuda,
      progress: this.#progress,
      operations: this.#operations,
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
   * @param into contiguous writable memory: a view, a buffer or a Uint8Array
   * @throws {UcxError} UCS_ERR_MESSAGE_TRUNCATED if the message is longer than the memory
   * @throws {TypeError} if the worker is closed, or the memory is read-only or not contiguous
   * @throws {RangeError} if the tag or the mask has more than 64 bits
   */
  recv(into: Receivable, options: ReceiveOptions = none): Promise<Received> {
    try {
      if (options !== none) checkOptions(options, receiveOptionNames);
      this.#open("receive");
      const { tag = 0n, mask = everyBit, signal } = options;
      checkMatch(tag, mask);
      signal?.throwIfAborted();
      if (options.timeout !== undefined) checkTimeout(options.timeout);
      const operation = this.#operations.take();
      const ready = this.#take(operation, into, hostReady) ?? null;
      if (ready === null && this.#starts.isEmpty && options.timeout === undefined) {
        this.#begin(operation, tag, mask);
        return this.#progress.settled(operation, signal);
      }
      return this.#receiveLater(operation, tag, mask, ready, options);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * Receives the next message with a matching tag, and waits for it in place: nothing else happens in this thread
   * meanwhile. For loops that count microseconds.
   *
   * @param into contiguous writable memory: a view, a buffer or a Uint8Array
   * @throws {UcxError} UCS_ERR_MESSAGE_TRUNCATED if the message is longer than the memory; UCS_ERR_TIMED_OUT
   * @throws {TypeError} as {@linkcode recv}, and if earlier receives wait for a stream: await them first
   * @throws {RangeError} if the tag or the mask has more than 64 bits
   */
  recvSync(into: Receivable, options: ReceiveSyncOptions = none): Received {
    if (options !== none) checkOptions(options, receiveSyncOptionNames);
    this.#open("receive");
    const { tag = 0n, mask = everyBit, timeout } = options;
    checkMatch(tag, mask);
    if (timeout !== undefined) checkTimeout(timeout);
    if (!this.#starts.isEmpty) {
      throw new TypeError("Cannot receive: earlier receives wait for a stream. Await them first.");
    }
    const operation = this.#operations.take();
    this.#take(operation, into, hostWaits);
    this.#begin(operation, tag, mask);
    this.#progress.wait(operation, timeout);
    return this.#progress.taken(operation, timeout) as Received; // of a tagged operation
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

  /** Has an operation take the memory to receive into. @returns what `order` answers for a buffer */
  #take<T>(operation: Operation, into: Receivable, order: (buffer: MemoryBuffer) => T): T | undefined {
    try {
      const buffer = takeMemory(operation, into, "receive into", this.#context.hasCuda);
      operation.call = "ucp_tag_recv_nbx";
      return buffer === null ? undefined : order(buffer);
    } catch (error) {
      operation.release();
      this.#operations.give(operation);
      throw error;
    }
  }

  #begin(operation: Operation, tag: bigint, mask: bigint): void {
    operation.prepare("tagged", operation.isCuda ? UCS_MEMORY_TYPE.CUDA : UCS_MEMORY_TYPE.HOST);
    const { address, count, parameters } = operation;
    const begun = this.#context.ucp.tag.ucp_tag_recv_nbx(this.#handle, address, count, tag, mask, parameters);
    this.#progress.begun(operation, begun);
  }

  /** Receives when the memory is there and it is its turn, if the limits allow. */
  #receiveLater(
    operation: Operation,
    tag: bigint,
    mask: bigint,
    ready: Promise<void> | null,
    options: ReceiveOptions,
  ): Promise<Received> {
    const { signal, clear } = timeLimit(operation.call, options);
    const release = () => {
      operation.release();
      this.#operations.give(operation);
    };
    return this.#starts.add({ ready, release, signal }, () => {
      this.#begin(operation, tag, mask);
      return this.#progress.settled<Received>(operation, signal);
    }).finally(clear);
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
    await Promise.all(Array.from(this.#endpoints.values(), (endpoint) => endpoint.close()));
    if (this.#handle === 0n) return;
    const { setTimeout: pause } = nodeBuiltin("node:timers/promises");
    const left = this.#answersUntil - performance.now();
    await Promise.race([this.#flush(), pause(farewell, undefined, { ref: false })]);
    if (left > 0) await pause(left);
    // Messages whose receive was cancelled while they arrived: the other side, maybe in this process, has to turn, too.
    const end = performance.now() + farewell;
    while (this.#progress.cancelAll(new TypeError("The worker was closed")) > 0 && performance.now() < end) {
      await pause(1);
    }
    this.abort();
  }

  /** Settles when what UCX itself has to say to others has been sent, its part of making connections included. */
  async #flush(): Promise<void> {
    const operation = this.#operations.take();
    operation.call = "ucp_worker_flush_nbx";
    operation.prepare("plain", UCS_MEMORY_TYPE.HOST, null, "its own");
    const begun = this.#context.ucp.endpoint.ucp_worker_flush_nbx(this.#handle, operation.parameters);
    this.#progress.begunForeign(operation, begun);
    await this.#progress.settled(operation).catch(() => {}); // to a peer that is gone, nothing can be sent
  }

  // law ucx/UcxWorker.abort: ucx/order
  /** Closes the worker at once: what is under way is cancelled, what was sent may not arrive. */
  abort(): void {
    if (this.#handle === 0n) return;
    for (const endpoint of this.#endpoints.values()) endpoint.close({ force: true }).catch(() => {}); // the worker goes first
    const reason = new TypeError("The worker was closed");
    this.#starts.stop(reason);
    this.#progress.stop(reason);
    this.#peers.close();
    // A message that is still arriving cannot be taken from UCX 1.13, which would end the process with a failed assertion.
    const isArriving = this.#operations.pending().some(({ call }) => call === "ucp_tag_recv_nbx");
    if (!isArriving) this.#destroy();
    this.#handle = 0n;
    this.#context.forget(!isArriving);
  }

  #destroy(): void {
    this.#context.ucp.worker.ucp_worker_destroy(this.#handle);
    for (const operation of this.#operations.pending()) operation.release(); // UCX has forgotten them
    this.#operations.close();
    this.#onError.close();
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
