/**
 * Copies of arrays: into a view, out of one, and to new memory.
 *
 * @module
 */
import { copyElements, explainCopy, type ViewCopyOptions } from "../copy/mod.ts";
import type { ImportOptions } from "../dlpack/mod.ts";
import {
  checkOptions,
  type DTypeLike,
  type DTypeName,
  type DTypeNameOf,
  none,
  type TypedArray,
} from "../layout/mod.ts";
import { ExportedArray } from "./exported_array.ts";
import {
  type ArrayCopyOptions,
  type ArrayPlaceOptions,
  checkPlaceOfArray,
  isAt,
  type Place,
  placeOptionNames,
} from "./place.ts";
import { sameMemory } from "./shaped_array.ts";
import type { StridedMemoryView } from "./strided_memory_view.ts";

/** The members by which this class views other arrays, and makes views of new memory: only the view itself can. */
export const viewAny: unique symbol = Symbol("viewAny");
export const copyToNew: unique symbol = Symbol("copyToNew");

/** The copies of a view. */
export abstract class CopyableArray<out D extends DTypeName = DTypeName> extends ExportedArray<D> {
  /** See that of {@linkcode ShapedArray}. */
  protected constructor() {
    super();
  }

  /** @internal */
  abstract [viewAny](source: unknown, options?: ImportOptions): StridedMemoryView;

  /** @internal */
  abstract [copyToNew](options: ArrayCopyOptions): StridedMemoryView;

  // law view/copyFrom: view/array_copies
  /**
   * Copies the elements of another view or a typed array of the same shape and type into this one, whatever their
   * layouts and wherever they are. If the two overlap, the elements arrive as they were before the copy. With
   * `convert`, elements of another type are converted: on the device, if the copy involves one. Packed elements that
   * share a byte with others leave the others' bits unchanged.
   *
   * Between host arrays the copy is done on return; for page-locked memory the call waits for the stream and for both
   * home streams. Otherwise the copy is enqueued on the stream (default: one of the two home streams), after what both
   * home streams hold and before their next work. Until the stream has passed the copy, host memory must not be changed
   * or read, and stays allocated. The call waits only where the host itself has to rearrange elements for the
   * destination, or native threads move ordinary memory through pinned memory.
   * {@linkcode StridedMemoryView.explainCopyFrom} tells which. On a captured stream the copy becomes part of the graph,
   * which retains the memory of both sides.
   *
   * @throws {TypeError} if this view is read-only, the types differ and are not or cannot be converted, or the stream
   *   is being captured and the copy needs temporary memory or the host
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
    if (source instanceof CopyableArray) return copyElements(source, this, options); // often called for a few elements
    if (ArrayBuffer.isView(source)) return copyElements(this[viewAny](source), this, options); // which owns nothing
    this.#copyFromForeign(source, options);
  }

  /** Of an array that is none of ours, as untyped code may pass, and which is returned. */
  #copyFromForeign(source: StridedMemoryView | TypedArray, options: ViewCopyOptions): void {
    using view = this[viewAny](source); // not in `copyFrom`: V8 takes 40 ns for it even where it is not reached
    copyElements(view, this, options);
  }

  /**
   * Describes in words how {@linkcode StridedMemoryView.copyFrom} would copy, and so where a copy's time goes.
   *
   * @throws {TypeError | RangeError} as `copyFrom` does
   */
  explainCopyFrom(source: StridedMemoryView | TypedArray, options: ViewCopyOptions = none): string {
    if (source instanceof CopyableArray) return explainCopy(source, this, options);
    using view = this[viewAny](source);
    return explainCopy(view, this, options);
  }

  /** Copies the elements into another view or a typed array. See {@linkcode StridedMemoryView.copyFrom}. */
  copyTo(destination: StridedMemoryView | TypedArray, options: ViewCopyOptions = none): void {
    if (destination instanceof CopyableArray) return copyElements(this, destination, options);
    if (ArrayBuffer.isView(destination)) return copyElements(this, this[viewAny](destination), options);
    this.#copyToForeign(destination, options);
  }

  #copyToForeign(destination: StridedMemoryView | TypedArray, options: ViewCopyOptions): void {
    using view = this[viewAny](destination);
    copyElements(this, view, options);
  }

  /**
   * Copies the array to new memory, which closing the copy frees: by default in C order, with the same type and in the
   * same place.
   *
   * A copy that involves only device and page-locked memory is enqueued, after what the home streams hold, and its
   * stream becomes the copy's home stream. If ordinary host memory is involved, the call waits until the copy is done;
   * `toTypedArray()` copies to the host without blocking the event loop.
   *
   * @throws {TypeError} if elements of one type cannot be converted to the other, or the stream does not belong to the
   *   device
   * @throws {CudaError} if the device is out of memory, or the stream is being captured
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
  /** With the same dtype. */
  copy(options?: ArrayCopyOptions<never>): StridedMemoryView<D>;
  /** With options known only at run time. */
  copy(options?: ArrayCopyOptions): StridedMemoryView;
  copy(options: ArrayCopyOptions = none): StridedMemoryView {
    return this[copyToNew](options);
  }

  /**
   * The array with its elements contiguous in C order: another view of the same memory if they already are, else a
   * copy.
   */
  contiguous(): StridedMemoryView<D> {
    return this.isContiguous ? this[sameMemory](this.layout, this.dtype) : narrowed(this[copyToNew](none));
  }

  /**
   * The array on a device, or in host memory: a copy, which closing it frees (see {@linkcode StridedMemoryView.copy}),
   * unless the array is there already. Then the result is another view of the same memory that owns nothing, or, for a
   * stream other than the array's own, a view that is ordered both ways until it is closed.
   *
   * @throws {TypeError} if the place is invalid, or as `copy` does
   */
  to(place: Place, options: ArrayPlaceOptions = none): StridedMemoryView<D> {
    checkOptions(options, placeOptionNames);
    checkPlaceOfArray(place);
    if (!isAt(this, place)) return narrowed(this[copyToNew]({ device: place, ...options }));
    const seen: object = this[viewAny](this, options);
    return seen === this ? this[sameMemory](this.layout, this.dtype) : seen as StridedMemoryView<D>;
  }
}

/** Narrows a view to the dtype that the caller requested, which the code that made the view cannot express. */
export function narrowed<N extends DTypeName>(view: StridedMemoryView): StridedMemoryView<N> {
  return view as StridedMemoryView<N>;
}
