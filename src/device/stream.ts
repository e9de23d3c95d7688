/**
 * A stream: work that the GPU executes in order.
 *
 * @module
 */
import { checkMade, quoted, showAs, showGiven } from "../layout/mod.ts";
import {
  CU_STREAM,
  CU_STREAM_CAPTURE_STATUS,
  CU_STREAM_LEGACY,
  CU_STREAM_PER_THREAD,
  CUresult,
} from "../../bindings/cuda_types.ts";
import { ffiPort, isAddress, NativeArena } from "../ffi/mod.ts";
import { checkSameCuda, checkSameDevice } from "./check_device.ts";
import { completion, query } from "./completion.ts";
import { type CaptureOptions, captureWork, StreamCapture } from "./graph/capture.ts";
import { captureOf, noteRecord, noteWait } from "./graph/active_captures.ts";
import { checkCuda, type CudaDriver, innermost, NEEDS_CONTEXT, observerOf } from "../driver/mod.ts";
import type { CudaDevice } from "./device.ts";
import { besideCaptures } from "./relaxed_capture.ts";
import { closeIfDropped, registerFinalizer } from "./finalizer.ts";
import { CudaEvent } from "./event.ts";
import type { CudaGraph } from "./graph/graph.ts";
import { atNext } from "./implied_order.ts";
import type { ReferenceCount } from "./reference_count.ts";
import { internals, isDoneByPoll, type StreamInternals } from "./stream_internals.ts";
import { StreamState, type Successors } from "./stream_state.ts";

/** A CUDA stream. */
export class CudaStream {
  static readonly #successors: Successors = {
    make: (state) => new CudaStream(state, true),
    shut: (successor) => void (successor.#isShut = true),
  };

  /** The device whose context it belongs to. */
  readonly device: CudaDevice;
  /** What keeps a foreign stream alive. */
  readonly owner: unknown;
  readonly #handle: bigint;
  readonly #argument: bigint | number;
  /** The handle rounded to a number: numbers that differ are compared at once, and bigints take 8 ns in Deno. */
  readonly #rounded: number;
  readonly #isOwned: boolean;
  /**
   * Whether it is known, without querying the driver, to ignore the legacy default stream, and so to wait only for what
   * it was made to wait for.
   *
   * @internal
   */
  readonly isKnownNonBlocking: boolean;
  /**
   * Whether driver calls that name this stream always need the device's context to be current. On other streams they
   * may return CUDA_ERROR_INVALID_CONTEXT. Lets callers inline `enqueue` on hot paths, where its closure would be
   * measurable.
   *
   * @internal
   */
  readonly needsContext: boolean;
  readonly #references: ReferenceCount;
  readonly #state: StreamState;
  /** Whether it is closed or destroyed: one field, because every call checks it. */
  #isShut: boolean;
  /** Whether `close` leaves it open: a successor, or a default stream of a device, cannot be closed. */
  readonly #ignoresClose: boolean;

  private constructor(state: StreamState, ignoresClose = false) {
    checkMade(
      state?.references,
      "CudaStream",
      "device.createStream(), or device.foreignStream(handle) for one of another library",
    );
    this.device = state.device;
    this.owner = state.owner;
    this.#handle = state.handle;
    this.#rounded = Number(state.handle);
    this.#argument = ffiPort().handle(state.handle);
    this.isKnownNonBlocking = state.isNonBlocking;
    this.needsContext = state.isDefault;
    this.#isOwned = state.isOwned;
    this.#references = state.references;
    this.#state = state;
    this.#ignoresClose = ignoresClose;
    this.#isShut = state.references.isDestroyed;
  }

  /**
   * For the rooms above.
   *
   * @internal
   */
  get [internals](): StreamInternals {
    return this.#state;
  }

  // law device/CudaStream.fromHandle: copy/page_locked
  /** A foreign stream, which its owner destroys. `owner` is kept alive as long as this object. */
  static fromHandle(device: CudaDevice, handle: bigint, owner?: unknown): CudaStream {
    if (!isAddress(handle)) {
      throw new RangeError(`Cannot use ${handle} as a stream handle: expected 64 bits`);
    }
    observerOf(device.driver)?.foreignStream(handle);
    return new CudaStream(new StreamState(device, handle, false, owner, null, CudaStream.#successors));
  }

  /**
   * A default stream of a device, which cannot be destroyed or closed. Used by {@linkcode CudaDevice.defaultStream}.
   *
   * @internal
   */
  static ofDevice(device: CudaDevice, handle: bigint): CudaStream {
    const state = new StreamState(device, handle, false, undefined, null, CudaStream.#successors);
    return state.successor; // which `close` leaves open
  }

  // law device/CudaStream.adopt: device/dropped
  /**
   * A stream that `close` destroys. Used by {@linkcode CudaDevice.createStream}.
   *
   * @internal
   * @param retained keeps the device alive until the stream is destroyed
   */
  static adopt(device: CudaDevice, handle: bigint, nonBlocking: boolean, retained: Disposable): CudaStream {
    const state = new StreamState(device, handle, nonBlocking, undefined, retained, CudaStream.#successors);
    const stream = new CudaStream(state);
    closeIfDropped(stream, state);
    return stream;
  }

  // law device/CudaStream.handle: device/idle_streams
  /**
   * `CUstream`, the same as `cudaStream_t`. It is valid until the stream is closed, or this object is collected.
   * Its holder may enqueue work that is not tracked here: from now on every idle check queries the driver.
   *
   * @throws {TypeError} if the stream is closed
   */
  get handle(): bigint {
    this.#state.isShared = true;
    return this.handleFor("use");
  }

  /**
   * The handle in the form that the runtime passes fastest, for the driver functions that take it (`cuEventRecord`,
   * `cuStreamWaitEvent`).
   *
   * @internal
   * @throws {TypeError} if the stream is closed
   */
  get argument(): bigint | number {
    if (this.#isShut) this.#open("use");
    this.#state.isIdle = false;
    return this.#argument;
  }

  /**
   * The handle, for an operation that errors name: `launch a kernel on`.
   *
   * @internal
   * @throws {TypeError} if the stream is closed
   */
  handleFor(doing: string): bigint {
    this.#state.isIdle = false;
    return this.#open(doing);
  }

  // law device/CudaStream.open: device/stream, memory/memory_programs, sim/behaviours
  #open(doing: string): bigint {
    if (this.#isShut) throw this.#closed(doing);
    return this.#handle;
  }

  #closed(doing: string): TypeError {
    return new TypeError(`Cannot ${doing} a closed CudaStream${quoted(this.name)}`);
  }

  // law device/CudaStream.orSuccessor: device/stream, memory/memory_programs, sim/behaviours
  /**
   * An open object of this stream for its retainers, even when its user has closed it: this one, or its successor.
   * Buffers whose home the stream is continue with it. This one, closed, if the stream is not retained.
   *
   * @internal
   */
  get orSuccessor(): CudaStream {
    return this.#isShut && !this.#references.isDestroyed ? this.#state.successor : this;
  }

  // law device/CudaStream.isLegacy: memory/beside_captures
  /**
   * Whether it is the legacy default stream, which waits for every blocking stream of its context and makes it wait.
   */
  get isLegacy(): boolean {
    return this.#handle <= CU_STREAM_LEGACY;
  }

  // law device/CudaStream.enqueue: device/stream, memory/memory_programs, sim/behaviours
  /**
   * Makes a driver call that names this stream. A created stream identifies its context itself. For a default stream,
   * and for a driver that requires a current context all the same (its call then has no effect but the error), the
   * device's context is made current, which costs two more calls.
   *
   * @returns what the driver returned
   */
  enqueue(call: () => number): number {
    this.#state.isIdle = false;
    if (!this.needsContext) {
      const code = call();
      if (code !== NEEDS_CONTEXT) return code;
    }
    return this.device.withContext(call);
  }

  // law device/CudaStream.record: device/stream, memory/memory_programs, sim/behaviours, device/dropped
  /** Marks the current end of the stream with an event: the given one, or a new one that the caller closes. */
  record(given?: CudaEvent): CudaEvent {
    if (this.#isShut) this.#open("record an event in");
    if (given !== undefined) {
      if (!(given instanceof CudaEvent)) {
        throw noEvent("record an event: expected a CudaEvent, or nothing for a new one", given);
      }
      if (given.device !== this.device) {
        given.argumentFor("record"); // reports a closed event first, wherever it is from
        checkSameDevice(given, this.device, "Cannot record an event");
      }
      this.#mark(given);
      return given;
    }
    const event = this.recordNew();
    event[registerFinalizer]();
    return event;
  }

  // law device/CudaStream.recordNew: device/stream, memory/memory_programs, sim/behaviours
  /**
   * As {@linkcode CudaStream.record} of a new event, for callers that always close it.
   *
   * @internal
   */
  recordNew(): CudaEvent {
    this.#open("record an event in");
    const event = this.device.makeEvent();
    try {
      this.#mark(event);
    } catch (error) {
      event.close();
      throw error;
    }
    return event;
  }

  // law device/CudaStream.wait: device/stream, memory/memory_programs, sim/behaviours
  /** Makes all later work of this stream wait for an event, or for everything enqueued so far on another stream. */
  wait(other: CudaEvent | CudaStream): void {
    if (this.#isShut) this.#open("wait for anything in");
    if (other instanceof CudaStream) {
      const handle = other.#open("wait for");
      if (other.#rounded === this.#rounded && handle === this.#handle && other.device === this.device) return;
      checkSameCuda(other, this.device, "Cannot wait for a stream");
      const event = other.device.acquireEvent();
      try {
        other.#mark(event);
        this.#waitFor(event);
      } finally {
        other.device.releaseEvent(event);
      }
      return;
    }
    if (!(other instanceof CudaEvent)) throw noEvent("wait: expected a CudaEvent or a CudaStream", other);
    if (other.device !== this.device) {
      other.argumentFor("wait for");
      checkSameCuda(other, this.device, "Cannot wait for an event");
    }
    this.#waitFor(other);
  }

  // law device/CudaStream.mark: device/stream, memory/memory_programs, sim/behaviours
  /** Records an event of the stream's device, without checking that it is one. */
  #mark(event: CudaEvent): void {
    const { event: events } = this.device.driver;
    this.#state.isIdle = false;
    const code = this.needsContext ? NEEDS_CONTEXT : events.cuEventRecord(event.argumentFor("record"), this.#argument);
    if (code !== CUresult.CUDA_SUCCESS) recordWithin(this, event, code);
    noteRecord(event, this);
  }

  // law device/CudaStream.waitFor: device/stream, memory/memory_programs, sim/behaviours
  /** Makes the stream wait for an event of the same Cuda, without checking that it is one. */
  #waitFor(event: CudaEvent): void {
    const { stream: streams } = this.device.driver;
    this.#state.isIdle = false;
    const code = this.needsContext
      ? NEEDS_CONTEXT
      : streams.cuStreamWaitEvent(this.#argument, event.argumentFor("wait for"), 0);
    if (code !== CUresult.CUDA_SUCCESS) waitWithin(this, event, code);
    noteWait(this, event);
  }

  /**
   * Captures the work that a function enqueues on this stream, instead of running it. A stream that waits for this one
   * meanwhile joins the capture (`other.wait(stream)`), and must be waited for before the function returns
   * (`stream.wait(other)`).
   *
   * Meanwhile calls that would wait for the device or query it fail, as do allocations on the stream: allocate before.
   * If the function throws, the captured work is discarded, and the stream is as it was before.
   *
   * @param work enqueues the work; it must not be asynchronous, because nothing else may be enqueued meanwhile
   * @returns the graph, which the caller closes
   * @throws {TypeError} for the legacy default stream, for a stream that takes part in a capture already, and if `work`
   *   returns a promise
   * @throws {CudaError} everything that {@linkcode StreamCapture.end} throws
   *
   * @example
   * ```ts ignore
   * using graph = stream.capture(() => kernel.launch(stream, 64, 256, [buffer]));
   * using exec = graph.instantiate();
   * for (let i = 0; i < 1000; i++) exec.launch(stream);
   * ```
   */
  capture<T>(work: () => T extends PromiseLike<unknown> ? never : T, options: CaptureOptions = {}): CudaGraph {
    return captureWork(this, work, options);
  }

  /** Begins a capture that ends where you choose. See {@linkcode CudaStream.capture}. */
  beginCapture(options: CaptureOptions = {}): StreamCapture {
    return new StreamCapture(this, options);
  }

  /** Whether the stream takes part in a capture, by any library. */
  get isCapturing(): boolean {
    const { cuStreamIsCapturing } = this.device.driver.capture;
    return this.#ask("cuStreamIsCapturing", cuStreamIsCapturing) !== CU_STREAM_CAPTURE_STATUS.NONE;
  }

  /** The name set by `createStream({ name })`, which errors and reports show; null if it has none. */
  get name(): string | null {
    return this.#state.name;
  }

  /** Its name if it has one, its device, and whether it is closed or captured: what the console shows. */
  toString(): string {
    const { device } = this;
    const kind = this.#handle === CU_STREAM_PER_THREAD
      ? " (the thread's default)"
      : this.isLegacy
      ? " (the default)"
      : "";
    const state = this.#isShut ? ", closed" : captureOf(this) === null ? "" : ", captured";
    return `CudaStream${quoted(this.name)}${kind} of ${device}${state}`;
  }

  // law device/CudaStream.synchronize: memory/beside_captures, device/stream, memory/memory_programs, sim/behaviours,
  //   order/pageable_in_use
  /** Blocks until everything enqueued so far is done. */
  synchronize(): void {
    const { driver } = this.device;
    const handle = this.#open("synchronize");
    const synchronize = () => this.enqueue(() => driver.stream.cuStreamSynchronize(handle));
    checkCuda(driver, "cuStreamSynchronize", besideCaptures(driver, synchronize));
    this.#state.passed();
  }

  // law device/CudaStream.waitUntilReady: copy/page_locked, order/pageable_in_use
  /**
   * Blocks until the stream's next work could begin. A blocking stream comes after work enqueued on the legacy default
   * stream, and the legacy stream after work enqueued on blocking streams: `synchronize` of an idle stream does not
   * wait for that.
   */
  waitUntilReady(): void {
    if (this.#isKnownIdle) return;
    if (this.isKnownNonBlocking) return this.synchronize();
    atNext(this, (event) => event.synchronize());
    this.#state.watcher?.onPassed();
  }

  /**
   * Settles when the stream's next work could begin: {@linkcode CudaStream.waitUntilReady} for callers that need not
   * block.
   */
  async ready(): Promise<void> {
    if (!this.isReady) await this.completed(); // the host function that this enqueues comes after all of it
  }

  // law device/CudaStream.isReady: copy/page_locked
  /** Whether the stream's next work could begin now: see {@linkcode CudaStream.waitUntilReady}. */
  get isReady(): boolean {
    if (this.#isKnownIdle) return true;
    if (this.isKnownNonBlocking) return this.isDone;
    return atNext(this, (event) => event.isDone);
  }

  // law device/CudaStream.isKnownIdle: device/idle_streams
  /**
   * Whether nothing was enqueued since the stream was last idle, and nothing comes before its next work. Known without
   * querying the driver, which takes 3 us where messages of a GPU's memory take 9 (an H100, driver 580).
   */
  get #isKnownIdle(): boolean {
    return this.isKnownNonBlocking && this.#state.isIdle && !this.#isShut;
  }

  /**
   * Settles when everything enqueued so far is done. The event loop keeps running, and no driver thread runs
   * JavaScript: the stream closes one of two connected sockets, which wakes the event loop.
   *
   * @throws {CudaError} if the work has failed
   */
  async completed(): Promise<void> {
    using _ = this.retained("wait for"); // it may be closed meanwhile
    await completion(this, this.#handle);
  }

  /** Its priority: see {@linkcode CudaDevice.priorityRange}. */
  get priority(): number {
    return this.#ask("cuStreamGetPriority", this.device.driver.stream.cuStreamGetPriority);
  }

  /** Whether it ignores the legacy default stream, instead of waiting for it and making it wait. */
  get isNonBlocking(): boolean {
    return (this.#ask("cuStreamGetFlags", this.device.driver.stream.cuStreamGetFlags) & CU_STREAM.NON_BLOCKING) !== 0;
  }

  /** Queries the driver for a numeric property, which it writes to `out`. */
  #ask(name: string, query: (stream: bigint, out: bigint) => number): number {
    const handle = this.#open("ask");
    using arena = new NativeArena();
    const out = arena.out("i32");
    checkCuda(this.device.driver, name, this.enqueue(() => query(handle, out.$address)));
    return out.value;
  }

  // law device/CudaStream.isDone: device/stream, memory/memory_programs, sim/behaviours, order/pageable_in_use
  /** Whether everything enqueued so far is done. */
  get isDone(): boolean {
    return this.#isDone(this.device.driver);
  }

  /** The same, for code that polls: see {@linkcode isDoneByPoll}. */
  get [isDoneByPoll](): boolean {
    return this.#isDone(innermost(this.device.driver));
  }

  #isDone(driver: CudaDriver): boolean {
    this.#open("ask");
    const code = query(this, this.#handle, driver);
    if (code === CUresult.CUDA_ERROR_NOT_READY) return false;
    checkCuda(this.device.driver, "cuStreamQuery", code);
    if (driver === this.device.driver) this.#state.passed();
    return true;
  }

  /** Whether `close` has been called. */
  get isClosed(): boolean {
    return this.#isShut;
  }

  // law device/CudaStream.retain: device/stream, memory/memory_programs, sim/behaviours
  /**
   * Retains the stream and its context until `release` is called, exactly once, even if both are closed meanwhile. A
   * buffer retains its home stream this way, on which it will be freed. For frequent calls: it allocates nothing.
   *
   * @internal
   * @throws {TypeError} if the stream or its Cuda is closed
   */
  retain(): void {
    this.#open("retain");
    if (!this.#isOwned) this.device.retain(); // a stream of our own retains its device anyway
    this.#references.retain();
  }

  /**
   * Retains the stream until the result is disposed, as `retain` does, but even after the `Cuda` was closed: for code
   * that still has work to finish.
   *
   * @throws {TypeError} if the stream is closed
   */
  retained(doing = "retain"): Disposable {
    this.#open(doing);
    const retained = new DisposableStack();
    retained.use(this.device.retained({ evenClosed: true }));
    retained.use(this.#references.retained()); // released first
    return retained;
  }

  // law device/CudaStream.release: device/stream, memory/memory_programs, sim/behaviours
  /**
   * Ends one {@linkcode CudaStream.retain}.
   *
   * @internal
   */
  release(): void {
    this.#references.release();
    if (!this.#isOwned) this.device.release();
  }

  // law device/CudaStream.close: device/stream, memory/memory_programs, sim/behaviours
  /**
   * Destroys the stream once no buffer has it as its home and its work is done, without waiting for either. It cannot
   * be used any more: buffers continue with the object that is their `stream`. A foreign stream is not destroyed, and a
   * device's own object of a default stream stays open. Closing twice is harmless.
   */
  close(): void {
    if (this.#isShut || this.#ignoresClose) return;
    const state = this.#state;
    const { beforeClose } = state;
    state.beforeClose = null;
    beforeClose?.();
    this.#isShut = true;
    state.close();
  }

  /** Destroys the stream once its work is done. */
  [Symbol.dispose](): void {
    this.close();
  }

  static {
    showAs(CudaStream, (stream) => {
      const isKnown = stream.name !== null || stream.#handle <= CU_STREAM_PER_THREAD;
      // The checker identifies unnamed streams by their handle, too.
      return `${isKnown ? "" : `0x${stream.#handle.toString(16)} `}${stream}`.replace(/CudaStream /, "");
    });
  }
}

function noEvent(doing: string, given: unknown): TypeError {
  return new TypeError(`Cannot ${doing}, got ${showGiven(given)}`);
}

// law device/recordWithin: device/stream, memory/memory_programs, sim/behaviours
/**
 * Records an event after the first attempt failed. Not a part of `record`, which is small enough to be inlined; nor is
 * the next function a part of `wait`.
 *
 * @param first the driver's result of that attempt
 */
function recordWithin({ device, argument: stream }: CudaStream, marked: CudaEvent, first: number): void {
  const { driver } = device;
  const event = marked.argumentFor("record");
  const again = () => driver.event.cuEventRecord(event, stream);
  checkCuda(driver, "cuEventRecord", first === NEEDS_CONTEXT ? device.withContext(again) : first);
}

// law device/waitWithin: device/stream, memory/memory_programs, sim/behaviours
/** Makes a stream wait after the first attempt failed. @param first the driver's result of that attempt */
function waitWithin({ device, argument: stream }: CudaStream, awaited: CudaEvent, first: number): void {
  const { driver } = device;
  const event = awaited.argumentFor("wait for");
  const again = () => driver.stream.cuStreamWaitEvent(stream, event, 0);
  checkCuda(driver, "cuStreamWaitEvent", first === NEEDS_CONTEXT ? device.withContext(again) : first);
}
