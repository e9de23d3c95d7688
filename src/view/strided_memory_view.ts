/**
 * A view: memory, seen through a layout and an element type.
 *
 * @module
 */
import {
  type ArrowDeviceArray,
  type FromArrowOptions,
  importNumbers,
  numbersToArrow,
  type ToArrowOptions,
} from "../cdata/mod.ts";
import {
  type ArrayParts,
  byteCount,
  checkBounds,
  type Closeable,
  copyElements,
  explainCopy,
  firstAddress,
  readElements,
  type ViewCopyOptions,
} from "../copy/mod.ts";
import { checkPlace, type CudaDevice, type CudaStream, isSameDevice } from "../device/mod.ts";
import {
  type ArrayInterface,
  type CudaArrayInterface,
  dlpackDevice,
  type DlpackTensor,
  fromArrayInterface,
  fromCudaArrayInterface,
  fromDlpack,
  type ImportOptions,
  toArrayInterface,
  toCudaArrayInterface,
  toDlpack,
  type ToDlpackOptions,
} from "../dlpack/mod.ts";
import {
  checkOptions,
  DType,
  none,
  type OptionNames,
  type Shape,
  type SliceItem,
  StridedLayout,
  type TypedArray,
} from "../layout/mod.ts";
import { MemoryBuffer } from "../memory/mod.ts";
import { newArrayBuffer } from "../native/mod.ts";
import { fromProtocol } from "./from.ts";
import { Lease } from "./lease.ts";
import { print } from "./print.ts";

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

const fromTypedArrayOptionNames = { shape: true } as const;

const viewOptionNames = { layout: true, dtype: true } as const;

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
      return isAtHome ? source : fromDlpack(source, options, StridedMemoryView.fromImport);
    }
    if (ArrayBuffer.isView(source) && !(source instanceof DataView)) {
      return StridedMemoryView.fromTypedArray(source as TypedArray); // a view that is no DataView is a typed array
    }
    return fromProtocol(source, options, StridedMemoryView.fromImport);
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
    return fromDlpack(source, options, StridedMemoryView.fromImport);
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
    return fromCudaArrayInterface(source, options, StridedMemoryView.fromImport);
  }

  /**
   * Sees host memory that an object describes by its `__array_interface__`, as NumPy's arrays do. The object is kept
   * alive by the view's buffer.
   *
   * @throws {ExchangeError} for masked and structured arrays, and other memory than what an address says
   */
  static fromArrayInterface(source: unknown): StridedMemoryView {
    return fromArrayInterface(source, StridedMemoryView.fromImport);
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
    return importNumbers(source, options, StridedMemoryView.fromImport);
  }

  /**
   * A view over foreign memory. For imports, which have looked that the layout lies inside the buffer.
   *
   * @param imported what `close` closes to return the memory: the buffer, or an import that is more than that
   * @internal
   */
  static fromImport(
    this: void,
    buffer: MemoryBuffer,
    offset: number,
    layout: StridedLayout,
    dtype: DType,
    readonly: boolean,
    imported: Closeable | null,
  ): StridedMemoryView {
    return new StridedMemoryView(buffer, offset, layout, dtype, readonly, imported);
  }

  /**
   * An array of which the parts are known as a view.
   *
   * @internal
   */
  static fromParts(this: void, { buffer, offset, layout, dtype, readonly }: ArrayParts): StridedMemoryView {
    return new StridedMemoryView(buffer, offset, layout, dtype, readonly, null);
  }

  /** Address of the first element; 0n if there are none. */
  get ptr(): bigint {
    return firstAddress(this);
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
    return byteCount(this);
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
    copyElements(StridedMemoryView.from(source), this, options);
  }

  /**
   * How {@linkcode StridedMemoryView.copyFrom} would copy, in words: for whoever wonders where the time goes.
   *
   * @throws {TypeError | RangeError} as `copyFrom` does
   */
  explainCopyFrom(source: StridedMemoryView | TypedArray, options: ViewCopyOptions = none): string {
    return explainCopy(StridedMemoryView.from(source), this, options);
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
    if (this.layout.volume > 0) {
      await readElements(this, new Uint8Array(copy.buffer, copy.byteOffset, copy.byteLength));
    }
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
    return new Lease(this, stream);
  }

  /**
   * Hands the array over by DLPack, without copying it. The memory stays allocated until the consumer releases it.
   *
   * @throws {ExchangeError} if DLPack cannot say what this view is
   */
  toDlpack(options: ToDlpackOptions = none): DlpackTensor {
    return toDlpack(this, options);
  }

  /** The DLPack protocol, as other libraries call it. */
  __dlpack__(options: ToDlpackOptions = none): DlpackTensor {
    return this.toDlpack(options);
  }

  /** DLPack's device type and number: `[1, 0]` for host memory, `[2, n]` for CUDA device n. */
  __dlpack_device__(): [type: number, id: number] {
    return dlpackDevice(this);
  }

  /**
   * Describes device memory by the CUDA Array Interface, version 3. The memory stays the view's: whoever uses it keeps
   * the view's buffer open, and orders its work on the `stream` that the description names.
   *
   * @throws {ExchangeError} for host memory, and for an element type without a type string
   */
  toCudaArrayInterface(): CudaArrayInterface {
    return toCudaArrayInterface(this);
  }

  /** The CUDA Array Interface, as other libraries look for it; undefined for host memory. */
  get __cuda_array_interface__(): CudaArrayInterface | undefined {
    return this.device === null ? undefined : this.toCudaArrayInterface();
  }

  /** NumPy's array interface, as other libraries look for it; undefined for device memory. */
  get __array_interface__(): ArrayInterface | undefined {
    return this.device === null ? toArrayInterface(this) : undefined;
  }

  /**
   * Hands the array over by the Arrow C device interface, without copying it, as an array of numbers; every axis after the
   * first becomes a fixed-size list. The memory stays allocated until the consumer releases it.
   *
   * @throws {ExchangeError} if Arrow cannot say what this view is: elements out of C order, a type that it does not have
   */
  toArrowDevice(options: ToArrowOptions = {}): ArrowDeviceArray {
    return numbersToArrow(this, options, "device");
  }

  /** The Arrow C device protocol, as other libraries call it. */
  __arrow_c_device_array__(options: ToArrowOptions = {}): ArrowDeviceArray {
    return numbersToArrow(this, options, "device");
  }

  /** The Arrow C data protocol, as other libraries call it. @throws {ExchangeError} for device memory */
  __arrow_c_array__(options: ToArrowOptions = {}): ArrowDeviceArray {
    return numbersToArrow(this, options, "host");
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

  #with(layout: StridedLayout, dtype: DType = this.dtype): StridedMemoryView {
    const { buffer, offset, readonly } = this;
    checkBounds(buffer, offset, layout);
    return new StridedMemoryView(buffer, offset, layout, dtype, readonly, null);
  }
}
