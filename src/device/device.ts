/**
 * A GPU: what it is, and its primary context.
 *
 * @module
 */
import {
  CU_DEVICE_ATTRIBUTE,
  CU_EVENT,
  CU_STREAM,
  CU_STREAM_LEGACY,
  CU_STREAM_PER_THREAD,
  CUresult,
} from "../../bindings/cuda_types.ts";
import { NativeArena, readField, runAll } from "../ffi/mod.ts";
import { checkOptions, none, type OptionNames } from "../layout/mod.ts";
import type { DeviceMemoryResource } from "../memory/mod.ts";
import { checkCuda, type CudaDriver, decodeVersion, observerOf } from "../driver/mod.ts";
import { CudaEvent } from "./event.ts";
import { registerFinalizer } from "./finalizer.ts";
import { ReferenceCount } from "./reference_count.ts";
import { type CompileOptions, Program } from "./kernel/program.ts";
import { checkReached } from "./explain_unreachable.ts";
import { type IpcHandle, readHandle } from "./ipc_handle.ts";
import { CudaStream } from "./stream.ts";

/** Options of {@linkcode CudaDevice.createStream}. */
export interface StreamOptions {
  /** Whether the stream ignores the legacy default stream. Default true. */
  readonly nonBlocking?: boolean;
  /**
   * Which streams' waiting work the GPU takes first: lower numbers sooner, within `device.priorityRange`. Default 0,
   * the last.
   */
  readonly priority?: number;
}

const streamOptionNames: OptionNames<StreamOptions> = { nonBlocking: true, priority: true };

/** Options of {@linkcode CudaDevice.createEvent}. */
export interface EventOptions {
  /** Whether the event measures time. Default false: ordering is cheaper without. */
  readonly timing?: boolean;
  /** Whether other processes can be given the event, which measures no time then. Default false. */
  readonly interprocess?: boolean;
}

const eventOptionNames: OptionNames<EventOptions> = { timing: true, interprocess: true };

/** Makes what `device.memory` is: memory is a room above, and whoever makes the device gives it. */
type MakeMemory = (device: CudaDevice) => DeviceMemoryResource;

/** How many unused events a device keeps: twice the number of live exports at which they are polled. */
const enoughSpare = 128;

/** The name of a device attribute, as in the header without the prefix `CU_DEVICE_ATTRIBUTE_`. */
export type DeviceAttribute = keyof typeof CU_DEVICE_ATTRIBUTE;

/** Which way a copy goes, as the driver's functions are named. */
export type CopyDirection = "HtoH" | "HtoD" | "DtoH" | "DtoD";

/** What copies. Names that are put together when they are needed take longer than the copy. */
const copyCalls = {
  HtoH: "cuMemcpyAsync", // between pinned buffers: the driver finds out by itself what the addresses are
  HtoD: "cuMemcpyHtoDAsync_v2",
  DtoH: "cuMemcpyDtoHAsync_v2",
  DtoD: "cuMemcpyDtoDAsync_v2",
} as const;

const retainOptionNames = { evenClosed: true } as const;

/** What fills, by the bytes of a value. */
const fillCalls = { 1: "cuMemsetD8Async", 2: "cuMemsetD16Async", 4: "cuMemsetD32Async" } as const;

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
  readonly #int = this.#arena.out("i32");
  readonly #handle: number;
  #context = 0n;
  #defaultStream: CudaStream | undefined;
  #perThreadStream: CudaStream | undefined;
  #foreignStream: CudaStream | undefined;
  #memory: DeviceMemoryResource | undefined;
  readonly #spareEvents: CudaEvent[] = [];
  readonly #references = new ReferenceCount(() => this.#release());
  readonly #beforeClose: (() => void)[] = [];
  readonly #freedOn = new Set<CudaDevice>();

  /** Use `Cuda.open().devices`. */
  constructor(driver: CudaDriver, ordinal: number, siblings: readonly CudaDevice[], makeMemory: MakeMemory) {
    this.driver = driver;
    this.ordinal = ordinal;
    this.siblings = siblings;
    this.#makeMemory = makeMemory;
    checkCuda(driver, "cuDeviceGet", driver.opening.cuDeviceGet(this.#int.$address, ordinal));
    this.#handle = this.#int.value;
  }

  /** The name, for example `NVIDIA H200`. */
  get name(): string {
    using arena = new NativeArena();
    const { address, bytes } = arena.bytes(256);
    this.#check("cuDeviceGetName", this.driver.device.cuDeviceGetName(address, bytes.length, this.#handle));
    return readField(bytes);
  }

  // law device/CudaDevice.uuid: device/device
  /**
   * The UUID as nvidia-smi prints it: `GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`, or `MIG-...` for a slice of a GPU.
   */
  get uuid(): string {
    using arena = new NativeArena();
    const { address, bytes } = arena.bytes(16);
    this.#check("cuDeviceGetUuid_v2", this.driver.device.cuDeviceGetUuid_v2(address, this.#handle));
    const hex = bytes.toHex();
    // The driver gives a slice its own UUID, and says that it is one only in its name: `NVIDIA H100 MIG 1g.10gb`.
    const prefix = /\bMIG \d+[cg]\./.test(this.name) ? "MIG" : "GPU";
    return `${prefix}-${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${
      hex.slice(20)
    }`;
  }

  /** The PCI bus id: `0000:1b:00.0`. */
  get pciBusId(): string {
    using arena = new NativeArena();
    const { address, bytes } = arena.bytes(32);
    this.#check("cuDeviceGetPCIBusId", this.driver.device.cuDeviceGetPCIBusId(address, bytes.length, this.#handle));
    return readField(bytes);
  }

  /** The compute capability: `[9, 0]`. */
  get computeCapability(): [major: number, minor: number] {
    return [this.attribute("COMPUTE_CAPABILITY_MAJOR"), this.attribute("COMPUTE_CAPABILITY_MINOR")];
  }

  /** Bytes of memory on the device. */
  get totalMemory(): number {
    this.#checkThere();
    this.#check("cuDeviceTotalMem_v2", this.driver.device.cuDeviceTotalMem_v2(this.#out.$address, this.#handle));
    return Number(this.#out.value);
  }

  /** A device attribute by its name in the header, without the prefix `CU_DEVICE_ATTRIBUTE_`. */
  attribute(name: DeviceAttribute): number {
    if (!Object.hasOwn(CU_DEVICE_ATTRIBUTE, name)) {
      throw new TypeError(`Cannot ask for the attribute ${name}: expected a name of CU_DEVICE_ATTRIBUTE`);
    }
    this.#checkThere();
    const code = this.driver.device.cuDeviceGetAttribute(this.#int.$address, CU_DEVICE_ATTRIBUTE[name], this.#handle);
    this.#check("cuDeviceGetAttribute", code);
    return this.#int.value;
  }

  /** Whether this device can read and write the memory of another one directly. */
  canAccessPeer(peer: CudaDevice): boolean {
    if (peer.driver !== this.driver) throw new TypeError("Cannot ask for access to a device of another Cuda");
    this.#checkThere();
    const { cuDeviceCanAccessPeer } = this.driver.device;
    this.#check("cuDeviceCanAccessPeer", cuDeviceCanAccessPeer(this.#int.$address, this.#handle, peer.#handle));
    return this.#int.value !== 0;
  }

  // law device/CudaDevice.isActive: device/device, memory/memory_programs
  /**
   * Whether anybody in this process uses the primary context: we, or another library. Does not retain it. False once
   * the `Cuda` is closed and nothing of it is left on the device.
   */
  get isActive(): boolean {
    if (this.#references.isDestroyed) return false;
    if (this.#context !== 0n) return true;
    const { cuDevicePrimaryCtxGetState } = this.driver.context;
    // The flags go to eight bytes that are not read: every release of an export asks this, and must not allocate.
    const code = cuDevicePrimaryCtxGetState(this.#handle, this.#out.$address, this.#int.$address);
    this.#check("cuDevicePrimaryCtxGetState", code);
    return this.#int.value !== 0;
  }

  // law device/CudaDevice.context: device/device, memory/memory_programs
  /** Handle of the primary context, which is retained at the first use. */
  get context(): bigint {
    this.#checkThere();
    if (this.#context === 0n) {
      const { cuDevicePrimaryCtxRetain } = this.driver.context;
      this.#check("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain(this.#out.$address, this.#handle));
      this.#context = this.#out.value;
    }
    return this.#context;
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

  /**
   * Allocates from the pool that the device used when this was first asked for.
   *
   * @throws {CudaError} CUDA_ERROR_NOT_SUPPORTED if the device has no pools: use `SynchronousMemoryResource` there
   */
  get memory(): DeviceMemoryResource {
    this.#memory ??= this.#makeMemory(this);
    return this.#memory;
  }

  /** The priorities that streams can have: what goes first, and what goes last. Lower numbers go first: `[-5, 0]`. */
  get priorityRange(): [first: number, last: number] {
    using arena = new NativeArena();
    const [last, first] = [arena.out("i32"), arena.out("i32")];
    const { cuCtxGetStreamPriorityRange } = this.driver.context;
    const ask = () => cuCtxGetStreamPriorityRange(last.$address, first.$address);
    this.#check("cuCtxGetStreamPriorityRange", this.withContext(ask));
    return [first.value, last.value];
  }

  // law device/CudaDevice.createStream: device/device, memory/memory_programs, gpu/implied_order
  /**
   * Creates a stream.
   *
   * @throws {RangeError} for a priority that streams of this device cannot have
   */
  createStream(options: StreamOptions = {}): CudaStream {
    checkOptions(options, streamOptionNames);
    const flags = options.nonBlocking ?? true ? CU_STREAM.NON_BLOCKING : CU_STREAM.DEFAULT;
    const { priority } = options;
    if (priority !== undefined) this.#checkPriority(priority);
    const { cuStreamCreate, cuStreamCreateWithPriority } = this.driver.stream;
    const make = (retained: Disposable) => {
      if (priority === undefined) this.#check("cuStreamCreate", cuStreamCreate(this.#out.$address, flags));
      else {
        const code = cuStreamCreateWithPriority(this.#out.$address, flags, priority);
        this.#check("cuStreamCreateWithPriority", code);
      }
      return CudaStream.adopt(this, this.#out.value, (flags & CU_STREAM.NON_BLOCKING) !== 0, retained);
    };
    return this.retainFor((retained) => this.withContext(() => make(retained)));
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

  // law device/CudaDevice.makeEvent: device/device, memory/memory_programs
  /** As {@linkcode CudaDevice.createEvent}, for callers who close it for certain. */
  makeEvent(options: EventOptions = none): CudaEvent {
    checkOptions(options, eventOptionNames);
    const { timing = false, interprocess = false } = options;
    if (timing && interprocess) {
      throw new TypeError("Cannot create an event that measures time for other processes: choose one of the two");
    }
    const flags = (timing ? CU_EVENT.DEFAULT : CU_EVENT.DISABLE_TIMING) | (interprocess ? CU_EVENT.INTERPROCESS : 0);
    return this.withContext(() => {
      this.#check("cuEventCreate", this.driver.event.cuEventCreate(this.#out.$address, flags));
      return new CudaEvent(this, this.#out.value, interprocess);
    });
  }

  /**
   * Opens an event of another process, by what `event.exportHandle()` gave there. Its owner must close it last.
   *
   * @throws {TypeError} if this is no handle of an event
   * @throws {RangeError} if it is an event of another device
   * @throws {CudaError} if the other process is gone, or is this one
   */
  importEvent(handle: IpcHandle): CudaEvent {
    const bytes = readHandle(handle, ["event"], this);
    return this.withContext(() => {
      this.#check("cuIpcOpenEventHandle", this.driver.ipc.cuIpcOpenEventHandle(this.#out.$address, bytes));
      const event = new CudaEvent(this, this.#out.value, true);
      event[registerFinalizer]();
      return event;
    });
  }

  /**
   * An event to order streams by, until `releaseEvent` is called: one that was used before, if there is one. What has
   * been told to wait for it waits for what was recorded then, whatever is recorded later.
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
   * destroyed.
   What the driver does for a stream by way of another context is not among it: see `docs/driver.md`.
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
    this.#check("cuDriverGetVersion", this.driver.opening.cuDriverGetVersion(this.#int.$address));
    return decodeVersion(this.#int.value);
  }

  // law device/CudaDevice.copy: gpu/implied_order
  /**
   * Enqueues a copy. Offsets are part of the addresses; `bytes` is greater than 0.
   *
   * @internal
   */
  copy(destination: bigint, source: bigint, bytes: number, direction: CopyDirection, stream: CudaStream): void {
    if (direction === "HtoD") stream.makeOrderExplicit(bytes);
    const { copy } = this.driver;
    const call = copyCalls[direction];
    const code = this.withContext(() => copy[call](destination, source, BigInt(bytes), stream.handle));
    if (code !== CUresult.CUDA_SUCCESS) checkReached(stream, call, code, [destination, source]);
  }

  /**
   * Enqueues a copy from one device's memory to another's, whether or not they can use each other's.
   *
   * @param stream of either device, or of a third
   */
  copyPeer(
    destination: bigint,
    to: CudaDevice,
    source: bigint,
    from: CudaDevice,
    bytes: number,
    stream: CudaStream,
  ): void {
    const { cuMemcpyPeerAsync } = this.driver.copy;
    this.withContext(() => {
      const code = cuMemcpyPeerAsync(destination, to.context, source, from.context, BigInt(bytes), stream.handle);
      this.#check("cuMemcpyPeerAsync", code);
    });
  }

  /** Enqueues a fill of `bytes` bytes, a multiple of `width`, with a value of `width` bytes. */
  fill(destination: bigint, value: number, width: 1 | 2 | 4, bytes: number, stream: CudaStream): void {
    const { fill } = this.driver;
    const call = fillCalls[width];
    const code = stream.enqueue(() => fill[call](destination, value, BigInt(bytes / width), stream.handle));
    if (code !== CUresult.CUDA_SUCCESS) checkReached(stream, call, code, [destination]);
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
   * @param options `evenClosed`: also after `close`, for whoever still has work to finish while somebody else retains
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

  /** Whether its `Cuda` is closed and nobody retains it any more: its context is gone, with all that was in it. */
  get isGone(): boolean {
    return this.#references.isDestroyed;
  }

  #checkOpen(): void {
    if (this.#references.isClosed) throw new TypeError(`Cannot use device ${this.ordinal}: its Cuda is closed`);
  }

  // law device/CudaDevice.checkThere: device/check_device
  /** The memory that calls of the driver write their results to is freed with the device. */
  #checkThere(): void {
    if (this.#references.isDestroyed) throw new TypeError(`Cannot use device ${this.ordinal}: its Cuda is closed`);
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

  #checkPriority(priority: number): void {
    const [first, last] = this.priorityRange;
    if (Number.isInteger(priority) && priority >= first && priority <= last) return;
    throw new RangeError(
      `Cannot create a stream of priority ${priority}: expected an integer from ${first} (goes first) to ${last}`,
    );
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
      if (this.#context !== 0n) this.driver.context.cuDevicePrimaryCtxRelease_v2(this.#handle);
      this.#arena.close();
    }
  }

  /** Waits for the context's work, if there is a context. What has failed there is over as well. */
  #finish(): void {
    if (this.#context === 0n || this.#references.isDestroyed) return; // a context that is released has finished
    this.withContext(() => this.driver.context.cuCtxSynchronize());
  }

  #check(call: string, code: number): void {
    checkCuda(this.driver, call, code);
  }
}
