/**
 * The part of a view that describes where its elements lie, and makes other views of the same memory. It neither moves
 * nor reads data.
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

/** The member that makes another view of the same memory, which owns nothing. */
export const sameMemory: unique symbol = Symbol("sameMemory");

/** How {@linkcode StridedMemoryView.view} sees the same memory. */
export interface ViewOptions<T extends DTypeLike = DTypeLike> {
  /** Where the elements lie. Default: as now, repacked along the last axis if the itemsize changes. */
  readonly layout?: StridedLayout;
  /** The element type. Default: as now. */
  readonly dtype?: T;
}

const viewOptionNames = { layout: true, dtype: true } as const;

/** A view's layout, and the views that share its memory. */
export abstract class ShapedArray<D extends DTypeName = DTypeName> {
  /** Written out in each of the base classes: a view whose base classes have default ones takes Bun 7 ns more. */
  protected constructor() {}

  /** Where the elements lie. */
  abstract readonly layout: StridedLayout;
  /** The type of the elements. */
  abstract readonly dtype: DType<D>;
  /** Whether writing through this view is refused. Exports say so to their consumers. */
  abstract readonly readonly: boolean;
  /** The memory. */
  abstract readonly buffer: MemoryBuffer;
  /** Byte offset in the buffer of offset 0 of the layout. */
  abstract readonly offset: number;

  /**
   * A view of the same memory; throws a RangeError if the layout reaches outside it.
   *
   * @internal
   */
  abstract [sameMemory]<N extends DTypeName>(
    layout: StridedLayout,
    dtype: DType<N>,
    offset?: number,
  ): StridedMemoryView<N>;

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

  /** Number of axes. */
  get ndim(): number {
    return this.layout.ndim;
  }

  /** Number of elements. */
  get size(): number {
    return this.layout.volume;
  }

  /** Bytes per element; below 1 if elements smaller than a byte are packed. */
  get itemsize(): number {
    return this.dtype.itemsize;
  }

  /** Bytes that the elements take when contiguous. */
  get nbytes(): number {
    return byteCount(this);
  }

  /** Whether the elements are contiguous in C order. */
  get isContiguous(): boolean {
    return this.layout.isContiguousC;
  }

  /** The device whose memory this is, or null for host memory. */
  get device(): CudaDevice | null {
    return this.buffer.device;
  }

  /** The stream that the memory is ordered on: as `buffer.stream`. */
  get stream(): CudaStream | null {
    return this.buffer.stream;
  }

  /** The object that keeps the memory alive. */
  get owner(): unknown {
    return this.buffer.owner;
  }

  // law view/ShapedArray.view: view/no_array
  /**
   * Views the same memory with another element type or layout. For a type of another itemsize, neighbours along the
   * last axis, which must be adjacent in memory, are joined or split: four float32 are two float64, or sixteen uint8.
   *
   * @throws {RangeError} if the layout reaches outside the buffer, its itemsize is not that of the element type, the
   *   last axis cannot be repacked, or numbers of another size would not be aligned (`DType.alignment`): the message
   *   says why
   * @throws {TypeError} if the layout is not a StridedLayout, such as one sent by another Worker
   */
  view<const T extends DTypeLike>(as: T | ViewOptions<T> & { readonly dtype: T }): StridedMemoryView<DTypeNameOf<T>>;
  /** With another layout. */
  view(options: ViewOptions<never>): StridedMemoryView<D>;
  /** With options known only at run time. */
  view(as: DTypeLike | ViewOptions): StridedMemoryView;
  view(as: DTypeLike | ViewOptions): StridedMemoryView {
    const options = typeof as === "string" || as instanceof DType ? { dtype: as } : as;
    checkOptions(options, viewOptionNames);
    const dtype = options.dtype === undefined ? this.dtype : DType.from(options.dtype);
    const { layout } = options;
    if (layout === undefined) {
      const { layout, offset } = repackedFor(this, dtype);
      return this[sameMemory](layout, dtype, offset);
    }
    if (!(layout instanceof StridedLayout)) throw noLayout(layout);
    return this[sameMemory](layout, dtype);
  }

  // law view/ShapedArray: view/array_model
  /** Selects by numbers, slices, `null` (a new axis) and `"..."`, without copying. */
  sliced(...items: SliceItem[]): StridedMemoryView<D> {
    return this[sameMemory](this.layout.sliced(...items), this.dtype);
  }

  /** Gives the elements, in C order, another shape, without copying. @throws {RangeError} where that needs a copy */
  reshaped(shape: Shape): StridedMemoryView<D> {
    return this[sameMemory](this.layout.reshaped(shape), this.dtype);
  }

  /**
   * Flattens all axes to one, in C order, without copying.
   *
   * @throws {RangeError} where that needs a copy: `copy()` first
   */
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
   * axes of extent 1 stretch. A write to one of the repeated elements writes to all.
   *
   * @throws {RangeError} if the shape has fewer axes, or differs where an extent is not 1
   */
  broadcastTo(shape: Shape): StridedMemoryView<D> {
    return this[sameMemory](this.layout.broadcastTo(shape), this.dtype);
  }

  /** Removes the axes of extent 1. Without elements the result has the shape (0,). */
  squeezed(): StridedMemoryView<D> {
    return this[sameMemory](this.layout.squeezed(), this.dtype);
  }

  /** Inserts new axes of extent 1, at these positions of the result; negative ones count from the end. */
  unsqueezed(axes: number | readonly number[]): StridedMemoryView<D> {
    return this[sameMemory](this.layout.unsqueezed(axes), this.dtype);
  }

  /**
   * Iterates over the first axis: views with one axis less, down to views of one element, whose value `item()` returns.
   * No memory is read, so device memory works, too.
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
      throw new TypeError(
        "Cannot iterate over a view without axes: expected at least one. item() reads its element, and a.equals(b) " +
          "compares views, which toEqual() of Jest cannot",
      );
    }
    for (let at = 0; at < extent; at++) yield this.sliced(at);
  }
}

/** A layout from a Worker or from JSON has the fields of a layout, but none of its methods. */
function noLayout(given: unknown): TypeError {
  return new TypeError(
    `Expected layout to be a StridedLayout, got ${show(given)}: a layout that was cloned or sent to a Worker is a ` +
      "plain object. Rebuild it: StridedLayout.from(layout)",
  );
}

// law view/repackedFor: view/array_model
/** The layout of elements of another type in the same memory, and where it begins. */
function repackedFor(
  { layout, buffer, offset }: ArrayParts,
  dtype: DType,
): { layout: StridedLayout; offset: number } {
  const { itemsize, alignment } = dtype;
  if (itemsize === layout.itemsize) return { layout, offset }; // wherever they are: foreign memory may be anywhere
  if (layout.volume === 0) return { layout: emptyOf(layout, itemsize), offset };
  const skipped = layout.sliceOffsetInBytes;
  if (!Number.isInteger(skipped)) return { layout: layout.repacked(itemsize), offset }; // it says what is in the way
  const first = buffer.ptr + BigInt(offset + skipped);
  // Neither a device nor a typed array can use a number that is not aligned to its size.
  if (first % BigInt(alignment) !== 0n) throw notAligned(dtype, first);
  const { shape, strides } = layout;
  const fromFirst = StridedLayout.from({ shape, strides, itemsize: layout.itemsize, sliceOffset: 0 });
  return { layout: fromFirst.repacked(itemsize), offset: offset + skipped };
}

function notAligned({ name, alignment }: DType, address: bigint): RangeError {
  return new RangeError(
    `Cannot view elements at address ${address} as ${name}: it is not aligned to ${alignment} bytes. copy() first: ` +
      "its memory is",
  );
}

/** The layout of no elements: there is no memory whose strides or address could be in the way. */
function emptyOf({ shape, itemsize }: StridedLayout, wanted: number): StridedLayout {
  const bytes = (shape.at(-1) ?? 0) * itemsize;
  const extent = bytes / wanted;
  if (!Number.isInteger(extent)) {
    throw new RangeError(
      `Cannot view elements of ${itemsize} bytes as elements of ${wanted} bytes: the last axis has ${bytes} bytes, ` +
        "which is no multiple of that",
    );
  }
  return StridedLayout.dense([...shape.slice(0, -1), extent], wanted);
}
