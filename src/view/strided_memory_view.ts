/**
 * A view: memory with a layout and an element type.
 *
 * @module
 */
import type { ArrowDeviceArray, FromArrowOptions, ToArrowOptions } from "../cdata/mod.ts";
import { importNumbers, numbersToArrow } from "../cdata/mod.ts";
import type { Closeable, MakeArray, ViewCopyOptions } from "../copy/mod.ts";
import { byteCount, checkBounds, copyElements, explainCopy, firstAddress, noItemsize } from "../copy/mod.ts";
import { checkPlace, type CudaDevice, type CudaStream } from "../device/mod.ts";
import type {
  ArrayInterface,
  CudaArrayInterface,
  DlpackTensor,
  ImportOptions,
  ToDlpackOptions,
} from "../dlpack/mod.ts";
import {
  dlpackDevice,
  fromArrayInterface,
  fromCudaArrayInterface,
  fromDlpack,
  toArrayInterface,
  toCudaArrayInterface,
  toDlpack,
} from "../dlpack/mod.ts";
import type { Shape, SliceItem, StridedLayout, TypedArray } from "../layout/mod.ts";
import { checkOptions, DType, none } from "../layout/mod.ts";
import type { MemoryBuffer } from "../memory/mod.ts";
import { fromArray, isTypedArray, isUsableAt } from "./from.ts";
import { fromBuffer, type FromBufferOptions } from "./from_buffer.ts";
import { Lease } from "./lease.ts";
import { print } from "./print.ts";
import { layoutOfArray, memoryOfArray, toTypedArray } from "./typed_array.ts";

/** The member by which this room and those above make a view of parts. Programs cannot: nothing is checked. */
export const makeView: unique symbol = Symbol("makeView");

const viewOptionNames = { layout: true, dtype: true } as const;

/**
 * Memory seen as an n-dimensional array. Making a view moves no data, and views of a view share its memory.
 *
 * A view does not own its buffer: the code that allocated the buffer closes it. A view that was imported from another
 * library owns the import: closing it returns the memory.
 *
 * @example
 * ```ts
 * import { slice, StridedMemoryView } from "@causeway/causeway";
 *
 * const view = StridedMemoryView.fromTypedArray(Float32Array.of(1, 2.5, -3, 4), { shape: [2, 2] });
 * console.log(`${view.sliced(0)}`); // [1. 2.5]
 * console.log(`${view.sliced(slice(null, null, -1), 0)}`); // [-3.  1.]
 * ```
 */
export class StridedMemoryView {
  /** Where the elements lie. */
  readonly layout: StridedLayout;
  /** The type of the elements. */
  readonly dtype: DType;
  /** Whether writing through this view is refused. Exports say so to their consumers. */
  readonly readonly: boolean;
  /** The memory. */
  readonly buffer: MemoryBuffer;
  /** Bytes from the start of the buffer to offset 0 of the layout. */
  readonly offset: number;
  /** What `close` closes. */
  readonly #imported: Closeable | null;

  /** Takes parts that fit each other, one by one as {@linkcode MemoryBuffer.fromForeign} does. */
  private constructor(
    buffer: MemoryBuffer,
    offset: number,
    layout: StridedLayout,
    dtype: DType,
    readonly: boolean,
    imported: Closeable | null,
  ) {
    if (layout.itemsize !== dtype.itemsize) throw noItemsize(layout, dtype);
    this.layout = layout;
    this.dtype = dtype;
    this.readonly = readonly;
    this.buffer = buffer;
    this.offset = offset;
    this.#imported = imported;
  }

  // law view/StridedMemoryView.from: order/refusals, dlpack/host_consumers, dlpack/array_interface, order/programs
  /**
   * Views any array without copying it: a typed array, or an object that speaks an exchange protocol. The first that it
   * has is used of `__dlpack__`, `__cuda_array_interface__`, `__array_interface__`, `__arrow_c_device_array__` and
   * `__arrow_c_array__`. A view is returned as it is, except one of device memory that is to be used on another stream
   * than its own: that is imported like another library's array, in order, until it is closed.
   *
   * @throws {TypeError} for anything else
   * @throws {ExchangeError} if the array cannot be imported as it is
   */
  static from(source: unknown, options: ImportOptions = none): StridedMemoryView {
    if (options !== none) checkPlace(options, "Cannot view an array");
    if (isTypedArray(source)) return StridedMemoryView.fromTypedArray(source, none);
    if (!(source instanceof StridedMemoryView)) return fromArray(source, options, make);
    return isUsableAt(source, options) ? source : fromDlpack(source, options, make);
  }

  /**
   * Views a typed array without copying it; the view's buffer keeps the array's memory alive. Transferring its
   * ArrayBuffer (`postMessage`, `structuredClone`, a WebAssembly memory that grows) makes the view unusable: what it
   * has exported must be released before. In a Worker, with which the memory ends, exports are copies.
   *
   * @param array any typed array, BigInt64Array and Float16Array included
   * @param options `shape`: extents whose product is the array's length. Default: one axis
   * @throws {TypeError} if the array lies in shared or resizable memory
   * @throws {RangeError} if the shape does not have as many elements as the array
   */
  static fromTypedArray(array: TypedArray, options: { readonly shape?: Shape } = {}): StridedMemoryView {
    const dtype = DType.fromTypedArray(array);
    const layout = layoutOfArray(array, dtype, options);
    return new StridedMemoryView(memoryOfArray(array), 0, layout, dtype, false, null);
  }

  /**
   * Views a buffer's bytes.
   *
   * @throws {RangeError} if the layout reaches outside the buffer; the message has both sizes
   */
  static fromBuffer(buffer: MemoryBuffer, options: FromBufferOptions): StridedMemoryView {
    return fromBuffer(buffer, options, make);
  }

  /**
   * Imports an array by DLPack: from an object with `__dlpack__()`, an exported tensor, or the address of a struct that
   * is the caller's: `{ managedTensorVersioned: address }`. Closing the view releases the tensor.
   *
   * @throws {ExchangeError} if it cannot be imported; it then stays its producer's
   */
  static fromDlpack(source: unknown, options: ImportOptions = none): StridedMemoryView {
    return fromDlpack(source, options, make);
  }

  /**
   * Views device memory that `__cuda_array_interface__` describes (version 3 and older). The buffer keeps the object
   * alive. The producer's work on its stream comes before what the given stream does next, and what that stream holds
   * at the view's end before the producer's next work. With a device alone, the producer's stream is the view's, too.
   *
   * @param options `stream`: where the memory will be used, or null for no order; `device`: needed without a stream
   * @throws {ExchangeError} for what the protocol forbids, masked and structured arrays
   *
   * @example
   * ```ts
   * import { Cuda, StridedMemoryView } from "@causeway/causeway";
   *
   * using cuda = Cuda.simulate(); // or Cuda.open(), where there is a GPU
   * using stream = cuda.device(0).createStream();
   * using buffer = cuda.device(0).memory.allocate(24, { stream });
   * const view = StridedMemoryView.fromBuffer(buffer, { shape: [2, 3], dtype: "float32" });
   * using seen = StridedMemoryView.fromCudaArrayInterface(view, { stream }); // or an array of another library
   * console.log(seen.ptr === view.ptr); // true
   * ```
   */
  static fromCudaArrayInterface(source: unknown, options: ImportOptions = none): StridedMemoryView {
    return fromCudaArrayInterface(source, options, make);
  }

  /**
   * Views host memory that `__array_interface__` describes, as of NumPy's arrays. The buffer keeps the object alive.
   *
   * @throws {ExchangeError} for masked and structured arrays, and where no address says where the memory is
   */
  static fromArrayInterface(source: unknown): StridedMemoryView {
    return fromArrayInterface(source, make);
  }

  /**
   * Imports an array of numbers by the Arrow C device or C data interface: from an object with
   * `__arrow_c_device_array__()` or `__arrow_c_array__()`, an export of ours, or the addresses of the structs.
   * Fixed-size lists become axes. The view is read-only, as Arrow's data is; closing it releases the array.
   *
   * @throws {ExchangeError} if it has nulls or is not of numbers (see `ArrowArray.from`); it then stays its producer's
   */
  static fromArrowDevice(source: unknown, options: FromArrowOptions = {}): StridedMemoryView {
    return importNumbers(source, options, make);
  }

  /** Makes a view of parts that fit each other. */
  static readonly [makeView]: MakeArray<StridedMemoryView> = (buffer, offset, layout, dtype, readonly, imported) =>
    new StridedMemoryView(buffer, offset, layout, dtype, readonly, imported);

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
   * Views the same memory with another layout or element type.
   *
   * @throws {RangeError} if the layout reaches outside the buffer, or its itemsize is not that of the element type
   */
  view(options: { readonly layout?: StridedLayout; readonly dtype?: DType | string }): StridedMemoryView {
    checkOptions(options, viewOptionNames);
    const { layout = this.layout, dtype = this.dtype } = options;
    return this.#with(layout, DType.from(dtype));
  }

  /** Selects by numbers, slices, `null` (a new axis) and `"..."`, without copying. */
  sliced(...items: SliceItem[]): StridedMemoryView {
    return this.#with(this.layout.sliced(...items));
  }

  /** Gives the elements, in C order, another shape, without copying. @throws {RangeError} where only a copy could */
  reshaped(shape: Shape): StridedMemoryView {
    return this.#with(this.layout.reshaped(shape));
  }

  /** Reorders the axes, without copying. */
  permuted(axes: readonly number[]): StridedMemoryView {
    return this.#with(this.layout.permuted(axes));
  }

  /**
   * Copies the elements of another view or a typed array of the same shape and type into this one, whatever their
   * layouts and wherever they are; if the two overlap, as they were before the copy. With `convert`, elements of
   * another type are converted: on the device, if the copy involves one. Packed elements that share a byte with others
   * leave the others' bits as they are.
   *
   * Between host arrays the copy is done on return; for page-locked memory the call waits for the stream and for both
   * home streams. Otherwise the copy is enqueued on the stream (default: a home stream of the two), after what both
   * home streams hold and before what they get next. Until the stream has passed it, host memory must not change or be
   * read, and stays allocated; the call waits only where the host itself has to rearrange elements for the destination,
   * or native threads move ordinary memory through pinned memory. {@linkcode StridedMemoryView.explainCopyFrom} tells
   * which. On a stream that is captured the copy becomes part of the graph, which retains the memory of both sides.
   *
   * @throws {TypeError} if this view is read-only, the types differ and are not or cannot be converted, or the stream
   *   is captured and the copy needs temporary memory or the host
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
   * Says in words how {@linkcode StridedMemoryView.copyFrom} would copy, and so what a copy's time goes into.
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
   * Copies the elements, in C order, to a typed array of the class `dtype.typedArray`. Device memory and page-locked
   * memory are read on their home stream, without blocking.
   *
   * @throws {TypeError} if no typed array has elements of this type
   */
  toTypedArray(): Promise<TypedArray> {
    return toTypedArray(this);
  }

  /**
   * Lends the array to a stream, in order both ways, until the lease is closed: see {@linkcode Lease}.
   *
   * @throws {TypeError} if the buffer or the stream is closed
   */
  borrow(stream: CudaStream): Lease {
    return new Lease(this, stream);
  }

  /**
   * Exports the array by DLPack, without copying it. The memory stays allocated until the consumer releases it.
   *
   * @throws {ExchangeError} if DLPack cannot express this view, or what the consumer wants
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
   * Describes device memory by the CUDA Array Interface, version 3. The memory stays the view's: a consumer keeps
   * the view's buffer open, and orders its work on the `stream` that the description names.
   *
   * @throws {ExchangeError} for host memory, and for an element type without a type string
   */
  toCudaArrayInterface(): CudaArrayInterface {
    return toCudaArrayInterface(this);
  }

  /** The CUDA Array Interface, as other libraries ask for it; undefined for host memory. */
  get __cuda_array_interface__(): CudaArrayInterface | undefined {
    return this.device === null ? undefined : this.toCudaArrayInterface();
  }

  /** NumPy's array interface, as other libraries ask for it; undefined for device memory. */
  get __array_interface__(): ArrayInterface | undefined {
    return this.device === null ? toArrayInterface(this) : undefined;
  }

  /**
   * Exports the array by the Arrow C device interface, without copying it, as an array of numbers; every axis after the
   * first becomes a fixed-size list. The memory stays allocated until the consumer releases it.
   *
   * @throws {ExchangeError} if Arrow cannot express this view: elements out of C order, a type that it does not have
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
   * The elements as NumPy prints an array: of more than 1000 only the corners. The call waits for the home stream of
   * device memory, of which only what is printed is copied, and of page-locked memory.
   *
   * @throws {TypeError} if the view's buffer is closed
   */
  toString(): string {
    return print(this);
  }

  /** Returns an import to its producer. For any other view it does nothing: the code that made the buffer closes it. */
  close(): void {
    this.#imported?.close();
  }

  /** Returns an import to its producer. */
  [Symbol.dispose](): void {
    this.close();
  }

  #with(layout: StridedLayout, dtype: DType = this.dtype): StridedMemoryView {
    const { buffer, offset, readonly } = this;
    checkBounds(buffer, offset, layout);
    return new StridedMemoryView(buffer, offset, layout, dtype, readonly, null);
  }
}

// Looked up once: a static member is no constant to the engines, and costs an import up to a tenth of its time.
const make = StridedMemoryView[makeView];
