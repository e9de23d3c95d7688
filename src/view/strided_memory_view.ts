/**
 * A view: memory with a layout and an element type.
 *
 * @module
 */
import { describeArray } from "./describe.ts";
import { type FromArrowOptions, importNumbers } from "../cdata/mod.ts";
import { type ArrayParts, checkBounds, type Closeable, type MakeArray, noItemsize } from "../copy/mod.ts";
import { checkPlace, type CudaStream } from "../device/mod.ts";
import { fromArrayInterface, fromCudaArrayInterface, fromDlpack, type ImportOptions } from "../dlpack/mod.ts";
import {
  type Complex,
  DType,
  type DTypeLike,
  type DTypeName,
  type DTypeNameOf,
  type DTypeNameOfArray,
  type ElementValue,
  none,
  notMade,
  type Shape,
  showAs,
  type StridedLayout,
  type TypedArray,
} from "../layout/mod.ts";
import type { MemoryBuffer } from "../memory/mod.ts";
import { arange, type CreateOptions, fromNested, full, type RangeBound, zeros } from "./create.ts";
import { CopyableArray, copyToNew, narrowed, viewAny } from "./copyable_array.ts";
import { arraySource, describe, fromArray, isPythons, isTypedArray, isUsableAt, wayOut } from "./from.ts";
import { fromBuffer, type FromBufferOptions } from "./from_buffer.ts";
import { Lease } from "./lease.ts";
import type { DTypeNameOfValue, NestedScalars, NestedTypedArrays, NestedValues } from "./nested_values.ts";
import { type ArrayCopyOptions, copyOf } from "./place.ts";
import { sameMemory } from "./shaped_array.ts";
import { layoutOfArray, memoryOfArray } from "./typed_array.ts";

/** The member through which this room and those above make a view from parts. Not for programs: it checks nothing. */
export const makeView: unique symbol = Symbol("makeView");

const waysToMake = "StridedMemoryView.zeros(shape), from(array), fromBuffer() or another of its static calls";

/**
 * Memory seen as an n-dimensional array. Making a view moves no data, and views of a view share its memory.
 *
 * A view does not own its buffer: the code that allocated the buffer closes it. A view imported from another library
 * owns the import, and a view created with its own memory (`zeros`, `copy` and the like) owns that memory: closing the
 * view returns or frees the memory, and so does the garbage collector when the view is dropped.
 *
 * `StridedMemoryView<"float32">` is a view whose dtype the compiler knows, and so the type of its elements.
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
export class StridedMemoryView<out D extends DTypeName = DTypeName> extends CopyableArray<D> {
  /** Where the elements lie. */
  override readonly layout: StridedLayout;
  /** The type of the elements. */
  override readonly dtype: DType<D>;
  /** Whether writing through this view is refused. Exports say so to their consumers. */
  override readonly readonly: boolean;
  /** The memory. */
  override readonly buffer: MemoryBuffer;
  /** Byte offset in the buffer of offset 0 of the layout. */
  override readonly offset: number;
  /** The import or memory that `close` closes. */
  readonly #imported: Closeable | null;

  /** Takes parts that fit each other, as separate parameters like {@linkcode MemoryBuffer.fromForeign}. */
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
   * Views any array without copying it: a typed array, or an object that speaks an exchange protocol. Of `__dlpack__`,
   * `__cuda_array_interface__`, `__array_interface__`, `__arrow_c_device_array__` and `__arrow_c_array__`, the first
   * that it has is used; what `toDlpack()` and `toArrowDevice()` return is taken. A view is returned as is, except a
   * view of device memory that will be used on a stream other than its own: that is imported like another library's
   * array, in order, until it is closed.
   *
   * @throws {TypeError} for anything else
   * @throws {ExchangeError} if the array cannot be imported as it is
   */
  static from<A extends TypedArray>(source: A, options?: ImportOptions): StridedMemoryView<DTypeNameOfArray<A>>;
  /** The view itself, or a view ordered on another stream. */
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
   * ArrayBuffer (`postMessage`, `structuredClone`, a WebAssembly memory that grows) makes the view unusable: its
   * exports must be released first. In a Worker, whose memory ends with it, exports are copies.
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
   * @throws {RangeError} if the layout reaches outside the buffer; the message gives both sizes
   */
  static fromBuffer<const T extends DTypeLike>(
    buffer: MemoryBuffer,
    options: FromBufferOptions<T>,
  ): StridedMemoryView<DTypeNameOf<T>> {
    return narrowed(fromBuffer(buffer, options, make));
  }

  /**
   * Imports an array by DLPack: from an object with `__dlpack__()`, an exported tensor, or the address of a struct that
   * the caller owns: `{ managedTensorVersioned: address }`. Closing the view releases the tensor. An object of Python's
   * in this process is viewed as by {@linkcode from}.
   *
   * @throws {ExchangeError} if it cannot be imported; its producer then still owns it
   */
  static fromDlpack(source: unknown, options: ImportOptions = none): StridedMemoryView {
    return isPythons(source) ? source[arraySource](options) : fromDlpack(source, options, make);
  }

  /**
   * Views device memory that `__cuda_array_interface__` describes (version 3 and older). The buffer keeps the object
   * alive. Work that the producer has enqueued on its stream comes before the given stream's next work, and what the
   * given stream holds when the view is closed comes before the producer's next work. With only a device, the view uses
   * the producer's stream.
   *
   * @param options `stream`: where the memory will be used, or null for no ordering; `device`: required without a
   *   stream
   * @throws {ExchangeError} for anything that the protocol forbids, and for masked and structured arrays
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
    return isPythons(source) ? source[arraySource](options) : fromCudaArrayInterface(source, options, make);
  }

  /**
   * Views host memory that `__array_interface__` describes, such as that of NumPy arrays. The buffer keeps the object
   * alive. An object of Python's in this process is viewed as by {@linkcode from}.
   *
   * @throws {ExchangeError} for masked and structured arrays, and for a description without an address
   */
  static fromArrayInterface(source: unknown): StridedMemoryView {
    return isPythons(source) ? source[arraySource](none) : fromArrayInterface(source, make);
  }

  /**
   * Imports an array of numbers by the Arrow C device or C data interface: from an object with
   * `__arrow_c_device_array__()` or `__arrow_c_array__()`, one of our exports, or the addresses of the structs.
   * Fixed-size lists become axes. The view is read-only, as Arrow data is; closing it releases the array.
   *
   * @throws {ExchangeError} if it has nulls or is not numeric (see `ArrowArray.from`); its producer then still owns it
   */
  static fromArrowDevice(source: unknown, options: FromArrowOptions = {}): StridedMemoryView {
    return importNumbers(source, options, make);
  }

  /**
   * An array of zeros.
   *
   * @param options a dtype, or all options: on a device the fill is enqueued on the memory's home stream. Default:
   *   float64 on the host
   */
  static zeros<const T extends DTypeLike>(
    shape: Shape,
    options: T | CreateOptions<T> & { readonly dtype: T },
  ): StridedMemoryView<DTypeNameOf<T>>;
  /** Of float64. */
  static zeros(shape: Shape, options?: CreateOptions<never>): StridedMemoryView<"float64">;
  /** With options known only at run time. */
  static zeros(shape: Shape, options?: DTypeLike | CreateOptions): StridedMemoryView;
  static zeros(shape: Shape, options?: DTypeLike | CreateOptions): StridedMemoryView {
    return zeros(shape, options, make);
  }

  /**
   * An array of one value. The dtype is by default float64 for a number, int64 for a bigint, bool for a boolean and
   * complex128 for `{ re, im }`.
   *
   * @throws {TypeError | RangeError} if the value does not fit the dtype
   */
  static full<const T extends DTypeLike>(
    shape: Shape,
    value: ElementValue,
    options: T | CreateOptions<T> & { readonly dtype: T },
  ): StridedMemoryView<DTypeNameOf<T>>;
  /** With the dtype of the value. */
  static full<const V extends ElementValue>(
    shape: Shape,
    value: V,
    options?: CreateOptions<never>,
  ): StridedMemoryView<DTypeNameOfValue<V>>;
  /** With options known only at run time. */
  static full(shape: Shape, value: ElementValue, options?: DTypeLike | CreateOptions): StridedMemoryView;
  static full(shape: Shape, value: ElementValue, options?: DTypeLike | CreateOptions): StridedMemoryView {
    return full(shape, value, options, make);
  }

  /**
   * Evenly spaced numbers from a start (default 0) up to but excluding a stop, along one axis: `start + i * step` as
   * float64, or bigints as int64, unless the last argument is another dtype or options with one. NumPy multiplies by
   * `(start + step) - start`, so that with steps such as 0.1 the last bits may differ.
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
  /** With options known only at run time. */
  static arange(
    ...given: [...bounds: Bounds<number> | Bounds<bigint>, options?: DTypeLike | CreateOptions | undefined]
  ): StridedMemoryView;
  static arange(...given: (RangeBound | DTypeLike | CreateOptions | undefined)[]): StridedMemoryView {
    return arange(given, make);
  }

  /**
   * Copies nested JavaScript arrays to an array of their shape; the innermost may be typed arrays.
   *
   * @param options a dtype, or all options. Default dtype: that of the first value, as for
   *   {@linkcode StridedMemoryView.full}, or of a typed array; float64 if there is no value, whatever type the compiler
   *   knows: name the dtype where there may be none
   * @throws {RangeError} if arrays of one axis differ in length (the message says where), or a value is out of range
   * @throws {TypeError} if a value has the wrong type for the dtype
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
  /** Of typed arrays, with their dtype. */
  static fromArray<A extends TypedArray>(
    nested: NestedTypedArrays<A>,
    options?: CreateOptions<never>,
  ): StridedMemoryView<DTypeNameOfArray<A>>;
  /** With values or options known only at run time. */
  static fromArray(nested: NestedValues, options?: DTypeLike | CreateOptions): StridedMemoryView;
  static fromArray(nested: NestedValues, options?: DTypeLike | CreateOptions): StridedMemoryView {
    return fromNested(nested, options, make);
  }

  /** Makes a view from parts that fit each other. */
  static readonly [makeView]: MakeArray<StridedMemoryView> = (buffer, offset, layout, dtype, readonly, imported) =>
    new StridedMemoryView(buffer, offset, layout, dtype, readonly, imported);

  /**
   * Lends the array to a stream, ordered both ways, until the lease is closed: see {@linkcode Lease}.
   *
   * @throws {TypeError} if the buffer or the stream is closed
   */
  borrow(stream: CudaStream): Lease<D> {
    return new Lease<D>(this, stream);
  }

  /**
   * Returns an import to its producer, and frees memory that was allocated for the view. For any other view this is a
   * no-op: the code that made the buffer closes it.
   */
  close(): void {
    this.#imported?.close();
  }

  /** As {@linkcode StridedMemoryView.close}. */
  [Symbol.dispose](): void {
    this.close();
  }

  // For the base classes:

  /** @internal */
  override [viewAny](source: unknown, options?: ImportOptions): StridedMemoryView {
    return StridedMemoryView.from(source, options);
  }

  /** @internal */
  override [copyToNew](options: ArrayCopyOptions): StridedMemoryView {
    return copyOf(this, options, make);
  }

  /** @internal */
  override [sameMemory]<N extends DTypeName>(
    layout: StridedLayout,
    dtype: DType<N>,
    offset: number = this.offset,
  ): StridedMemoryView<N> {
    const { buffer, readonly } = this;
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

// Looked up once: engines do not treat a static member as a constant, and the lookup costs up to a tenth of an import's
// time.
const make = StridedMemoryView[makeView];

/** Makes a view from parts that fit each other. */
export function viewOf({ buffer, offset, layout, dtype, readonly }: ArrayParts): StridedMemoryView {
  return make(buffer, offset, layout, dtype, readonly, null);
}
