/**
 * A GPU: what it is, what is made on it, and who retains it.
 *
 * @module
 */
import { describeDevice } from "./describe.ts";
import { CU_STREAM_LEGACY, CU_STREAM_PER_THREAD } from "../../bindings/cuda_types.ts";
import { NativeArena, runAll } from "../ffi/mod.ts";
import { checkMade, checkOptions, giveName, nameOf, none, quoted, showAs } from "../layout/mod.ts";
import type { DeviceMemoryResource } from "../memory/mod.ts";
import { checkCuda, type CudaDriver, observerOf } from "../driver/mod.ts";
import { createEvent, type EventOptions, importEvent } from "./create_event.ts";
import { createStream, priorityRange, type StreamOptions } from "./create_stream.ts";
import type { CudaEvent } from "./event.ts";
import { registerFinalizer } from "./finalizer.ts";
import type { IpcHandle } from "./ipc_handle.ts";
import { type CompileOptions, Program } from "./kernel/program.ts";
import { PrimaryContext } from "./primary_context.ts";
import { type DeviceAttribute, DeviceProperties, type PeerAttribute } from "./properties.ts";
import { ReferenceCount } from "./reference_count.ts";
import { CudaStream } from "./stream.ts";

/** Makes what `device.memory` is: memory is a room above, and the code that makes the device passes this in. */
type MakeMemory = (device: CudaDevice) => DeviceMemoryResource;

/** How many unused events a device keeps: twice the number of live exports at which they are polled. */
const enoughSpare = 128;

const retainOptionNames = { evenClosed: true } as const;

/**
 * A GPU.
 *
 * Its primary context is the one that every other library in the process uses too (torch, CuPy, the CUDA runtime). It
 * is retained at first need, made current for the length of a call only, and released by `Cuda.close()`: whatever
 * context was current before a call is current after it.
 */
export class CudaDevice {
  /** The driver that the device belongs to. */
  readonly driver: CudaDriver;
  /** Its number, from 0. */
  readonly ordinal: number;
  /** All devices of the same driver by ordinal, this one included. */
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

  /** The name that `cuda.device(ordinal, { name })` has given it; null if it has none. */
  get label(): string | null {
    return nameOf(this);
  }

  /** Gives it a name: what `cuda.device(ordinal, { name })` does. @throws {TypeError} for an empty one */
  set label(name: string) {
    giveName(this, name);
    observerOf(this.driver)?.nameDevice(this.ordinal, name);
  }

  /** As errors and reports call it: `device 0`, or with a name `device 0 "prefill"`. */
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

  /** Whether this device can read and write the memory of another one directly. */
  canAccessPeer(peer: CudaDevice): boolean {
    if (peer.driver !== this.driver) throw new TypeError("Cannot ask for access to a device of another Cuda");
    this.#checkThere();
    return this.#properties.canAccessPeer(peer.#properties);
  }

  /**
   * What the driver says of the way to another device's memory, by the attribute's name in the header without the
   * prefix `CU_DEVICE_P2P_ATTRIBUTE_`: `PERFORMANCE_RANK` (0 is the fastest), `NATIVE_ATOMIC_SUPPORTED` (1 over NVLink).
   *
   * @throws {TypeError} for a device of another Cuda, or a name that is not known
   * @throws {CudaError} CUDA_ERROR_INVALID_DEVICE for the device itself
   */
  peerAttribute(name: PeerAttribute, peer: CudaDevice): number {
    if (peer.driver !== this.driver) throw new TypeError("Cannot ask about the way to a device of another Cuda");
    this.#checkThere();
    return this.#properties.peerAttribute(name, peer.#properties);
  }

  // law device/CudaDevice.isActive: device/device, memory/memory_programs
  /**
   * Whether anybody in this process uses the primary context: we, or another library. Does not retain it. False once
   * the `Cuda` is closed and nothing of it is left on the device.
   */
  get isActive(): boolean {
    return !this.#references.isDestroyed && this.#primary.isActive;
  }

  // law device/CudaDevice.context: device/device, memory/memory_programs
  /** Handle of the primary context, which is retained at the first use. */
  get context(): bigint {
    this.#checkThere();
    return this.#primary.handle;
  }

  // law device/CudaDevice.withContext: device/device, memory/memory_programs
  /** Calls a function while the primary context is current, and then restores the context that was. */
  withContext<T>(work: () => T): T {
    const { cuCtxPushCurrent_v2, cuCtxPopCurrent_v2 } = this.driver.context;
    this.#check("cuCtxPushCurrent_v2", cuCtxPushCurrent_v2(this.context));
    try {
      return work();
    } finally {
      cuCtxPopCurrent_v2(this.#out.$address);
    }
  }

  // law device/CudaDevice.ensureCurrent: device/device
  /**
   * Makes the primary context current in this thread if none is, and leaves it so: for libraries that use the one that
   * they find, such as UCX.
   */
  ensureCurrent(): void {
    const { cuCtxGetCurrent, cuCtxSetCurrent } = this.driver.context;
    const handle = this.context;
    this.#check("cuCtxGetCurrent", cuCtxGetCurrent(this.#out.$address));
    if (this.#out.value === 0n) this.#check("cuCtxSetCurrent", cuCtxSetCurrent(handle));
  }

  /** The legacy default stream, which waits for every blocking stream of the context and makes it wait. */
  get defaultStream(): CudaStream {
    this.#defaultStream ??= CudaStream.ofDevice(this, CU_STREAM_LEGACY);
    return this.#defaultStream;
  }

  /**
   * The default stream of the calling thread: a blocking stream as any other, which only waits for the legacy one. It
   * is what `cudaStreamPerThread` means in the CUDA runtime.
   */
  get perThreadStream(): CudaStream {
    this.#perThreadStream ??= CudaStream.ofDevice(this, CU_STREAM_PER_THREAD);
    return this.#perThreadStream;
  }

  /** A stream that another library destroys, by its handle. */
  foreignStream(handle: bigint): CudaStream {
    return this.knownStream(handle) ?? (this.#foreignStream = CudaStream.fromHandle(this, handle));
  }

  // law device/CudaDevice.knownStream: device/stream
  /**
   * The last of {@linkcode CudaDevice.foreignStream}, if this is its handle: libraries that exchange arrays name one
   * stream again and again.
   */
  knownStream(handle: bigint): CudaStream | null {
    const last = this.#foreignStream;
    if (last === undefined || last.isClosed || last.handle !== handle) return null;
    observerOf(this.driver)?.foreignStream(handle); // it may be another stream by now
    return last;
  }

  // law device/CudaDevice.memory: memory/device_memory_resource
  /**
   * Allocates from the pool that the device used when this was first asked for. It is every part of the program's: who
   * closes it ends its own use alone.
   *
   * @throws {CudaError} CUDA_ERROR_NOT_SUPPORTED if the device has no pools: use `SynchronousMemoryResource` there
   */
  get memory(): DeviceMemoryResource {
    if (this.#memory === undefined || this.#memory.pool.isClosed) this.#memory = this.#makeMemory(this);
    return this.#memory;
  }

  /** The priorities that streams can have: what goes first, and what goes last. Lower numbers go first: `[-5, 0]`. */
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
   * @throws {TypeError} for an event that measures time and can be given to other processes: CUDA has none
   */
  createEvent(options: EventOptions = none): CudaEvent {
    const event = this.makeEvent(options);
    event[registerFinalizer]();
    return event;
  }

  /** As {@linkcode CudaDevice.createEvent}, for callers who close it for certain. */
  makeEvent(options: EventOptions = none): CudaEvent {
    return createEvent(this, options);
  }

  /**
   * Opens an event of another process, by what `event.exportHandle()` gave there. Its owner must close it last.
   *
   * @throws {TypeError} if this is no handle of an event
   * @throws {RangeError} if it is an event of another device
   * @throws {CudaError} if the other process is gone, or is this one
   */
  importEvent(handle: IpcHandle): CudaEvent {
    return importEvent(this, handle);
  }

  /**
   * An event to order streams by, until `releaseEvent` is called: one that was used before, if there is one. What has
   * been made to wait for it waits for what was recorded then, whatever is recorded later.
   */
  acquireEvent(): CudaEvent {
    const spare = this.#spareEvents.pop();
    if (spare !== undefined) return spare;
    const event = this.makeEvent();
    observerOf(this.driver)?.closedByUser(event.handle); // the device destroys it
    return event;
  }

  /** Returns an event of {@linkcode CudaDevice.acquireEvent}. */
  releaseEvent(event: CudaEvent): void {
    if (this.#references.isClosed || this.#spareEvents.length >= enoughSpare) event.close();
    else this.#spareEvents.push(event);
  }

  /**
   * Marks the present end of all work in the primary context with an event, on whatever stream, also one that was
   * destroyed. What the driver does for a stream by way of another context is not among it: see `docs/driver.md`.
   *
   * @returns false where the driver is older than CUDA 12.5 and cannot do it
   */
  recordContext(event: CudaEvent): boolean {
    const { cuCtxRecordEvent } = this.driver.context;
    if (cuCtxRecordEvent === null) return false;
    this.#check("cuCtxRecordEvent", cuCtxRecordEvent(this.context, event.handle));
    return true;
  }

  // law device/CudaDevice.synchronize: device/device, memory/memory_programs
  /** Blocks until everything enqueued in the primary context is done. Where there is no context there is no work. */
  synchronize(): void {
    if (!this.#references.isDestroyed && !this.isActive) return;
    this.withContext(() => this.#check("cuCtxSynchronize", this.driver.context.cuCtxSynchronize()));
  }

  /**
   * Compiles CUDA C++ for this device and loads it. The compiled code is kept in the user's cache folder, by source,
   * options, compiler and driver (`CAUSEWAY_CACHE` names another folder, or `off`). NVRTC does not say which files it
   * has read: a source that might include one, and one with `##`, `__DATE__` or `__TIME__`, is compiled each time.
   *
   * @throws {CompileError} with the compiler's words and the lines that they are about
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
   * Loads PTX, which the driver compiles; the simulator's interpreter reads what docs/ptx.md lists.
   *
   * @throws {CudaError} CUDA_ERROR_INVALID_PTX, CUDA_ERROR_UNSUPPORTED_PTX_VERSION or CUDA_ERROR_INVALID_IMAGE with
   *   what the driver's compiler said, and the lines that it is about
   */
  loadPtx(ptx: string): Program {
    return Program.fromPtx(this, ptx);
  }

  /** The newest CUDA version that the driver supports. */
  get driverVersion(): [major: number, minor: number] {
    this.#checkThere();
    return this.#properties.driverVersion;
  }

  /** Bytes of device memory that are free, and all of them. */
  memoryInfo(): { readonly free: number; readonly total: number } {
    using arena = new NativeArena();
    const [free, total] = [arena.out("size"), arena.out("size")];
    const { memory } = this.driver;
    this.withContext(() => this.#check("cuMemGetInfo_v2", memory.cuMemGetInfo_v2(free.$address, total.$address)));
    return { free: free.value, total: total.value };
  }

  // law device/CudaDevice.retained: device/device, memory/memory_programs
  /**
   * Retains the primary context until the result is disposed of, even if the `Cuda` is closed meanwhile. What a buffer
   * does, and a stream: the memory may be in use by a consumer that knows nothing of either.
   *
   * @param options `evenClosed`: also after `close`, for code that still has work to finish while other code retains
   *   the device. Default: a closed `Cuda` is an error
   * @throws {TypeError} if the `Cuda` is closed
   */
  retained(options: { readonly evenClosed?: true } = none): Disposable {
    checkOptions(options, retainOptionNames);
    if (options.evenClosed !== true) this.#checkOpen();
    return this.#references.retained();
  }

  // law device/CudaDevice.retainFor: device/dropped
  /**
   * Retains the primary context for an object that is to be made: a closed Cuda is an error before anything is made.
   *
   * @param make is given what ends that, which is disposed of here if it throws
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
   * Retains the primary context as {@linkcode CudaDevice.retained} does, until `release` is called, which must be once.
   * For frequent calls: it allocates nothing.
   */
  retain(): void {
    this.#checkOpen();
    this.#references.retain();
  }

  // law device/device/CudaDevice.release: device/device, memory/memory_programs
  /** Ends one {@linkcode CudaDevice.retain}. */
  release(): void {
    this.#references.release();
  }

  /** Where the driver writes the result of one call, to be read before the next one. */
  get outParameter(): { readonly $address: bigint; readonly value: bigint } {
    this.#checkThere();
    return this.#answer;
  }

  /** Whether its `Cuda` is closed and it is not retained any more: its context is gone, with all that was in it. */
  get isGone(): boolean {
    return this.#references.isDestroyed;
  }

  #checkOpen(): void {
    if (this.#references.isClosed) throw this.#closed();
  }

  #closed(): TypeError {
    return new TypeError(`Cannot use ${this}: its Cuda is closed`);
  }

  // law device/CudaDevice.checkThere: device/check_device
  /** The memory that calls of the driver write their results to is freed with the device. */
  #checkThere(): void {
    if (this.#references.isDestroyed) throw this.#closed();
  }

  /** Whether its `Cuda` is closed: it makes nothing new. */
  get isClosed(): boolean {
    return this.#references.isClosed;
  }

  /** Calls a function once, when the device is closed and can still be used. */
  onClose(work: () => void): void {
    this.#checkOpen();
    this.#beforeClose.push(work);
  }

  // law device/CudaDevice.close: device/device, memory/memory_programs
  /** Releases the primary context, once no buffer and no stream needs it. Called by `Cuda.close()`. */
  close(): void {
    for (const work of this.#beforeClose.splice(0)) work();
    this.#references.close();
  }

  /**
   * Notes that memory of this device was freed on a stream of another one. That free needs this device's context when
   * the stream comes to it: so the context is not released before.
   */
  noteFreeOn(other: CudaDevice): void {
    if (other !== this) this.#freedOn.add(other);
  }

  // law device/CudaDevice.release: device/device, memory/memory_programs, device/context
  #release(): void {
    for (const other of this.#freedOn) other.#finish();
    try {
      runAll(this.#spareEvents.splice(0).map((event) => () => event.close()));
    } finally {
      this.#primary.release();
      this.#arena.close();
    }
  }

  /** Waits for the context's work, if there is a context. What has failed there is over as well. */
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
