/**
 * A GPU: its properties, the objects made on it, and its lifetime.
 *
 * @module
 */
import { CU_STREAM_LEGACY, CU_STREAM_PER_THREAD } from "../../bindings/cuda_types.ts";
import { NativeArena, runAll } from "../ffi/mod.ts";
import {
  checkBoolean,
  checkMade,
  checkOptions,
  giveName,
  nameOf,
  none,
  quoted,
  showAs,
  showBytes,
  showGiven,
} from "../layout/mod.ts";
import type { DeviceMemoryResource } from "../memory/mod.ts";
import { checkCuda, type CudaDriver, isSimulated, observerOf } from "../driver/mod.ts";
import { createEvent, type EventOptions, importEvent } from "./create_event.ts";
import { createStream, priorityRange, type StreamOptions } from "./create_stream.ts";
import type { CudaEvent } from "./event.ts";
import { registerFinalizer } from "./finalizer.ts";
import type { IpcHandle } from "./ipc_handle.ts";
import { type CompileOptions, Program } from "./kernel/program.ts";
import { PrimaryContext } from "./primary_context.ts";
import { type DeviceAttribute, DeviceProperties, type PeerAttribute } from "./properties.ts";
import { ReferenceCount } from "./reference_count.ts";
import { besideCaptures } from "./relaxed_capture.ts";
import { CudaStream } from "./stream.ts";

/** Makes `device.memory`: memory is a room above, so the code that makes the device passes this in. */
type MakeMemory = (device: CudaDevice) => DeviceMemoryResource;

/** How many unused events a device keeps: twice the number of live exports at which exports are polled. */
const maxSpareEvents = 128;

const retainOptionNames = { evenClosed: true } as const;

/**
 * A GPU.
 *
 * Its primary context is the one that every other library in the process uses too (torch, CuPy, the CUDA runtime). It
 * is retained on first use, made current only for the duration of a call, and released by `Cuda.close()`: the context
 * that was current before a call is current after it.
 */
export class CudaDevice {
  /** The driver that the device belongs to. */
  readonly driver: CudaDriver;
  /** Its number, from 0. */
  readonly ordinal: number;
  /**
   * All devices of the same driver by ordinal, this one included.
   *
   * @internal
   */
  readonly siblings: readonly CudaDevice[];
  readonly #makeMemory: MakeMemory;
  readonly #arena = new NativeArena();
  readonly #answer = this.#arena.out("ptr");
  readonly #out = this.#arena.out("ptr");
  readonly #properties: DeviceProperties;
  readonly #primary: PrimaryContext;
  readonly #references = new ReferenceCount(() => this.#release());
  #defaultStream: CudaStream | undefined;
  #perThreadStream: CudaStream | undefined;
  #foreignStream: CudaStream | undefined;
  #foreignHandle = 0n;
  #memory: DeviceMemoryResource | undefined;
  readonly #spareEvents: CudaEvent[] = [];
  readonly #beforeClose: (() => void)[] = [];
  readonly #freedOn = new Set<CudaDevice>();

  /** Use `Cuda.open().devices`. */
  constructor(driver: CudaDriver, ordinal: number, siblings: readonly CudaDevice[], makeMemory: MakeMemory) {
    checkMade(makeMemory, "CudaDevice", "cuda.device(ordinal)");
    this.driver = driver;
    this.ordinal = ordinal;
    this.siblings = siblings;
    this.#makeMemory = makeMemory;
    this.#properties = new DeviceProperties(driver, ordinal, this.#arena);
    this.#primary = new PrimaryContext(driver, this.#properties.handle, this.#arena);
  }

  /** The name, for example `NVIDIA H200`. */
  get name(): string {
    return this.#properties.name;
  }

  /** The name set by `cuda.device(ordinal, { name })`; null if it has none. */
  get label(): string | null {
    return nameOf(this);
  }

  /** Sets its name, as `cuda.device(ordinal, { name })` does. @throws {TypeError} for an empty name */
  set label(name: string) {
    giveName(this, name);
    observerOf(this.driver)?.nameDevice(this.ordinal, name);
  }

  /** Its name in errors and reports: `device 0`, or with a label `device 0 "prefill"`. */
  toString(): string {
    return `device ${this.ordinal}${quoted(this.label)}`;
  }

  /**
   * The UUID as nvidia-smi prints it: `GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`, or `MIG-...` for a slice of a GPU.
   */
  get uuid(): string {
    return this.#properties.uuid;
  }

  /** The PCI bus id: `0000:1b:00.0`. */
  get pciBusId(): string {
    return this.#properties.pciBusId;
  }

  /** The compute capability: `[9, 0]`. */
  get computeCapability(): [major: number, minor: number] {
    return [this.attribute("COMPUTE_CAPABILITY_MAJOR"), this.attribute("COMPUTE_CAPABILITY_MINOR")];
  }

  /** Bytes of memory on the device. */
  get totalMemory(): number {
    this.#checkThere();
    return this.#properties.totalMemory;
  }

  /** A device attribute by its name in the header, without the prefix `CU_DEVICE_ATTRIBUTE_`. */
  attribute(name: DeviceAttribute): number {
    this.#checkThere();
    return this.#properties.attribute(name);
  }

  /** Whether this device can read and write another device's memory directly. */
  canAccessPeer(peer: CudaDevice): boolean {
    this.#checkPeer(peer, "query access to");
    return this.#properties.canAccessPeer(peer.#properties);
  }

  /**
   * An attribute of the path to another device's memory, by its name in the header without the prefix
   * `CU_DEVICE_P2P_ATTRIBUTE_`: `PERFORMANCE_RANK` (0 is the fastest), `NATIVE_ATOMIC_SUPPORTED` (1 over NVLink).
   *
   * @throws {TypeError} for a device of another Cuda, or an unknown name
   * @throws {CudaError} CUDA_ERROR_INVALID_DEVICE for the device itself
   */
  peerAttribute(name: PeerAttribute, peer: CudaDevice): number {
    this.#checkPeer(peer, "query the path to");
    return this.#properties.peerAttribute(name, peer.#properties);
  }

  #checkPeer(peer: CudaDevice, doing: string): void {
    if (!(peer instanceof CudaDevice)) throw new TypeError(`Cannot ${doing} ${showGiven(peer)}: expected a device`);
    if (peer.driver !== this.driver) throw new TypeError(`Cannot ${doing} a device of another Cuda`);
    this.#checkThere();
  }

  // law device/CudaDevice.isActive: device/device, memory/memory_programs
  /**
   * Whether the primary context is in use in this process, by us or another library. Does not retain it. False once the
   * `Cuda` is closed and nothing of it is left on the device.
   */
  get isActive(): boolean {
    return !this.#references.isDestroyed && this.#primary.isActive;
  }

  // law device/CudaDevice.context: device/device, memory/memory_programs
  /** Handle of the primary context, which is retained on first use. */
  get context(): bigint {
    this.#checkThere();
    return this.#primary.handle;
  }

  // law device/CudaDevice.withContext: device/device, memory/memory_programs
  /**
   * Calls a function while the primary context is current, then restores the previous context: at the first `await` of
   * an async function, which the compiler therefore refuses.
   *
   * @throws {TypeError} if it is not a function, or the device is gone with its `Cuda`
   */
  withContext<T>(work: () => T extends PromiseLike<unknown> ? never : T): T {
    if (typeof work !== "function") throw noWork(this, work);
    const { cuCtxPushCurrent_v2, cuCtxPopCurrent_v2 } = this.driver.context;
    this.#check("cuCtxPushCurrent_v2", cuCtxPushCurrent_v2(this.context));
    this.#references.retain(); // the work may close what else retains it, and the Cuda
    try {
      return work();
    } finally {
      cuCtxPopCurrent_v2(this.#out.$address);
      this.#references.release();
    }
  }

  /**
   * Makes the primary context current in this thread if none is, and leaves it current until it is released: for
   * libraries that use the current context, such as UCX.
   */
  ensureCurrent(): void {
    this.#checkThere();
    this.#primary.ensureCurrent();
  }

  /** The legacy default stream, which waits for every blocking stream of the context and makes it wait. */
  get defaultStream(): CudaStream {
    this.#defaultStream ??= CudaStream.ofDevice(this, CU_STREAM_LEGACY);
    return this.#defaultStream;
  }

  /**
   * The default stream of the calling thread: a blocking stream like any other, which only waits for the legacy one. It
   * is `cudaStreamPerThread` of the CUDA runtime.
   */
  get perThreadStream(): CudaStream {
    this.#perThreadStream ??= CudaStream.ofDevice(this, CU_STREAM_PER_THREAD);
    return this.#perThreadStream;
  }

  /** A stream that another library owns and destroys, by its handle. */
  foreignStream(handle: bigint): CudaStream {
    const known = this.knownStream(handle);
    if (known !== null) return known;
    this.#foreignStream = CudaStream.fromHandle(this, handle);
    this.#foreignHandle = handle;
    return this.#foreignStream;
  }

  // law device/CudaDevice.knownStream: device/stream
  /**
   * The last result of {@linkcode CudaDevice.foreignStream}, if it has this handle: libraries that exchange arrays keep
   * naming the same stream.
   *
   * @internal
   */
  knownStream(handle: bigint): CudaStream | null {
    const last = this.#foreignStream;
    if (last === undefined || this.#foreignHandle !== handle || last.isClosed) return null;
    observerOf(this.driver)?.foreignStream(handle); // the handle may be another stream's by now
    return last;
  }

  // law device/CudaDevice.memory: memory/device_memory_resource
  /**
   * Allocates from the pool that was the device's current one on first access. All parts of the program share it: a
   * caller that closes it only ends its own use.
   *
   * @throws {CudaError} CUDA_ERROR_NOT_SUPPORTED if the device has no pools: use `SynchronousMemoryResource` there
   */
  get memory(): DeviceMemoryResource {
    if (this.#memory === undefined || this.#memory.pool.isClosed) this.#memory = this.#makeMemory(this);
    return this.#memory;
  }

  /** The priorities that streams can have, from first to last. Lower numbers go first: `[-5, 0]`. */
  get priorityRange(): [first: number, last: number] {
    return priorityRange(this);
  }

  /**
   * Creates a stream.
   *
   * @throws {RangeError} for a priority that streams of this device cannot have
   */
  createStream(options: StreamOptions = {}): CudaStream {
    return createStream(this, options);
  }

  // law device/CudaDevice.createEvent: device/dropped
  /**
   * Creates an event.
   *
   * @throws {TypeError} for an event with both timing and interprocess: CUDA has none; if the `Cuda` is closed
   */
  createEvent(options: EventOptions = none): CudaEvent {
    this.#checkOpen();
    const event = this.makeEvent(options);
    event[registerFinalizer]();
    return event;
  }

  /**
   * As {@linkcode CudaDevice.createEvent}, for callers that always close it, also on a device whose `Cuda` is closed:
   * its buffers may still have to be ordered.
   *
   * @internal
   */
  makeEvent(options: EventOptions = none): CudaEvent {
    return createEvent(this, options);
  }

  /**
   * Opens an event of another process from the result of `event.exportHandle()` there. Its owner must close it last.
   *
   * @throws {TypeError} if this is not a handle of an event, or the `Cuda` is closed
   * @throws {RangeError} if the event belongs to another device
   * @throws {CudaError} if the other process is gone, or is this one
   */
  importEvent(handle: IpcHandle): CudaEvent {
    this.#checkOpen();
    return importEvent(this, handle);
  }

  /**
   * An event to order streams with, until `releaseEvent` is called; a spare one is reused. A wait for it is for what
   * was recorded at that time, whatever is recorded later.
   *
   * @internal
   */
  acquireEvent(): CudaEvent {
    const spare = this.#spareEvents.pop();
    if (spare !== undefined) return spare;
    const event = this.makeEvent();
    observerOf(this.driver)?.closedByUser(event.handle); // the device destroys it
    return event;
  }

  /**
   * Returns an event from {@linkcode CudaDevice.acquireEvent}.
   *
   * @internal
   */
  releaseEvent(event: CudaEvent): void {
    if (this.#references.isClosed || this.#spareEvents.length >= maxSpareEvents) event.close();
    else this.#spareEvents.push(event);
  }

  /**
   * Marks the current end of all work in the primary context with an event, on any stream, including destroyed ones.
   * Work that the driver does for a stream in another context is not included: see `docs/driver.md`.
   *
   * @internal
   * @returns false if the driver is older than CUDA 12.5, which cannot do it
   */
  recordContext(event: CudaEvent): boolean {
    const { cuCtxRecordEvent } = this.driver.context;
    if (cuCtxRecordEvent === null) return false;
    this.#check("cuCtxRecordEvent", cuCtxRecordEvent(this.context, event.handle));
    return true;
  }

  // law device/CudaDevice.synchronize: device/device, memory/memory_programs
  /** Blocks until everything enqueued in the primary context is done. Without a context there is no work. */
  synchronize(): void {
    if (!this.#references.isDestroyed && !this.isActive) return;
    this.withContext(() => this.#check("cuCtxSynchronize", this.driver.context.cuCtxSynchronize()));
  }

  /**
   * Compiles CUDA C++ for this device and loads it. The compiled code is kept in the user's cache folder, keyed by
   * source, options, compiler and driver (`CAUSEWAY_CACHE` names another folder, or `off`). NVRTC does not say which
   * files it has read: a source that might include one, and one with `##`, `__DATE__` or `__TIME__`, is compiled each
   * time.
   *
   * @throws {CompileError} with the compiler's messages and the lines that they refer to
   * @throws {LibraryNotFoundError} if there is no compiler (libnvrtc)
   *
   * @example
   * ```ts ignore
   * const program = device.compile(`extern "C" __global__ void scale(float *x, float a, int n) {
   *   int i = blockIdx.x * blockDim.x + threadIdx.x;
   *   if (i < n) x[i] *= a;
   * }`);
   * program.kernel("scale").launch(stream, Math.ceil(n / 256), 256, [buffer, ["float32", 2], ["int32", n]]);
   * ```
   */
  compile(source: string, options: CompileOptions = {}): Program {
    return Program.compile(this, source, options);
  }

  /**
   * Loads PTX, which the driver compiles; the simulator's interpreter supports what docs/ptx.md lists.
   *
   * @throws {CudaError} CUDA_ERROR_INVALID_PTX, CUDA_ERROR_UNSUPPORTED_PTX_VERSION or CUDA_ERROR_INVALID_IMAGE with the
   *   messages of the driver's compiler, and the lines that they refer to
   */
  loadPtx(ptx: string): Program {
    return Program.fromPtx(this, ptx);
  }

  /** The newest CUDA version that the driver supports. */
  get driverVersion(): [major: number, minor: number] {
    this.#checkThere();
    return this.#properties.driverVersion;
  }

  /** Free and total device memory in bytes. */
  memoryInfo(): { readonly free: number; readonly total: number } {
    using arena = new NativeArena();
    const [free, total] = [arena.out("size"), arena.out("size")];
    const { memory } = this.driver;
    this.withContext(() => this.#check("cuMemGetInfo_v2", memory.cuMemGetInfo_v2(free.$address, total.$address)));
    return { free: free.value, total: total.value };
  }

  // law device/CudaDevice.retained: device/device, memory/memory_programs
  /**
   * Retains the primary context until the result is disposed, even if the `Cuda` is closed meanwhile. Buffers and
   * streams do this: the memory may be in use by a consumer that knows nothing of either.
   *
   * @param options `evenClosed`: even after `close`, for code that still has work to finish while other code retains
   *   the device. Default: a closed `Cuda` is an error
   * @throws {TypeError} if the `Cuda` is closed
   */
  retained(options: { readonly evenClosed?: true } = none): Disposable {
    checkOptions(options, retainOptionNames);
    checkBoolean("evenClosed", options.evenClosed);
    if (options.evenClosed !== true) this.#checkOpen();
    return this.#references.retained();
  }

  // law device/CudaDevice.retainFor: device/dropped
  /**
   * Retains the primary context for an object about to be made: a closed Cuda fails before anything is made.
   *
   * @internal
   * @param make receives the reference, which is disposed here if `make` throws
   */
  retainFor<T>(make: (retained: Disposable) => T): T {
    const retained = this.retained();
    try {
      return make(retained);
    } catch (error) {
      retained[Symbol.dispose]();
      throw error;
    }
  }

  // law device/CudaDevice.retain: device/device, memory/memory_programs
  /**
   * Retains the primary context as {@linkcode CudaDevice.retained} does, until `release` is called, exactly once. For
   * frequent calls: it allocates nothing.
   *
   * @internal
   */
  retain(): void {
    this.#checkOpen();
    this.#references.retain();
  }

  // law device/device/CudaDevice.release: device/device, memory/memory_programs
  /**
   * Ends one {@linkcode CudaDevice.retain}.
   *
   * @internal
   */
  release(): void {
    this.#references.release();
  }

  /**
   * Where the driver writes the result of one call, to be read before the next call.
   *
   * @internal
   */
  get outParameter(): { readonly $address: bigint; readonly value: bigint } {
    this.#checkThere();
    return this.#answer;
  }

  /**
   * Whether its `Cuda` is closed and it is no longer retained: its context is gone, with everything in it.
   *
   * @internal
   */
  get isGone(): boolean {
    return this.#references.isDestroyed;
  }

  /**
   * Whether it is a simulated one, whose memory is the host's.
   *
   * @internal
   */
  get isSimulated(): boolean {
    return isSimulated(this.driver);
  }

  #checkOpen(): void {
    if (this.#references.isClosed) throw this.#closed();
  }

  #closed(): TypeError {
    return new TypeError(`Cannot use ${this}: its Cuda is closed`);
  }

  // law device/CudaDevice.checkThere: device/check_device
  /** Throws if the device is gone: the memory to which driver calls write their results is freed with it. */
  #checkThere(): void {
    if (this.#references.isDestroyed) throw this.#closed();
  }

  /** Whether its `Cuda` is closed: nothing new can be made on it. */
  get isClosed(): boolean {
    return this.#references.isClosed;
  }

  /** Registers a function that is called once, when the device is closed and can still be used. */
  onClose(work: () => void): void {
    this.#checkOpen();
    this.#beforeClose.push(work);
  }

  // law device/CudaDevice.close: device/device, memory/memory_programs
  /** Releases the primary context, once no buffer and no stream needs it. Called by `Cuda.close()`. */
  close(): void {
    runAll([
      ...this.#beforeClose.splice(0),
      () => this.#closeSpareEvents(), // not with the context, which another user may keep
      () => this.#references.close(),
    ]);
  }

  // law device/CudaDevice.closeSpareEvents: device/device
  #closeSpareEvents(): void {
    const spare = this.#spareEvents.splice(0);
    // Where another library has destroyed the context, the events went with it, and the driver may crash in calls with
    // them (openucx/ucx#11437).
    if (spare.length > 0 && this.#primary.isAlive) runAll(spare.map((event) => () => event.close()));
  }

  /**
   * Notes that memory of this device was freed on another device's stream. That free needs this device's context when
   * the stream reaches it: so the context is not released earlier.
   *
   * @internal
   */
  noteFreeOn(other: CudaDevice): void {
    if (other !== this) this.#freedOn.add(other);
  }

  // law device/CudaDevice.release: device/device, memory/memory_programs, device/context
  #release(): void {
    runAll([
      ...[...this.#freedOn].map((other) => () => other.#finish()),
      () => this.#primary.release(),
      () => this.#arena.close(),
    ]);
  }

  /** Waits for the context's work, if there is a context. Failed work counts as done, too. */
  #finish(): void {
    if (!this.#primary.isRetained || this.#references.isDestroyed) return; // a released context has finished
    this.withContext(() => this.driver.context.cuCtxSynchronize());
  }

  #check(call: string, code: number): void {
    checkCuda(this.driver, call, code);
  }

  static {
    showAs(CudaDevice, describeDevice);
  }
}

function noWork(device: CudaDevice, given: unknown): TypeError {
  return new TypeError(`Cannot call ${showGiven(given)} in the context of ${device}: expected a function`);
}

// law device/describeDevice: public/inspect
/**
 * What the console shows: its number, names and memory. Memory in use is only shown if a context exists already, which
 * the query needs.
 */
function describeDevice(device: CudaDevice): string {
  const { ordinal, label, name } = device;
  const what = `${ordinal}${quoted(label)}: ${name}`;
  if (device.isClosed) return `${what}, closed`;
  if (!device.isActive) return `${what}, ${showBytes(device.totalMemory)}, not in use`;
  const { free, total } = besideCaptures(device.driver, () => device.memoryInfo());
  return `${what}, ${showBytes(total - free)} of ${showBytes(total)} in use`;
}
