/**
 * Bytes with an owner: where they are, what frees them, and on which stream.
 *
 * @module
 */
import {
  captureOf,
  checkOpenStream,
  checkStream,
  type CudaDevice,
  type CudaStream,
  expectDevice,
} from "../device/mod.ts";
import { isHostObserved, isSticky, noteNewHostMemory, observerOf } from "../driver/mod.ts";
import { exactAddress, ownBuffer, ownLength, ownSize } from "../ffi/mod.ts";
import { type MemoryKind, noteClosed, pinWhileInFlight, pollIfFew } from "../order/mod.ts";
import { checkOptions, giveName, nameOf, none, notMade, quoted, showAs, showBytes } from "../layout/mod.ts";
import { type Allocation, checkAllocation } from "./allocation.ts";
import type { MemoryPool } from "./memory_pool.ts";
import { type BufferDescriptor, describeMemory } from "./buffer_descriptor.ts";
import { type BufferState, type Free, freeIfDropped, freeIfUnused, moveHome, Pin, unpin } from "./buffer_state.ts";
import {
  addressOfArray,
  addressWithin,
  checkRange,
  fromPointerOptionNames,
  type FromPointerOptions,
} from "./foreign_memory.ts";
import { bytesOf, emptyParts, endsWithWorker, lenderOfBytes, noteArrayBuffer } from "./host_bytes.ts";
import {
  checkFill,
  copyBytes,
  copyOptionNames,
  type CopyOptions,
  fillBytes,
  fillOptionNames,
  type FillOptions,
  type TransferSide,
} from "./transfer.ts";

let lastId = 0;

let exactPtr: (buffer: MemoryBuffer) => number;

/**
 * The address of a buffer's first byte as a number, for hot paths where a bigint would be measurable: it is converted
 * once.
 *
 * @returns 0 if a number cannot represent it exactly
 * @throws {TypeError} as {@linkcode MemoryBuffer.ptr} does
 */
export function exactPtrOf(buffer: MemoryBuffer): number {
  return exactPtr(buffer);
}

const waysToMake = "resource.allocate(bytes), MemoryBuffer.fromArrayBuffer() or another of its static calls";

/** For foreign memory that its owner frees: closing the buffer only drops the owner. */
function freeNothing(): void {}

/**
 * A range of host or device memory.
 *
 * @example
 * ```ts ignore
 * using buffer = new HostMemoryResource().allocate(1024);
 * buffer.bytes().fill(7);
 * ```
 */
export class MemoryBuffer {
  /** Bytes. */
  readonly size: number;
  /** The device whose memory this is; null for memory on the host, pinned memory included. */
  readonly device: CudaDevice | null;
  /** Where the memory is and what can use it. */
  readonly kind: MemoryKind;
  /**
   * The device whose driver copies and fills it; null for ordinary host memory.
   *
   * @internal
   */
  readonly driven: CudaDevice | null;
  // law memory/MemoryBuffer.id: view/no_array
  /**
   * A number that no other buffer of this thread has. Functions that compare objects field by field, such as tests use,
   * cannot see what is in memory: without it they would take any two buffers of one size for equal.
   */
  readonly id: number = ++lastId;
  readonly #state: BufferState;
  /** The pool that it was allocated from, in this process or another; null if there is none. */
  readonly pool: MemoryPool | null;
  readonly #describe: Allocation["describe"];
  #bytes: Uint8Array<ArrayBuffer> | undefined;
  /** The address as a number, once it was requested. */
  #exactPtr: number | undefined;
  /**
   * The home stream of memory that is not freed here: its buffer need not be closed, so it does not retain the stream.
   */
  #borrowedHome: CudaStream | null = null;
  #readonly = false;

  // law memory/MemoryBuffer.made: memory/memory_buffer, memory/cuda_core_buffer,
  //   memory/device_memory_resource, memory/driver_memory_resource, memory/collection, sim/behaviours,
  //   view/strided_memory_view, memory/memory_programs, checker/new_host_memory
  /** Separate parameters: an options object would be one more allocation per import. */
  private constructor(
    ptr: bigint,
    size: number,
    device: CudaDevice | null,
    kind: MemoryKind,
    stream: CudaStream | null,
    owner: unknown,
    free: Free,
    argument: unknown,
    describe: Allocation["describe"],
    pool: MemoryPool | null,
  ) {
    if (kind === undefined) throw notMade("MemoryBuffer", waysToMake);
    this.#describe = describe;
    this.pool = pool;
    this.size = size;
    this.kind = kind;
    this.device = kind === "pinned" ? null : device;
    this.driven = device;
    if (stream !== null) stream.retain();
    const driver = device === null ? null : device.driver;
    this.#state = {
      ptr,
      size,
      free,
      argument,
      driver,
      retained: null,
      stream,
      owner,
      lender: undefined,
      pins: 0,
      closed: false,
    };
  }

  /**
   * A buffer over memory that a memory resource allocated. For implementations of `MemoryResource`.
   *
   * @throws {TypeError} if a member of the allocation is missing or of another kind, or the device's Cuda is closed
   * @throws {RangeError} if it has no such address, as for {@linkcode MemoryBuffer.fromPointer}
   */
  static fromAllocation(allocation: Allocation): MemoryBuffer {
    checkAllocation(allocation);
    const { ptr, size, device, kind, stream, owner, free, describe, pool } = allocation;
    const here = kind ?? (device === null ? "host" : "device");
    if (here === "host") noteNewHostMemory(ptr, size);
    return new MemoryBuffer(ptr, size, device, here, stream, owner, free, undefined, describe, pool ?? null).#owned();
  }

  /**
   * A buffer over memory of a producer, or of a pool. For the exchange protocols and pools: one function frees all
   * memory of a kind; a closure per buffer and an options object would take a tenth of an import's time.
   *
   * @internal
   * @param argument passed to `free`
   * @param free as in an allocation
   * @param describe as in an allocation
   * @param pool as in an allocation
   */
  static fromForeign<T>(
    ptr: bigint,
    size: number,
    device: CudaDevice | null,
    kind: MemoryKind,
    stream: CudaStream | null,
    owner: unknown,
    argument: T,
    free: (ptr: bigint, stream: CudaStream | null, argument: T) => void,
    describe?: Allocation["describe"],
    pool: MemoryPool | null = null,
  ): MemoryBuffer {
    const untyped = free as Free; // it is only called with this argument
    return new MemoryBuffer(ptr, size, device, kind, stream, owner, untyped, argument, describe, pool).#owned();
  }

  /** For memory that is freed here: retains its device, and frees the memory if the buffer is dropped. */
  #owned(): this {
    const state = this.#state;
    try {
      this.driven?.retain(); // whatever the resource: memory cannot be freed once its context is gone
      state.retained = this.driven;
    } catch (error) {
      state.stream?.release();
      throw error;
    }
    freeIfDropped(this, state);
    return this;
  }

  /**
   * A buffer over foreign memory that its owner frees. It need not be closed: it only references the owner, which is
   * collected with it.
   *
   * @param ptr address of the first byte
   * @param size bytes
   * @throws {RangeError} if the address or the size is negative, the end lies beyond 2^64, or bytes come with a null
   *   pointer
   * @throws {TypeError} if the stream is closed or of another Cuda, or the device's Cuda is closed
   */
  static fromPointer(ptr: bigint, size: number, options: FromPointerOptions = none): MemoryBuffer {
    checkOptions(options, fromPointerOptionNames);
    checkRange(ptr, size);
    const { owner, device = null, stream, name } = options;
    if (device !== null) expectDevice(device, "Cannot make a buffer");
    const buffer = MemoryBuffer.fromOwner(ptr, size, device, owner);
    if (device !== null && stream !== null) {
      if (stream !== undefined) checkStream(stream, device, "Cannot make a buffer with a home stream");
      buffer.#borrowedHome = stream ?? device.defaultStream;
    }
    if (name !== undefined) buffer.name = name;
    return buffer;
  }

  /**
   * As {@linkcode MemoryBuffer.fromPointer} without a stream, for the exchange protocols, which have checked the
   * address themselves: making and checking options takes a quarter of an import's time.
   *
   * @internal
   * @throws {TypeError} if the device's Cuda is closed
   */
  static fromOwner(ptr: bigint, size: number, device: CudaDevice | null, owner: unknown): MemoryBuffer {
    if (device !== null && device.isGone) throw isGone(device);
    const kind = device === null ? "host" : "device";
    if (isHostObserved() && owner instanceof ArrayBuffer) noteArrayBuffer(owner);
    return new MemoryBuffer(ptr, size, device, kind, null, owner, freeNothing, undefined, undefined, null);
  }

  /**
   * A buffer over the memory of an ArrayBuffer, or a part of it. The ArrayBuffer stays alive as long as the buffer,
   * unless it is transferred: then the buffer has no memory any more, and using it throws.
   *
   * @param byteOffset where the part begins. Default: 0
   * @param size bytes of the part. Default: all from there
   * @throws {TypeError} for a resizable ArrayBuffer, whose memory may move, and for anything else
   * @throws {RangeError} if it has no such part
   */
  static fromArrayBuffer(
    owner: ArrayBuffer,
    byteOffset = 0,
    size: number = owner instanceof ArrayBuffer && typeof byteOffset === "number" ? ownSize(owner) - byteOffset : NaN,
  ): MemoryBuffer {
    return MemoryBuffer.fromOwner(addressWithin(owner, byteOffset, size), size, null, owner);
  }

  // law memory/MemoryBuffer.over: memory/lender
  /** The memory of a typed array, which lives as long as its ArrayBuffer, unless that is transferred. */
  static #over(array: ArrayBufferView): MemoryBuffer {
    return MemoryBuffer.fromPointer(addressOfArray(array), ownLength(array), { owner: ownBuffer(array) });
  }

  /**
   * Address of the first byte; 0n if there are no bytes.
   *
   * @throws {TypeError} if the buffer is closed, or its ArrayBuffer was transferred: it has no address then
   */
  get ptr(): bigint {
    return this.#open("use");
  }

  // law memory/exactPtr: copy/host_copy
  static {
    exactPtr = (buffer) => {
      const ptr = buffer.#open("use");
      return buffer.#exactPtr ??= exactAddress(ptr);
    };
  }

  // law memory/MemoryBuffer.used: memory/memory_buffer, memory/cuda_core_buffer, memory/device_memory_resource,
  //   memory/driver_memory_resource, memory/collection, sim/behaviours, view/strided_memory_view,
  //   memory/memory_programs, memory/readonly
  /** The address, for an operation that errors name: `copy from`. */
  #open(doing: string): bigint {
    const { closed, owner, ptr } = this.#state;
    if (closed) throw this.#closed(doing);
    if (owner instanceof ArrayBuffer && owner.detached && ptr !== 0n) throw this.#transferred(doing);
    return ptr;
  }

  #side(doing: string): TransferSide {
    return { buffer: this, ptr: this.#open(doing), device: this.driven };
  }

  #writable(doing: string): TransferSide {
    if (!this.#readonly) return this.#side(doing);
    throw new TypeError(`Cannot ${doing} read-only memory of ${this.size} bytes${quoted(this.name)}: copy it first`);
  }

  #transferred(doing: string): TypeError {
    return new TypeError(
      `Cannot ${doing} ${this.size} bytes of an ArrayBuffer that was transferred, or of WebAssembly memory that grew: ` +
        "they may be gone. Copy the array first, or make a new view of the new ArrayBuffer",
    );
  }

  #closed(doing: string): TypeError {
    return new TypeError(`Cannot ${doing} a closed MemoryBuffer of ${this.size} bytes${quoted(this.name)}`);
  }

  /**
   * The home stream, which consumers wait for and on which the buffer is freed; null for memory imported without an
   * order, and for ordinary host memory, unless it was set. If its user has closed it, a separate object for as long
   * as the buffer needs the stream.
   */
  get stream(): CudaStream | null {
    return (this.#state.stream ?? this.#borrowedHome)?.orSuccessor ?? null;
  }

  /** The name set by `{ name }`, which errors and reports show; null if it has none. */
  get name(): string | null {
    return nameOf(this);
  }

  /** Sets its name, as `{ name }` does on creation. @throws {TypeError} for an empty name */
  set name(name: string) {
    giveName(this, name);
    const { driver, ptr } = this.#state;
    if (driver !== null) observerOf(driver)?.nameMemory(ptr, name);
  }

  /** What keeps foreign memory alive; undefined for memory allocated here, and once the memory is freed. */
  get owner(): unknown {
    return this.#state.owner;
  }

  /**
   * Whether the memory ends with this Worker, even while it is in use: the runtime allocated it for an ArrayBuffer, and
   * no runtime lets that outlive its thread. Exports therefore copy such memory. False for memory of a resource, even
   * when accessed through `bytes()`, and on the main thread, which ends with the program.
   *
   * @internal
   */
  get endsWithWorker(): boolean {
    const { ptr, owner } = this.#state;
    return ptr !== 0n && endsWithWorker(owner);
  }

  /**
   * Whether the memory must not be written to: its owner, which lent it, assumes that it does not change. `fill` and
   * `copyFrom` refuse to, and views of it are read-only. What `bytes()` returns must not be written to either.
   */
  get readonly(): boolean {
    return this.#readonly;
  }

  /**
   * Makes it read-only.
   *
   * @internal
   */
  protect(): this {
    this.#readonly = true;
    return this;
  }

  /** Whether the host can use the memory. */
  get isHostAccessible(): boolean {
    return this.kind !== "device";
  }

  /** Whether kernels can use the memory. */
  get isDeviceAccessible(): boolean {
    return this.kind !== "host";
  }

  /**
   * Changes the home stream, on which the buffer will be freed. Work on the old one comes before work on the new one.
   * The buffer retains the stream until it is closed or collected.
   *
   * @throws {TypeError} if the buffer or the stream is closed
   */
  setHomeStream(stream: CudaStream): void {
    if (this.#state.closed) throw this.#closed("give a home stream to");
    const before = this.stream;
    if (before === stream && stream !== null) return;
    const isFirst = this.#state.free === freeNothing && this.#state.stream === null;
    const device = this.driven ?? before?.device;
    if (device === undefined) checkOpenStream(stream, "Cannot give a buffer a home stream");
    else checkStream(stream, device, "Cannot give a buffer a home stream");
    moveHome(this.#state, before, stream);
    // A buffer over memory that is not freed here need not be closed, but from now on it retains a stream.
    if (isFirst) freeIfDropped(this, this.#state);
  }

  /** Whether `close` has been called. */
  get isClosed(): boolean {
    return this.#state.closed;
  }

  /**
   * The bytes of host-accessible memory, without a copy. The array keeps the buffer from being collected; closing the
   * buffer empties the array (its length becomes 0), so that it cannot reach freed memory. What uses the array then, as
   * a copy on a stream, an export or a message may, has pinned the buffer. Do not transfer the array to another thread:
   * closing the buffer could not empty it there.
   *
   * @throws {TypeError} for device memory, which the host cannot read
   * @throws {RangeError} if it is larger than any array of this runtime: in Bun, than 4 GiB. Make a buffer of a part of
   *   it: `MemoryBuffer.fromPointer(buffer.ptr + offset, bytes, { owner: buffer })`
   */
  bytes(): Uint8Array<ArrayBuffer> {
    const ptr = this.#open("read");
    if (!this.isHostAccessible) {
      throw new TypeError(
        'Cannot read device memory from the host. Copy it first: copyTo() of a buffer, to("host") of an array.',
      );
    }
    if (this.#bytes === undefined || this.#bytes.buffer.detached) this.#bytes = bytesOf(this, ptr);
    return this.#bytes;
  }

  /**
   * Copies all bytes of another buffer of the same size, or of a typed array, into this buffer.
   *
   * Between host buffers the copy is complete on return; without a stream nothing is waited for before it, also not the
   * home stream of page-locked memory (views wait). With device memory it is enqueued on the stream, in the order
   * of that stream alone: if that is not the home stream of a side, make it wait for the home stream first, and the
   * home stream for it afterwards (`stream.wait(home)`), or copy views, which do both. The host side must not change,
   * or be read, before the stream has passed the copy. It stays allocated until then, even if its buffer is closed or
   * the typed array dropped; a graph retains the memory that its copies use. Large amounts of ordinary host memory go
   * through pinned memory, copied by native threads, faster than the driver alone: then the call returns when the host
   * side is complete.
   *
   * @throws {RangeError} if the sizes differ
   * @throws {TypeError} if this buffer is read-only, or either is closed, or device memory is involved and no stream is
   *   given; for an array whose memory is shared between threads or resizable
   */
  copyFrom(source: MemoryBuffer | ArrayBufferView, options: CopyOptions = none): void {
    checkOptions(options, copyOptionNames);
    if (!(source instanceof MemoryBuffer)) return this.copyFrom(MemoryBuffer.#over(source), options);
    if (source.size !== this.size) {
      throw new RangeError(`Cannot copy ${source.size} bytes into a buffer of ${this.size}: expected equal sizes`);
    }
    const { stream } = options; // first: a getter of it may close one of the buffers
    const [to, from] = [this.#writable("copy into"), source.#side("copy from")];
    if (this.size > 0) copyBytes(to, from, stream);
  }

  /**
   * Fills the buffer with a value, in the order of the given stream, as {@linkcode MemoryBuffer.copyFrom}.
   *
   * @param value an unsigned number of `width` bytes, repeated
   * @throws {RangeError} if the value does not fit, or the size is not a multiple of the width
   * @throws {TypeError} if the buffer is read-only or closed, or is device memory and no stream is given
   */
  fill(value: number, options: FillOptions = none): void {
    checkOptions(options, fillOptionNames);
    const { stream, width = 1 } = options;
    checkFill(value, width, this.size);
    const side = this.#writable("fill");
    if (this.size > 0) fillBytes(side, value, width, stream);
  }

  /** Copies all bytes into another buffer of the same size, or a typed array. See {@linkcode MemoryBuffer.copyFrom}. */
  copyTo(destination: MemoryBuffer | ArrayBufferView, options: CopyOptions = none): void {
    checkOptions(options, copyOptionNames);
    if (destination instanceof MemoryBuffer) return destination.copyFrom(this, options);
    MemoryBuffer.#over(destination).copyFrom(this, options);
  }

  /**
   * Describes device memory for another process to import: pool memory with `resource.importBuffer()` of the imported
   * pool, memory of a `SynchronousMemoryResource` or of another library with `importBuffer()` of such a resource.
   *
   * The processes are responsible for the order between them. A stream of one knows nothing about the streams of the
   * other: an event made with `interprocess: true` orders them, recorded first and waited for afterwards. The importer
   * closes its buffer before this one is closed; with an event recorded after its close, which this buffer's home
   * stream waits for, neither host has to wait.
   *
   * @throws {TypeError} for memory that cannot be shared; the message says how to get memory that can
   * @throws {CudaError} if the driver refuses: memory of another library may be of any kind
   */
  exportDescriptor(): BufferDescriptor {
    const { size, device } = this;
    const ptr = this.#open("export");
    if (this.#describe !== undefined) return this.#describe(ptr, size);
    if (this.kind === "device" && device !== null) return describeMemory(device, ptr, size);
    throw new TypeError(`Cannot export ${this.kind} memory to another process: expected device memory`);
  }

  /**
   * Pins the memory, as {@linkcode MemoryBuffer.pin} does, until the result is disposed; disposing it again does
   * nothing.
   */
  pinned(): Disposable {
    this.pin();
    return new Pin(this.#state);
  }

  // law memory/MemoryBuffer.pinUntilPassed: order/pageable_in_use, sim/behaviours
  /**
   * Call right after enqueueing work on the memory: pins the memory until the work is done, even if the buffer is
   * closed or collected meanwhile. If the stream is being captured, that is as long as the graph lives. Otherwise
   * device and page-locked memory needs no pin: it is freed in the order of its home stream.
   */
  pinUntilPassed(stream: CudaStream): void {
    const capture = captureOf(stream);
    if (capture !== null) capture.retain({ home: () => this.stream, retained: this.pinned() });
    else if (this.kind === "host") pinWhileInFlight(this, stream);
  }

  // law memory/MemoryBuffer.pin: memory/memory_buffer, memory/cuda_core_buffer, memory/device_memory_resource,
  //   memory/driver_memory_resource, memory/collection, sim/behaviours, view/strided_memory_view,
  //   memory/memory_programs, memory/lender
  /**
   * Pins the memory: its address stays valid, even if the buffer is closed meanwhile, until `unpin` is called once.
   * Exports do this for their consumers.
   *
   * @throws {TypeError} if the buffer is closed
   */
  pin(): void {
    const state = this.#state;
    if (state.closed) throw this.#closed("pin");
    if (state.lender === undefined) state.lender = lenderOf(state.owner);
    state.lender?.pin(); // first: it may be closed
    state.pins++;
  }

  /** Ends one {@linkcode MemoryBuffer.pin}. */
  unpin(): void {
    unpin(this.#state);
  }

  // law memory/MemoryBuffer.close: sim/behaviours, memory/memory_buffer, memory/cuda_core_buffer,
  //   memory/device_memory_resource, memory/driver_memory_resource, memory/collection, view/strided_memory_view,
  //   memory/memory_programs, order/pageable_in_use, memory/host_order, memory/large_memory
  /**
   * Frees the memory: on its home stream, or on the given stream, which becomes the home stream, as with
   * {@linkcode MemoryBuffer.setHomeStream}. Memory that is pinned, by an export for example, is freed when it is
   * unpinned. Closing twice is harmless.
   *
   * @throws {TypeError} if the stream is closed, of another Cuda, or no stream
   */
  close(stream?: CudaStream): void {
    if (this.#state.closed) return;
    if (stream !== undefined) {
      this.#moveLast(stream);
      if (this.kind === "host") pinWhileInFlight(this, stream); // the host frees it once the stream has reached this
    }
    if (this.kind === "host" && this.#state.pins > 0) {
      pollIfFew(); // the work that it was pinned for may be done
      noteClosed();
    }
    this.#state.closed = true;
    const given = this.#bytes?.buffer;
    if (given?.detached === false) given.transfer(); // moves no bytes: the array becomes empty
    emptyParts(this);
    const { driver, ptr } = this.#state;
    if (driver !== null) observerOf(driver)?.closedByUser(ptr); // an export or work in flight may keep it
    freeIfUnused(this.#state);
  }

  /** Frees the memory. */
  [Symbol.dispose](): void {
    this.close();
  }

  /**
   * Moves a buffer that is about to be closed to another home stream; in a lost context there is nothing left to wait
   * for.
   */
  #moveLast(stream: CudaStream): void {
    try {
      this.setHomeStream(stream);
    } catch (error) {
      if (!isSticky(error)) throw error;
    }
  }

  static {
    showAs(MemoryBuffer, (buffer) => {
      const home = buffer.isClosed || buffer.stream === null ? "" : `, ordered on ${buffer.stream}`;
      return `${describeBuffer(buffer)}${home}${buffer.isClosed ? ", closed" : ""}`;
    });
  }
}

// law memory/lenderOf: memory/lender
/** The buffer whose memory another one is over, as far as its owner tells; null if it is no other's. */
function lenderOf(owner: unknown): MemoryBuffer | null {
  if (owner instanceof MemoryBuffer) return owner;
  return owner instanceof ArrayBuffer ? lenderOfBytes(owner) : null;
}

function isGone(device: CudaDevice): TypeError {
  return new TypeError(`Cannot make a buffer of memory of ${device}: its Cuda is closed`);
}

/** `"weights" 4 KiB of device 0`. */
function describeBuffer({ name, size, kind, device }: MemoryBuffer): string {
  const place = kind === "host"
    ? "host memory"
    : kind === "pinned"
    ? "pinned memory"
    : `${kind === "managed" ? "managed " : ""}memory of ${device}`;
  return `${quoted(name)} ${showBytes(size)} of ${place}`.trimStart();
}
