/**
 * The part of a view that says where its elements lie, and makes other views of the same memory. No data is moved or
 * read here.
 *
 * @module
 */
import { type ArrayParts, byteCount, firstAddress } from "../copy/mod.ts";
import type { CudaDevice, CudaStream } from "../device/mod.ts";
import {
  checkOptions,
  DType,
  type DTypeLike,
  type DTypeName,
  type DTypeNameOf,
  type Shape,
  show,
  type SliceItem,
  StridedLayout,
} from "../layout/mod.ts";
import type { MemoryBuffer } from "../memory/mod.ts";
import type { StridedMemoryView } from "./strided_memory_view.ts";

/** The member by which another view of the same memory is made, which owns nothing. */
export const sameMemory: unique symbol = Symbol("sameMemory");

/** How {@linkcode StridedMemoryView.view} sees the same memory. */
export interface ViewOptions<T extends DTypeLike = DTypeLike> {
  /** Where the elements lie. Default: as now, repacked along the last axis if the itemsize changes. */
  readonly layout?: StridedLayout;
  /** What they are. Default: as now. */
  readonly dtype?: T;
}

const viewOptionNames = { layout: true, dtype: true } as const;

/** What a view tells of its layout, and the views that share its memory. */
export abstract class ShapedArray<D extends DTypeName = DTypeName> {
  /** Where the elements lie. */
  abstract readonly layout: StridedLayout;
  /** The type of the elements. */
  abstract readonly dtype: DType<D>;
  /** Whether writing through this view is refused. Exports say so to their consumers. */
  abstract readonly readonly: boolean;
  /** The memory. */
  abstract readonly buffer: MemoryBuffer;
  /** Bytes from the start of the buffer to offset 0 of the layout. */
  abstract readonly offset: number;

  /**
   * A view of the same memory; throws a RangeError if the layout reaches outside it.
   *
   * @internal
   */
  abstract [sameMemory]<N extends DTypeName>(layout: StridedLayout, dtype: DType<N>): StridedMemoryView<N>;

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

  /** How many axes there are. */
  get ndim(): number {
    return this.layout.ndim;
  }

  /** How many elements there are. */
  get size(): number {
    return this.layout.volume;
  }

  /** Bytes of one element; below 1 if elements of less than a byte are packed. */
  get itemsize(): number {
    return this.dtype.itemsize;
  }

  /** Bytes that the elements take without gaps. */
  get nbytes(): number {
    return byteCount(this);
  }

  /** Whether the elements follow each other in C order without gaps. */
  get isContiguous(): boolean {
    return this.layout.isContiguousC;
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

  // law view/ShapedArray.view: view/no_array
  /**
   * Views the same memory with another element type or layout. For a type of another itemsize neighbours on the last
   * axis, which must be adjacent in memory, are joined or split: four float32 are two float64, or sixteen uint8.
   *
   * @throws {RangeError} if the layout reaches outside the buffer, its itemsize is not that of the element type, or the
   *   last axis cannot be repacked: the message says why
   * @throws {TypeError} if the layout is none, as one that another Worker has sent
   */
  view<const T extends DTypeLike>(as: T | ViewOptions<T> & { readonly dtype: T }): StridedMemoryView<DTypeNameOf<T>>;
  /** With another layout. */
  view(options: ViewOptions<never>): StridedMemoryView<D>;
  /** With options of which only the running program knows what they are. */
  view(as: DTypeLike | ViewOptions): StridedMemoryView;
  view(as: DTypeLike | ViewOptions): StridedMemoryView {
    const options = typeof as === "string" || as instanceof DType ? { dtype: as } : as;
    checkOptions(options, viewOptionNames);
    const dtype = options.dtype === undefined ? this.dtype : DType.from(options.dtype);
    const { layout = repackedFor(this, dtype) } = options;
    if (!(layout instanceof StridedLayout)) throw noLayout(layout);
    return this[sameMemory](layout, dtype);
  }

  // law view/ShapedArray: view/array_model
  /** Selects by numbers, slices, `null` (a new axis) and `"..."`, without copying. */
  sliced(...items: SliceItem[]): StridedMemoryView<D> {
    return this[sameMemory](this.layout.sliced(...items), this.dtype);
  }

  /** Gives the elements, in C order, another shape, without copying. @throws {RangeError} where only a copy could */
  reshaped(shape: Shape): StridedMemoryView<D> {
    return this[sameMemory](this.layout.reshaped(shape), this.dtype);
  }

  /** Makes one axis of all, in C order, without copying. @throws {RangeError} where only a copy could: `copy()` first */
  flattened(): StridedMemoryView<D> {
    return this.reshaped([this.size]);
  }

  /** Reorders the axes, without copying. */
  permuted(axes: readonly number[]): StridedMemoryView<D> {
    return this[sameMemory](this.layout.permuted(axes), this.dtype);
  }

  /** Reverses the order of the axes, without copying. */
  transposed(): StridedMemoryView<D> {
    return this[sameMemory](this.layout.transposed(), this.dtype);
  }

  /** The view with its axes in reverse order: {@linkcode StridedMemoryView.transposed}. */
  get T(): StridedMemoryView<D> {
    return this.transposed();
  }

  /**
   * Repeats the elements, without copying any, to fill a larger shape by NumPy's rules: new axes come in front, and
   * axes of extent 1 stretch. What is written to one of the repeated elements is written to all.
   *
   * @throws {RangeError} if the shape has fewer axes, or differs where an extent is not 1
   */
  broadcastTo(shape: Shape): StridedMemoryView<D> {
    return this[sameMemory](this.layout.broadcastTo(shape), this.dtype);
  }

  /** Leaves out the axes of extent 1. Without elements the result has the shape (0,). */
  squeezed(): StridedMemoryView<D> {
    return this[sameMemory](this.layout.squeezed(), this.dtype);
  }

  /** Puts in new axes of extent 1, at these places of the result; negative counts from its back. */
  unsqueezed(axes: number | readonly number[]): StridedMemoryView<D> {
    return this[sameMemory](this.layout.unsqueezed(axes), this.dtype);
  }

  /**
   * Iterates over the first axis: views with an axis less, of one element each in the end, whose value `item()` gives.
   * No memory is read, so device memory will do.
   *
   * @throws {TypeError} if there is no axis
   *
   * @example
   * ```ts
   * import { StridedMemoryView } from "@causeway/causeway";
   *
   * const table = StridedMemoryView.fromArray([[1, 2], [3, 4]]);
   * const rows = [...table];
   * console.log(`${rows[1]}`); // [3. 4.]
   * ```
   */
  *[Symbol.iterator](): IterableIterator<StridedMemoryView<D>> {
    const [extent] = this.shape;
    if (extent === undefined) {
      throw new TypeError("Cannot iterate over a view without axes: expected at least one. item() is its element");
    }
    for (let at = 0; at < extent; at++) yield this.sliced(at);
  }
}

/** What comes from a Worker, or from JSON, has the fields of a layout and none of its methods. */
function noLayout(given: unknown): TypeError {
  return new TypeError(
    `Expected layout to be a StridedLayout, got ${show(given)}: one that was cloned or sent to a Worker is a plain ` +
      "object. Make it anew: StridedLayout.from(layout)",
  );
}

/** The layout that elements of another type have in the same memory. */
function repackedFor({ layout, buffer, offset }: ArrayParts, { itemsize }: DType): StridedLayout {
  // The address counts: an element that is not aligned to its size is none to a device, nor to a typed array.
  return itemsize === layout.itemsize ? layout : layout.repacked(itemsize, { dataPtr: buffer.ptr + BigInt(offset) });
}
