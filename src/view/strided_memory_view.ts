/**
 * A view: memory, seen through a layout and an element type.
 *
 * @module
 */
import { checkOpenStream, checkPlace, checkStream, isSameDevice } from "../device/check_device.ts";
import type { CudaDevice } from "../device/device.ts";
import type { CudaStream } from "../device/stream.ts";
import type { ArrayInterface, CudaArrayInterface } from "../dlpack/array_interface.ts";
import type { ArrowDeviceArray, FromArrowOptions, ToArrowOptions } from "../cdata/device_array.ts";
import type { Lease } from "./lease.ts";
import type { DlpackTensor, ImportOptions, ToDlpackOptions } from "../dlpack/tensor.ts";
import { newArrayBuffer } from "../native/mod.ts";
import { DType, type Shape, type SliceItem, StridedLayout, type TypedArray } from "../layout/mod.ts";
import { checkOptions, none, type OptionNames } from "../layout/options.ts";
import { noSize, show } from "../layout/shape.ts";
import { MemoryBuffer } from "../memory/memory_buffer.ts";
import { stagingOf } from "../memory/staging.ts";
import { type Conversion, conversionOf } from "../copy/conversion.ts";
import { copyOnDevice, copyThroughDense, explainDeviceCopy } from "../copy/device_copy.ts";
import { convertHost } from "../copy/host_conversion.ts";
import { copyHost, denseCopy, explainHostCopy, type HostArray } from "../copy/host_copy.ts";
import { noteElementAccess } from "../order/host_access.ts";
import { print } from "./print.ts";
import { readBack, runTo } from "../copy/read_back.ts";
import { arraySourceOf, protocols, spokenProtocols } from "./from.ts";

/** How {@linkcode StridedMemoryView.fromBuffer} sees a buffer. */
export interface FromBufferOptions {
  /** Extents. */
  readonly shape: Shape;
  /** Strides in elements. Default: C order without gaps. */
  readonly strides?: readonly number[] | null;
  /** Element type, or its name. */
  readonly dtype: DType | string;
  /** Bytes from the start of the buffer to offset 0 of the layout. Default 0. */
  readonly offset?: number;
  /** Whether writing through the view is refused. Default false. */
  readonly readonly?: boolean;
}

const fromBufferOptionNames: OptionNames<FromBufferOptions> = {
  shape: true,
  strides: true,
  dtype: true,
  offset: true,
  readonly: true,
};

/** How {@linkcode StridedMemoryView.copyFrom} copies. */
export interface ViewCopyOptions {
  /** Where the copy is enqueued, if a device has to do with it. Default: the home stream of the side that has one. */
  readonly stream?: CudaStream;
  /**
   * Whether elements of another type are converted: default false, and another type is an error.
   *
   * Numbers are rounded to the nearest, ties to even. Integers wrap around when they become smaller ones; a float loses its
   * fraction, becomes the nearest integer that there is, and 0 if it is NaN. Of a complex number only the real part is
   * kept, unless the destination is complex; a truth value is whether anything is not 0. Wherever the elements are, the
   * results are the same. There are conversions between booleans, integers of 8 to 64 bits, float16, bfloat16, float32,
   * float64, complex64 and complex128.
   */
  readonly convert?: boolean;
}

const fromTypedArrayOptionNames = { shape: true } as const;

const viewOptionNames = { layout: true, dtype: true } as const;

const viewCopyOptionNames: OptionNames<ViewCopyOptions> = { stream: true, convert: true };

/** An import, as far as a view needs it. */
interface Closeable {
  close(): void;
}

/**
 * Memory seen as an n-dimensional array. Making one moves no data; views of a view share its memory.
 *
 * A view does not own its buffer: whoever allocated the buffer closes it. A view made by importing from another library
 * owns the import: closing it gives the memory back.
 *
 * @example
 * ```ts ignore
 * const view = StridedMemoryView.fromTypedArray(new Float32Array(12), { shape: [3, 4] });
 * view.sliced(slice(null, null, -1), 2).shape; // [3]
 * ```
 */
export class StridedMemoryView {
  /** Where the elements lie. */
  readonly layout: StridedLayout;
  /** What they are. */
  readonly dtype: DType;
  /** Whether writing through this view is refused. Consumers of an export are told. */
  readonly readonly: boolean;
  /** The memory. */
  readonly buffer: MemoryBuffer;
  /** Bytes from the start of the buffer to offset 0 of the layout. */
  readonly offset: number;
  /** What `close` closes. */
  readonly #imported: Closeable | null;

  /** One by one: see {@linkcode MemoryBuffer.fromForeign}. The layout lies inside the buffer: who calls this has looked. */
  private constructor(
    buffer: MemoryBuffer,
    offset: number,
    layout: StridedLayout,
    dtype: DType,
    readonly: boolean,
    imported: Closeable | null,
  ) {
    if (layout.itemsize !== dtype.itemsize) {
      throw new RangeError(
        `Cannot see elements of ${layout.itemsize} bytes as ${dtype.name}: expected an itemsize of ${dtype.itemsize}`,
      );
    }
    this.layout = layout;
    this.dtype = dtype;
    this.readonly = readonly;
    this.buffer = buffer;
    this.offset = offset;
    this.#imported = imported;
  }

  /**
   * Sees an array of whatever kind without copying it: a typed array, or an object that speaks one of the exchange
   * protocols (`__dlpack__`, `__cuda_array_interface__`, `__array_interface__`,
   * `__arrow_c_device_array__`, `__arrow_c_array__`). If it speaks several, the first of these
   * is used. A view is itself, unless it is device memory that will be used on another stream than its own: then it is
   * taken as any other library's array is, in order, and given back when it is closed.
   *
   * @throws {TypeError} for anything else
   * @throws {ExchangeError} if the array cannot be taken as it is
   */
  static from(source: unknown, options: ImportOptions = none): StridedMemoryView {
    checkPlace(options, "Cannot view an array");
    if (source instanceof StridedMemoryView) {
      const { stream = null, device } = options;
      if (device !== undefined && source.device !== null && !isSameDevice(device, source.device)) {
        throw new TypeError(
          `Cannot view memory of device ${source.device.ordinal} as memory of device ${device.ordinal}: copy it there`,
        );
      }
      const isAtHome = source.device === null || stream === null || stream === source.stream;
      return isAtHome ? source : protocols().fromDlpack(source, options);
    }
    if (ArrayBuffer.isView(source) && !(source instanceof DataView)) {
      return StridedMemoryView.fromTypedArray(source as TypedArray); // a view that is no DataView is a typed array
    }
    const kind = arraySourceOf(source);
    if (kind === undefined) {
      throw new TypeError(
        `Cannot view ${describe(source)}: expected a typed array or an object with one of ${spokenProtocols()}`,
      );
    }
    return kind.take(source as object, options); // only objects and functions are of a kind
  }

  /**
   * Sees a typed array without copying it. The array's memory stays alive as long as the view's buffer. If its ArrayBuffer
   * is transferred to somebody else (`postMessage` and `structuredClone` do, and a WebAssembly memory that grows), using the
   * view is an error from then on; what was exported before must be released by then. In a Worker exports are copies,
   * because the memory ends with the Worker: `HostMemoryResource` has memory that is exported in place.
   *
   * @param array any typed array; BigInt64Array and Float16Array too
   * @param options `shape`: extents whose product is the array's length. Default: one axis
   * @throws {TypeError} if the array lies in shared or resizable memory
   * @throws {RangeError} if the shape does not have as many elements as the array
   */
  static fromTypedArray(array: TypedArray, options: { readonly shape?: Shape } = {}): StridedMemoryView {
    checkOptions(options, fromTypedArrayOptionNames);
    const dtype = DType.fromTypedArray(array);
    const layout = StridedLayout.dense(options.shape ?? [array.length], dtype.itemsize);
    if (layout.volume !== array.length) {
      throw new RangeError(`Cannot see ${array.length} elements as shape (${layout.shape.join(", ")})`);
    }
    const { buffer: owner, byteOffset, byteLength } = array;
    if (!(owner instanceof ArrayBuffer)) {
      throw new TypeError("Cannot take the address of shared memory. Copy the array first.");
    }
    const buffer = MemoryBuffer.fromArrayBuffer(owner, byteOffset, byteLength);
    return new StridedMemoryView(buffer, 0, layout, dtype, false, null);
  }

  /**
   * Sees a buffer's bytes.
   *
   * @throws {RangeError} if the layout reaches outside the buffer; the message has both sizes
   */
  static fromBuffer(buffer: MemoryBuffer, options: FromBufferOptions): StridedMemoryView {
    checkOptions(options, fromBufferOptionNames);
    const dtype = DType.from(options.dtype);
    const layout = new StridedLayout(options.shape, options.strides ?? null, dtype.itemsize);
    const { offset = 0, readonly = false } = options;
    checkBounds(buffer, offset, layout);
    return new StridedMemoryView(buffer, offset, layout, dtype, readonly, null);
  }

  /**
   * Takes an array over by DLPack: from an object with `__dlpack__()`, a tensor that an export has returned, or the address
   * of a struct of the caller's: `{ managedTensorVersioned: address }`.
   *
   * @throws {ExchangeError} if it cannot be honoured; nothing is taken then
   */
  static fromDlpack(source: unknown, options: ImportOptions = none): StridedMemoryView {
    return protocols().fromDlpack(source, options);
  }

  /**
   * Sees device memory that an object describes by its `__cuda_array_interface__` (version 3 and older).
   *
   * The object is kept alive by the view's buffer. What the producer has enqueued on its stream comes before whatever the
   * given stream does next, and when the view is closed, what was enqueued there comes before the producer's next work.
   * With a device alone the view is ordered on the producer's stream.
   *
   * @example
   * ```ts
   * import { Cuda, DeviceMemoryResource, StridedMemoryView } from "@causeway/causeway";
   *
   * using cuda = Cuda.simulate(); // or Cuda.open(), where there is a GPU
   * using stream = cuda.device(0).createStream();
   * using buffer = new DeviceMemoryResource(cuda.device(0)).allocate(24, { stream });
   * const view = StridedMemoryView.fromBuffer(buffer, { shape: [2, 3], dtype: "float32" });
   * const theirs = { __cuda_array_interface__: view.toCudaArrayInterface() }; // as another library would have it
   * using seen = StridedMemoryView.fromCudaArrayInterface(theirs, { stream });
   * console.log(seen.ptr === view.ptr); // true
   * ```
   *
   * @param options `stream`: where the memory will be used, or null for no order; `device`: needed without a stream
   * @throws {ExchangeError} for what the protocol forbids, masked and structured arrays
   */
  static fromCudaArrayInterface(source: unknown, options: ImportOptions = none): StridedMemoryView {
    return protocols().fromCudaArrayInterface(source, options);
  }

  /**
   * Sees host memory that an object describes by its `__array_interface__`, as NumPy's arrays do. The object is kept
   * alive by the view's buffer.
   *
   * @throws {ExchangeError} for masked and structured arrays, and other memory than what an address says
   */
  static fromArrayInterface(source: unknown): StridedMemoryView {
    return protocols().fromArrayInterface(source, {});
  }

  /**
   * Takes an array of numbers over by the Arrow C device or C data interface: from an object with
   * `__arrow_c_device_array__()` or `__arrow_c_array__()`, an export of ours, or the addresses of the structs. Fixed-size
   * lists become axes. The view is read-only, as Arrow's data is.
   *
   * @throws {ExchangeError} if it cannot be honoured, or the array has nulls, or no numbers: `ArrowArray.from` takes every
   *   array. Nothing is taken then
   */
  static fromArrowDevice(source: unknown, options: FromArrowOptions = {}): StridedMemoryView {
    return protocols().fromArrow(source, options);
  }

  /**
   * A view over foreign memory. For the exchange protocols, which have looked that the layout lies inside the buffer.
   *
   * @param imported what `close` closes to give the memory back: the buffer, or an import that is more than that
   */
  static fromImport(
    buffer: MemoryBuffer,
    offset: number,
    layout: StridedLayout,
    dtype: DType,
    readonly: boolean,
    imported: Closeable | null,
  ): StridedMemoryView {
    return new StridedMemoryView(buffer, offset, layout, dtype, readonly, imported);
  }

  /** Address of the first element; 0n if there are none. */
  get ptr(): bigint {
    const { ptr } = this.buffer;
    if (this.layout.volume === 0) return 0n;
    const before = this.offset + this.layout.sliceOffsetInBytes;
    return before === 0 ? ptr : ptr + BigInt(before);
  }

  /** Extents. */
  get shape(): Shape {
    return this.layout.shape;
  }

  /** Strides in elements. */
  get strides(): readonly number[] {
    return this.layout.strides;
  }

  /** Bytes that the elements take without gaps. */
  get nbytes(): number {
    return Math.ceil(this.layout.volume * this.dtype.itemsize);
  }

  /** The device whose memory this is, or null for host memory. */
  get device(): CudaDevice | null {
    return this.buffer.device;
  }

  /** The stream that the memory is ordered on, or null for host memory. */
  get stream(): CudaStream | null {
    return this.buffer.stream;
  }

  /** What keeps the memory alive. */
  get owner(): unknown {
    return this.buffer.owner;
  }

  /**
   * Sees the same memory with another layout or element type.
   *
   * @throws {RangeError} if the layout reaches outside the buffer, or its itemsize is not that of the element type
   */
  view(options: { readonly layout?: StridedLayout; readonly dtype?: DType | string }): StridedMemoryView {
    checkOptions(options, viewOptionNames);
    const { layout = this.layout, dtype = this.dtype } = options;
    return this.#with(layout, DType.from(dtype));
  }

  /** Selects by numbers, slices, `null` (a new axis) and `"..."`. Moves nothing. */
  sliced(...items: SliceItem[]): StridedMemoryView {
    return this.#with(this.layout.sliced(...items));
  }

  /** Sees the elements, in C order, in another shape. Moves nothing. @throws {RangeError} where only a copy could */
  reshaped(shape: Shape): StridedMemoryView {
    return this.#with(this.layout.reshaped(shape));
  }

  /** Reorders the axes. Moves nothing. */
  permuted(axes: readonly number[]): StridedMemoryView {
    return this.#with(this.layout.permuted(axes));
  }

  /**
   * Copies the elements of another view or a typed array of the same shape and type into this one, whatever their
   * layouts and wherever they are. Where the two share memory the elements are those from before the copy. Elements of
   * another type are converted if `convert` says so: on the device, if it has to do with the copy. Of a byte that packed
   * elements share with others only their own bits change.
   *
   * Between host arrays the copy is done on return, and page-locked memory is waited for: for the stream, and for both
   * home streams. Otherwise it is enqueued on a stream (by default the home stream of
   * whichever side has one), after what both home streams hold and before what they get next. Host memory then must not
   * change, or be read, before the stream has passed the copy, and stays allocated until then; only where the host has to
   * arrange the elements of a destination of its own, and where native threads take much ordinary memory through pinned
   * memory, does the call wait until the host's side is done. {@linkcode StridedMemoryView.explainCopyFrom} tells how it is
   * done. While the stream is captured the copy becomes part of the graph, which keeps the memory of both sides.
   *
   * @throws {TypeError} if this view is read-only, the types differ and are not, or cannot be, converted, or the stream is
   *   captured and the copy needs memory on the way or elements that the host arranges
   * @throws {RangeError} if the shapes differ, or elements of this view share memory with each other on the device
   *
   * @example
   * ```ts
   * import { StridedMemoryView } from "@causeway/causeway";
   *
   * const view = StridedMemoryView.fromTypedArray(new Int8Array(4));
   * view.copyFrom(Float64Array.of(1.9, -1.9, 1000, NaN), { convert: true });
   * console.log(`${view}`); // [  1  -1 127   0]
   * ```
   */
  copyFrom(source: StridedMemoryView | TypedArray, options: ViewCopyOptions = none): void {
    const { from, conversion } = this.#copySource(source, options);
    const device = this.#drivenBy(from);
    if (options.stream !== undefined) checkOpenStream(options.stream, "Cannot copy on a stream");
    if (device === null) {
      // The host copies at once: page-locked memory is waited for as a copy on the stream would wait for it.
      for (const order of new Set([options.stream, from.stream, this.stream])) order?.waitUntilReady();
      const elements = from.#host("copy from", false);
      const apart = this.#mayMeet(from) ? denseCopy(elements) : elements;
      if (conversion === null) copyHost(apart, this.#host("copy to", true));
      else convertHost(apart, this.#host("copy to", true), conversion);
      return;
    }
    if (this.layout.volume === 0) return;
    const stream = this.#orderOf(from, device, options);
    if (this.#mayMeet(from)) copyThroughDense(from, this, stream, conversion);
    else copyOnDevice(from, this, stream, conversion);
  }

  /**
   * How {@linkcode StridedMemoryView.copyFrom} would copy, in words: for whoever wonders where the time goes.
   *
   * @throws {TypeError | RangeError} as `copyFrom` does
   */
  explainCopyFrom(source: StridedMemoryView | TypedArray, options: ViewCopyOptions = none): string {
    const { from, conversion } = this.#copySource(source, options);
    const words = this.#explain(from, conversion, options);
    return this.#mayMeet(from) ? `${words}, by way of a copy, because the two may share memory` : words;
  }

  #explain(from: StridedMemoryView, conversion: Conversion | null, options: ViewCopyOptions): string {
    const device = this.#drivenBy(from);
    if (device !== null) return explainDeviceCopy(from, this, this.#orderOf(from, device, options), conversion);
    if (conversion === null) return explainHostCopy(from.layout, this.layout);
    return `element by element by the host, ${conversion.from.name} to ${conversion.to.name}`;
  }

  /** The device that has to do with a copy, or null if the host copies by itself. */
  #drivenBy(from: StridedMemoryView): CudaDevice | null {
    return this.device ?? from.device;
  }

  #orderOf(from: StridedMemoryView, device: CudaDevice, { stream }: ViewCopyOptions): CudaStream {
    if (stream !== undefined) checkStream(stream, device, "Cannot copy on a stream");
    const other = from.device;
    if (other !== null && other.driver !== device.driver) {
      throw new TypeError("Cannot copy a view of another Cuda: copy it to the host first");
    }
    return stream ?? this.stream ?? from.stream ?? device.defaultStream;
  }

  #copySource(
    source: StridedMemoryView | TypedArray,
    options: ViewCopyOptions,
  ): { readonly from: StridedMemoryView; readonly conversion: Conversion | null } {
    checkOptions(options, viewCopyOptionNames);
    const { convert = false } = options;
    const from = source instanceof StridedMemoryView ? source : StridedMemoryView.from(source);
    if (this.readonly) throw new TypeError("Cannot copy into a read-only view");
    if (!convert && !from.dtype.equals(this.dtype)) {
      throw new TypeError(
        `Cannot copy ${from.dtype.name} into ${this.dtype.name}: expected equal element types. ` +
          "Pass { convert: true } to have the elements converted",
      );
    }
    if (from.shape.length !== this.shape.length || from.shape.some((extent, axis) => extent !== this.shape[axis])) {
      throw new RangeError(
        `Cannot copy shape (${from.shape.join(", ")}) into (${this.shape.join(", ")}): expected equal shapes`,
      );
    }
    return { from, conversion: conversionOf(from.dtype, this.dtype) };
  }

  /** Copies the elements into another view or a typed array. See {@linkcode StridedMemoryView.copyFrom}. */
  copyTo(destination: StridedMemoryView | TypedArray, options: ViewCopyOptions = none): void {
    StridedMemoryView.from(destination).copyFrom(this, options);
  }

  /**
   * A copy of the elements, in C order, in the typed array that `dtype.typedArray` names. Device memory is read on its home stream, which
   * is waited for, as is that of page-locked memory.
   *
   * @throws {TypeError} if no typed array has elements of this type
   */
  async toTypedArray(): Promise<TypedArray> {
    const copy = new (this.dtype.require("typedArray"))(newArrayBuffer(this.nbytes));
    if (this.layout.volume === 0) return copy;
    const { device, stream, dtype } = this;
    const bytes = new Uint8Array(copy.buffer, copy.byteOffset, copy.byteLength);
    const target = { bytes, offset: 0, layout: StridedLayout.dense(this.shape, dtype.itemsize) };
    if (device === null) {
      // Page-locked memory has a home, which may have got more to do when it is waited for: so it is copied there.
      if (stream === null) copyHost(this.#host("read", false), target);
      else await readBack(this, bytes, target.layout, stream, null);
      return copy;
    }
    const order = stream ?? device.defaultStream;
    await readBack(this, bytes, target.layout, order, stagingOf(runTo(bytes, 0n), order));
    return copy;
  }

  /**
   * Lends the array to a stream, until the lease is closed: after all that its home stream holds now, and before all that
   * the home stream gets afterwards.
   *
   * @throws {TypeError} if the buffer or the stream is closed
   *
   * @example
   * ```ts
   * import { Cuda, StridedMemoryView } from "@causeway/causeway";
   *
   * using cuda = Cuda.simulate();
   * const device = cuda.device(0);
   * using home = device.createStream();
   * using other = device.createStream();
   * using buffer = device.memory.allocate(4, { stream: home });
   * const view = StridedMemoryView.fromBuffer(buffer, { shape: [4], dtype: "uint8" });
   * buffer.fill(1, { stream: home });
   * {
   *   using lease = view.borrow(other);
   *   lease.view.buffer.fill(2, { stream: other }); // after the first fill
   * }
   * buffer.fill(3, { stream: home }); // after the second
   * console.log(await view.toTypedArray()); // Uint8Array(4) [ 3, 3, 3, 3 ]
   * ```
   */
  borrow(stream: CudaStream): Lease {
    return protocols().borrow(this, stream);
  }

  /**
   * Hands the array over by DLPack, without copying it. The memory stays allocated until the consumer releases it.
   *
   * @throws {ExchangeError} if DLPack cannot say what this view is
   */
  toDlpack(options: ToDlpackOptions = none): DlpackTensor {
    return protocols().toDlpack(this, options);
  }

  /** The DLPack protocol, as other libraries call it. */
  __dlpack__(options: ToDlpackOptions = none): DlpackTensor {
    return this.toDlpack(options);
  }

  /** DLPack's device type and number: `[1, 0]` for host memory, `[2, n]` for CUDA device n. */
  __dlpack_device__(): [type: number, id: number] {
    return protocols().dlpackDevice(this);
  }

  /**
   * Describes device memory by the CUDA Array Interface, version 3. The memory stays the view's: whoever uses it keeps
   * the view's buffer open, and orders its work on the `stream` that the description names.
   *
   * @throws {ExchangeError} for host memory, and for an element type without a type string
   */
  toCudaArrayInterface(): CudaArrayInterface {
    return protocols().toCudaArrayInterface(this);
  }

  /** The CUDA Array Interface, as other libraries look for it; undefined for host memory. */
  get __cuda_array_interface__(): CudaArrayInterface | undefined {
    return this.device === null ? undefined : this.toCudaArrayInterface();
  }

  /** NumPy's array interface, as other libraries look for it; undefined for device memory. */
  get __array_interface__(): ArrayInterface | undefined {
    return this.device === null ? protocols().toArrayInterface(this) : undefined;
  }

  /**
   * Hands the array over by the Arrow C device interface, without copying it, as an array of numbers; every axis after the
   * first becomes a fixed-size list. The memory stays allocated until the consumer releases it.
   *
   * @throws {ExchangeError} if Arrow cannot say what this view is: elements out of C order, a type that it does not have
   */
  toArrowDevice(options: ToArrowOptions = {}): ArrowDeviceArray {
    return protocols().toArrow(this, options, "device");
  }

  /** The Arrow C device protocol, as other libraries call it. */
  __arrow_c_device_array__(options: ToArrowOptions = {}): ArrowDeviceArray {
    return protocols().toArrow(this, options, "device");
  }

  /** The Arrow C data protocol, as other libraries call it. @throws {ExchangeError} for device memory */
  __arrow_c_array__(options: ToArrowOptions = {}): ArrowDeviceArray {
    return protocols().toArrow(this, options, "host");
  }

  /**
   * The elements as NumPy prints an array: of more than 1000 only the corners. Device memory is copied first, no more
   * of it than is printed, and the home stream is waited for, that of page-locked memory too.
   *
   * @throws {TypeError} if the view's buffer is closed
   *
   * @example
   * ```ts
   * import { StridedMemoryView } from "@causeway/causeway";
   *
   * const view = StridedMemoryView.fromTypedArray(Float32Array.of(1, 2.5, -3, 4), { shape: [2, 2] });
   * console.log(`${view.sliced(0)}`); // [1. 2.5]
   * ```
   */
  toString(): string {
    return print(this);
  }

  /** Gives an import back to its owner. For any other view it does nothing: its buffer is closed by whoever made it. */
  close(): void {
    this.#imported?.close();
  }

  /** Gives an import back. */
  [Symbol.dispose](): void {
    this.close();
  }

  /** Whether the memory between the first and the last element of each has bytes in common. */
  #mayMeet(other: StridedMemoryView): boolean {
    const { ptr, size } = this.buffer;
    const { ptr: otherPtr, size: otherSize } = other.buffer;
    if (ptr + BigInt(size) <= otherPtr || otherPtr + BigInt(otherSize) <= ptr) return false; // mostly, and soon said
    const [start, end] = this.#span();
    const [otherStart, otherEnd] = other.#span();
    return start < otherEnd && otherStart < end;
  }

  #span(): [start: bigint, end: bigint] {
    const [min, max] = this.layout.offsetBounds;
    const base = this.buffer.ptr + BigInt(this.offset);
    const { itemsize } = this.dtype;
    return [base + BigInt(Math.floor(min * itemsize)), base + BigInt(Math.ceil((max + 1) * itemsize))];
  }

  #with(layout: StridedLayout, dtype: DType = this.dtype): StridedMemoryView {
    const { buffer, offset, readonly } = this;
    checkBounds(buffer, offset, layout);
    return new StridedMemoryView(buffer, offset, layout, dtype, readonly, null);
  }

  #host(doing: string, writes: boolean): HostArray {
    if (this.device !== null) {
      throw new TypeError(`Cannot ${doing} device memory from the host. Copy it to host memory first.`);
    }
    const bytes = this.buffer.bytes();
    noteElementAccess(this, writes, doing === "read" ? "view.toTypedArray()" : "view.copyFrom()");
    return { bytes, offset: this.offset, layout: this.layout };
  }
}

function checkBounds(buffer: MemoryBuffer, offset: number, layout: StridedLayout): void {
  if (!Number.isSafeInteger(offset) || offset < 0) {
    throw noSize(`start ${show(offset)} bytes into a buffer`, offset);
  }
  if (layout.volume === 0) return;
  const { minOffset: min, maxOffset: max } = layout;
  const start = offset + min * layout.itemsize;
  const end = offset + (max + 1) * layout.itemsize;
  if (start < 0 || end > buffer.size) {
    throw new RangeError(
      `Cannot see bytes ${start} to ${end} of a buffer of ${buffer.size}: the layout reaches outside it. ` +
        `Expected at least ${Math.ceil(end)} bytes${start < 0 ? ` and an offset of at least ${offset - start}` : ""}.`,
    );
  }
}

function describe(value: unknown): string {
  if (value === null || typeof value !== "object") return `${typeof value} ${String(value)}`;
  return value.constructor?.name ?? "an object";
}
