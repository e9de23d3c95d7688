/**
 * A view: memory with a layout and an element type.
 *
 * @module
 */
import { describeArray } from "./describe.ts";
import { type FromArrowOptions, importNumbers } from "../cdata/mod.ts";
import type { Closeable, MakeArray, ViewCopyOptions } from "../copy/mod.ts";
import { checkBounds, copyElements, explainCopy, noItemsize } from "../copy/mod.ts";
import { checkPlace, type CudaStream } from "../device/mod.ts";
import type { ImportOptions } from "../dlpack/mod.ts";
import { fromArrayInterface, fromCudaArrayInterface, fromDlpack } from "../dlpack/mod.ts";
import type {
  Complex,
  DTypeLike,
  DTypeName,
  DTypeNameOf,
  DTypeNameOfArray,
  ElementValue,
  Shape,
  StridedLayout,
  TypedArray,
} from "../layout/mod.ts";
import { checkOptions, DType, none, notMade, showAs } from "../layout/mod.ts";
import type { MemoryBuffer } from "../memory/mod.ts";
import { arange, type CreateOptions, fromNested, full, type RangeBound, zeros } from "./create.ts";
import { ExportedArray } from "./exported_array.ts";
import { describe, fromArray, isTypedArray, isUsableAt, wayOut } from "./from.ts";
import { fromBuffer, type FromBufferOptions } from "./from_buffer.ts";
import { Lease } from "./lease.ts";
import type { DTypeNameOfValue, NestedScalars, NestedTypedArrays, NestedValues } from "./nested_values.ts";
import {
  type ArrayCopyOptions,
  type ArrayPlaceOptions,
  checkPlaceOfArray,
  copyOf,
  isAt,
  type Place,
  placeOptionNames,
} from "./place.ts";
import { sameMemory } from "./shaped_array.ts";
import { layoutOfArray, memoryOfArray } from "./typed_array.ts";

/** The member by which this room and those above make a view of parts. Programs cannot: nothing is checked. */
export const makeView: unique symbol = Symbol("makeView");

const waysToMake = "StridedMemoryView.zeros(shape), from(array), fromBuffer() or another of its static calls";

/**
 * Memory seen as an n-dimensional array. Making a view moves no data, and views of a view share its memory.
 *
 * A view does not own its buffer: the code that allocated the buffer closes it. A view that was imported from another
 * library owns the import, and one that was made with memory of its own (`zeros`, `copy` and the like) that memory:
 * closing it returns or frees the memory, and so does the collector when it is dropped.
 *
 * `StridedMemoryView<"float32">` is one of which the compiler knows the dtype, and so what its elements are.
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
export class StridedMemoryView<out D extends DTypeName = DTypeName> extends ExportedArray<D> {
  /** Where the elements lie. */
  override readonly layout: StridedLayout;
  /** The type of the elements. */
  override readonly dtype: DType<D>;
  /** Whether writing through this view is refused. Exports say so to their consumers. */
  override readonly readonly: boolean;
  /** The memory. */
  override readonly buffer: MemoryBuffer;
  /** Bytes from the start of the buffer to offset 0 of the layout. */
  override readonly offset: number;
  /** What `close` closes. */
  readonly #imported: Closeable | null;

  /** Takes parts that fit each other, one by one as {@linkcode MemoryBuffer.fromForeign} does. */
  private constructor(
    buffer: MemoryBuffer,
    offset: number,
    layout: StridedLayout,
    dtype: DType<D>,
    readonly: boolean,
    imported: Closeable | null,
  ) {
    super();
    if (dtype === undefined) throw notMade("StridedMemoryView", waysToMake);
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
  static from<A extends TypedArray>(source: A, options?: ImportOptions): StridedMemoryView<DTypeNameOfArray<A>>;
  /** A view as it is, or ordered on another stream. */
  static from<N extends DTypeName>(source: StridedMemoryView<N>, options?: ImportOptions): StridedMemoryView<N>;
  /** Any other array. */
  static from(source: unknown, options?: ImportOptions): StridedMemoryView;
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
  static fromTypedArray<A extends TypedArray>(
    array: A,
    options: { readonly shape?: Shape } = {},
  ): StridedMemoryView<DTypeNameOfArray<A>> {
    if (!ArrayBuffer.isView(array)) {
      throw new TypeError(`Expected a typed array, got ${describe(array)}${wayOut(array)}`);
    }
    const dtype = DType.fromTypedArray(array);
    const layout = layoutOfArray(array, dtype, options);
    return new StridedMemoryView(memoryOfArray(array), 0, layout, dtype, false, null);
  }

  /**
   * Views a buffer's bytes.
   *
   * @throws {RangeError} if the layout reaches outside the buffer; the message has both sizes
   */
  static fromBuffer<const T extends DTypeLike>(
    buffer: MemoryBuffer,
    options: FromBufferOptions<T>,
  ): StridedMemoryView<DTypeNameOf<T>> {
    return as(fromBuffer(buffer, options, make));
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

  /**
   * An array of zeros.
   *
   * @param options a dtype, or what else is wanted: on a device the zeros are enqueued on the memory's home stream.
   *   Default: float64 on the host
   */
  static zeros<const T extends DTypeLike>(
    shape: Shape,
    options: T | CreateOptions<T> & { readonly dtype: T },
  ): StridedMemoryView<DTypeNameOf<T>>;
  /** Of float64. */
  static zeros(shape: Shape, options?: CreateOptions<never>): StridedMemoryView<"float64">;
  /** With options of which only the running program knows what they are. */
  static zeros(shape: Shape, options?: DTypeLike | CreateOptions): StridedMemoryView;
  static zeros(shape: Shape, options?: DTypeLike | CreateOptions): StridedMemoryView {
    return zeros(shape, options, make);
  }

  /**
   * An array of one value. The dtype is by default float64 for a number, int64 for a bigint, bool for a boolean and
   * complex128 for `{ re, im }`.
   *
   * @throws {TypeError | RangeError} if the value is none of the dtype
   */
  static full<const T extends DTypeLike>(
    shape: Shape,
    value: ElementValue,
    options: T | CreateOptions<T> & { readonly dtype: T },
  ): StridedMemoryView<DTypeNameOf<T>>;
  /** Of the value's own type. */
  static full<const V extends ElementValue>(
    shape: Shape,
    value: V,
    options?: CreateOptions<never>,
  ): StridedMemoryView<DTypeNameOfValue<V>>;
  /** With options of which only the running program knows what they are. */
  static full(shape: Shape, value: ElementValue, options?: DTypeLike | CreateOptions): StridedMemoryView;
  static full(shape: Shape, value: ElementValue, options?: DTypeLike | CreateOptions): StridedMemoryView {
    return full(shape, value, options, make);
  }

  /**
   * Evenly spaced numbers from a start (default 0) until before a stop, one axis: `start + i * step` as float64, or
   * bigints as int64, unless another dtype is given, as the last argument, alone or in options.
   *
   * @throws {RangeError} if the step is 0 or a number is out of the dtype's range
   *
   * @example
   * ```ts
   * import { StridedMemoryView } from "@causeway/causeway";
   *
   * console.log(`${StridedMemoryView.arange(1, 2, 0.25)}`); // [1.   1.25 1.5  1.75]
   * console.log(`${StridedMemoryView.arange(6, "int32").reshaped([2, 3]).T.sliced(1)}`); // [1 4]
   * ```
   */
  static arange<const T extends DTypeLike>(
    ...given: [...bounds: Bounds<number> | Bounds<bigint>, options: T | CreateOptions<T> & { readonly dtype: T }]
  ): StridedMemoryView<DTypeNameOf<T>>;
  /** Of float64. */
  static arange(...given: [...bounds: Bounds<number>, options?: CreateOptions<never>]): StridedMemoryView<"float64">;
  /** Of int64. */
  static arange(...given: [...bounds: Bounds<bigint>, options?: CreateOptions<never>]): StridedMemoryView<"int64">;
  /** With options of which only the running program knows what they are. */
  static arange(
    ...given: [...bounds: Bounds<number> | Bounds<bigint>, options?: DTypeLike | CreateOptions | undefined]
  ): StridedMemoryView;
  static arange(...given: (RangeBound | DTypeLike | CreateOptions | undefined)[]): StridedMemoryView {
    return arange(given, make);
  }

  /**
   * Nested arrays of JavaScript as an array of their shape, copied; the innermost may be typed arrays.
   *
   * @param options a dtype, or what else is wanted. Default: that of the first value, as for
   *   {@linkcode StridedMemoryView.full}, or of a typed array
   * @throws {RangeError} if arrays of one axis differ in length: the message says where. Or a value is out of range
   * @throws {TypeError} if a value is none of the dtype
   */
  static fromArray<const T extends DTypeLike>(
    nested: NestedValues,
    options: T | CreateOptions<T> & { readonly dtype: T },
  ): StridedMemoryView<DTypeNameOf<T>>;
  /** Of numbers, as float64. */
  static fromArray(nested: NestedScalars<number>, options?: CreateOptions<never>): StridedMemoryView<"float64">;
  /** Of bigints, as int64. */
  static fromArray(nested: NestedScalars<bigint>, options?: CreateOptions<never>): StridedMemoryView<"int64">;
  /** Of booleans. */
  static fromArray(nested: NestedScalars<boolean>, options?: CreateOptions<never>): StridedMemoryView<"bool">;
  /** Of complex numbers, as complex128. */
  static fromArray(nested: NestedScalars<Complex>, options?: CreateOptions<never>): StridedMemoryView<"complex128">;
  /** Of typed arrays, as what they are. */
  static fromArray<A extends TypedArray>(
    nested: NestedTypedArrays<A>,
    options?: CreateOptions<never>,
  ): StridedMemoryView<DTypeNameOfArray<A>>;
  /** With values or options of which only the running program knows what they are. */
  static fromArray(nested: NestedValues, options?: DTypeLike | CreateOptions): StridedMemoryView;
  static fromArray(nested: NestedValues, options?: DTypeLike | CreateOptions): StridedMemoryView {
    return fromNested(nested, options, make);
  }

  /** Makes a view of parts that fit each other. */
  static readonly [makeView]: MakeArray<StridedMemoryView> = (buffer, offset, layout, dtype, readonly, imported) =>
    new StridedMemoryView(buffer, offset, layout, dtype, readonly, imported);

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
   * Copies the array to memory of its own, which closing the copy frees: in C order, of the same type and at the same
   * place, unless another is asked for.
   *
   * A copy that is of devices and page-locked memory alone is enqueued, after what the home streams hold, and its
   * stream is the copy's home. Where ordinary memory of the host takes part the call waits until the copy is done; for
   * a copy to the host that need not block the event loop there is `toTypedArray()`.
   *
   * @throws {TypeError} if elements of one type cannot be converted to the other, or the stream is not of the device
   * @throws {CudaError} if there is not enough memory on the device, or the stream is captured
   *
   * @example
   * ```ts
   * import { Cuda, StridedMemoryView } from "@causeway/causeway";
   *
   * using cuda = Cuda.simulate(); // or Cuda.open(), where there is a GPU
   * const table = StridedMemoryView.fromArray([[1, 2], [3, 4]]);
   * using there = table.copy({ device: cuda.device(0), dtype: "float16", order: "F" });
   * console.log(there.strides, there.to("host").toArray()); // [ 1, 2 ] [ [ 1, 2 ], [ 3, 4 ] ]
   * ```
   */
  copy<const T extends DTypeLike>(
    options: ArrayCopyOptions<T> & { readonly dtype: T },
  ): StridedMemoryView<DTypeNameOf<T>>;
  /** Of the same type. */
  copy(options?: ArrayCopyOptions<never>): StridedMemoryView<D>;
  /** With options of which only the running program knows what they are. */
  copy(options?: ArrayCopyOptions): StridedMemoryView;
  copy(options: ArrayCopyOptions = none): StridedMemoryView {
    return copyOf(this, options, make);
  }

  /** The array with its elements contiguous in C order: another view of the same memory if they are, else a copy. */
  contiguous(): StridedMemoryView<D> {
    return this.isContiguous ? this[sameMemory](this.layout, this.dtype) : as(copyOf(this, none, make));
  }

  /**
   * The array on a device, or in memory of the host: a copy, which closing it frees (see
   * {@linkcode StridedMemoryView.copy}), unless it is there already. Then it is another view of the same memory that
   * owns nothing; on another stream than its own one that is ordered on both sides until it is closed.
   *
   * @throws {TypeError} if there is no such place, or as `copy` does
   */
  to(place: Place, options: ArrayPlaceOptions = none): StridedMemoryView<D> {
    checkOptions(options, placeOptionNames);
    checkPlaceOfArray(place);
    if (!isAt(this, place)) return as(copyOf(this, { device: place, ...options }, make));
    const seen = StridedMemoryView.from(this, options);
    return seen === this ? this[sameMemory](this.layout, this.dtype) : seen;
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
   * Returns an import to its producer, and frees memory that was made for the view. For any other view it does nothing:
   * the code that made the buffer closes it.
   */
  close(): void {
    this.#imported?.close();
  }

  /** As {@linkcode StridedMemoryView.close}. */
  [Symbol.dispose](): void {
    this.close();
  }

  /**
   * For the classes below.
   *
   * @internal
   */
  override [sameMemory]<N extends DTypeName>(layout: StridedLayout, dtype: DType<N>): StridedMemoryView<N> {
    const { buffer, offset, readonly } = this;
    if (layout.itemsize !== dtype.itemsize) throw noItemsize(layout, dtype);
    checkBounds(buffer, offset, layout);
    return new StridedMemoryView(buffer, offset, layout, dtype, readonly, null);
  }

  static {
    showAs(StridedMemoryView, describeArray);
  }
}

/** The numbers that {@linkcode StridedMemoryView.arange} takes. */
type Bounds<B> = [stop: B] | [start: B, stop: B] | [start: B, stop: B, step: B];

/** A view whose dtype the caller has asked for, which is more than what has made it knows. */
function as<N extends DTypeName>(view: StridedMemoryView): StridedMemoryView<N> {
  return view as StridedMemoryView<N>;
}

// Looked up once: a static member is no constant to the engines, and costs an import up to a tenth of its time.
const make = StridedMemoryView[makeView];
