import {
  allowedMerges,
  commonStride,
  flattenInto,
  flattenOptionNames,
  type FlattenOptions,
  mergeableAxes,
} from "./flatten.ts";
import { showAs } from "./inspect.ts";
import { checkBoolean, checkOptions } from "./options.ts";
import {
  checkDataPtr,
  checkItemsize,
  checkSizes,
  compatibleItemsizeOptionNames,
  type CompatibleItemsizeOptions,
  largestPack,
  packInto,
  repackOptionNames,
  type RepackOptions,
  unpackInto,
} from "./repack.ts";
import { completeShape, notEvenlySpaced, stridesForShape } from "./reshape.ts";
import {
  arrayOf,
  at,
  checkArray,
  checkNdim,
  checkVolume,
  copyShape,
  ndimOf,
  normalizeAxis,
  type Shape,
  volumeOf,
} from "./shape.ts";
import { falseFor, formatShape, notInteger, show, showGiven } from "./show.ts";
import { axisSet, broadcastInto, permuteInto, squeezedNdim, squeezeInto, unsqueezeInto } from "./axes.ts";
import { beginsInsideByte, position, slicedNdim, sliceInto, type SliceItem } from "./slicing.ts";
import { boundsOf, bytesFrom, checkDenseSpan, checkSpan, readLayout, type StridedLayoutOptions } from "./span.ts";
import {
  type DenseOrder,
  denseStrides,
  isColumnMajor,
  isDenseInOrder,
  isRowMajor,
  rowMajorStrides,
  sortedAxes,
  stridesInOrder,
} from "./stride_order.ts";
import { hasNoCollision, isNested, isNestedRowMajor } from "./uniqueness.ts";

/** Tells the constructor that its arguments are derived from a valid layout, and that it owns them. */
const DERIVED: unique symbol = Symbol("derived");

/** Facts about a layout, computed on demand. Most layouts are intermediate, and their facts are never read. */
class Facts {
  isUnique: boolean | null = null;
  isContiguousC: boolean | null = null;
  isContiguousF: boolean | null = null;
  isContiguousAny: boolean | null = null;
  offsetBounds: readonly [min: number, max: number] | null = null;
  strideOrder: readonly number[] | null = null;
  stridesInBytes: readonly number[] | null = null;
}

/**
 * Where the elements of an array lie: shape, strides, itemsize and offset of the first element. It knows nothing of
 * memory or of the meaning of elements, and moves nothing.
 *
 * Element `[i, j, ...]` lies `sliceOffset + i * strides[0] + j * strides[1] + ...` elements from offset 0, where a data
 * pointer points. Strides may be negative or 0. Every layout is valid: extents are non-negative integers, at most 64 of
 * them, with at most 2^53 - 1 elements and at most 2^52 bytes from end to end; so no operation on it overflows.
 *
 * Layouts are immutable and own their arrays: do not write to `shape` or `strides` (they are not frozen, because
 * freezing costs more than making a layout).
 *
 * @example
 * ```ts
 * import { slice, StridedLayout } from "@causeway/causeway/layout";
 *
 * const image = StridedLayout.dense([480, 640, 3], 1); // rows, columns, channels of one byte
 * const red = image.sliced("...", 0).sliced(slice(), slice(null, null, -1)); // mirrored red channel
 * red.shape; // [480, 640]
 * red.strides; // [1920, -3]
 * red.sliceOffset; // 1917
 * red.isContiguousC; // false
 * red.toDense().strides; // [640, 1]
 * ```
 */
export class StridedLayout {
  // Only declared here, and created by the constructor: defining fields first and then writing them costs a sixth of
  // its time.

  /** Extents, outermost first. */
  readonly shape!: Shape;
  /** Distance from one element to the next along each axis, in elements. */
  readonly strides!: readonly number[];
  /** Size of an element in bytes. Below 1, in eighths, for a packed sub-byte element: 0.5 for four bits. */
  readonly itemsize!: number;
  /** Elements from offset 0 to the first element. */
  readonly sliceOffset!: number;
  /** Number of elements: the product of the extents, 1 for a scalar. */
  readonly volume!: number;
  #facts: Facts | null = null;

  /**
   * A layout with the given extents and strides, whose first element lies at offset 0.
   *
   * @param shape extents, copied
   * @param strides elements from one index to the next along each axis, copied; null for contiguous C order
   * @param itemsize bytes per element; a multiple of 1/8 below 1 for packed sub-byte elements
   * @throws {TypeError} if shape or strides are not arrays of numbers
   * @throws {RangeError} if an extent is negative, a number is not a safe integer, the lengths differ, there are more
   *   than 64 axes, the itemsize is not positive, strides in bytes are not multiples of it, or the layout spans more
   *   than 2^52 bytes
   *
   * @example
   * ```ts
   * import { StridedLayout } from "@causeway/causeway/layout";
   *
   * new StridedLayout([2, 3], null, 4).strides; // [3, 1]
   * new StridedLayout([2, 3], [1, 2], 4).isContiguousF; // true
   * new StridedLayout([2, 3], [24, 8], 8, { divideStrides: true }).strides; // [3, 1]
   * ```
   */
  constructor(shape: Shape, strides: readonly number[] | null, itemsize: number, options?: StridedLayoutOptions);
  /** @ignore */
  constructor(
    shape: Shape,
    strides: readonly number[],
    itemsize: number,
    derived: typeof DERIVED,
    sliceOffset: number,
    volume: number,
  );
  constructor(
    shape: Shape,
    strides: readonly number[] | null,
    itemsize: number,
    options?: StridedLayoutOptions | typeof DERIVED,
    sliceOffset?: number,
    volume?: number,
  ) {
    if (options !== DERIVED) {
      // A single call, so that the engines inline the other, common branch into the callers.
      readLayout(this, shape, strides, itemsize, options);
      return;
    }
    // The overload for derived layouts guarantees that these are passed; defaults for them would cost time.
    this.shape = shape;
    this.strides = strides as readonly number[];
    this.itemsize = itemsize;
    this.sliceOffset = sliceOffset as number;
    this.volume = volume as number;
  }

  /**
   * A contiguous layout.
   *
   * @param shape extents, copied
   * @param itemsize bytes per element
   * @param order "C" (default): last axis fastest; "F": first axis fastest; or the axes from slowest to fastest
   * @throws {TypeError | RangeError} as the constructor does, and if the order is not a permutation of the axes
   *
   * @example
   * ```ts
   * import { StridedLayout } from "@causeway/causeway/layout";
   *
   * StridedLayout.dense([2, 3, 4], 8).strides; // [12, 4, 1]
   * StridedLayout.dense([2, 3, 4], 8, "F").strides; // [1, 2, 6]
   * StridedLayout.dense([2, 3, 4], 8, [1, 0, 2]).strides; // [4, 8, 1]
   * ```
   */
  static dense(shape: Shape, itemsize: number, order: DenseOrder = "C"): StridedLayout {
    checkItemsize(itemsize);
    const extents = copyShape(shape);
    const volume = volumeOf(extents);
    checkDenseSpan(extents, volume, itemsize);
    const strides = stridesInOrder(extents, order, volume);
    return new StridedLayout(extents, strides, itemsize, DERIVED, 0, volume);
  }

  /**
   * A contiguous layout, with the shape and itemsize of another.
   *
   * @param other the layout to resemble
   * @param order as in {@linkcode StridedLayout.toDense}
   * @returns `other` itself if it is dense in that order already
   * @throws {TypeError} if it is not a layout
   * @throws {TypeError | RangeError} as {@linkcode StridedLayout.toDense} does
   */
  static denseLike(other: StridedLayout, order: DenseOrder | "K" = "K"): StridedLayout {
    if (!(other instanceof StridedLayout)) throw noLayout(other);
    return other.toDense(order);
  }

  // law layout/StridedLayout.from: layout/cloned
  /**
   * The layout that an object describes: the remains of a layout that went through `postMessage`, `structuredClone` or
   * JSON, which keep its fields but not its class.
   *
   * @param fields copied; other properties of the object are ignored
   * @returns `fields` itself if it is a layout
   * @throws {TypeError | RangeError} as the constructor does, and for an invalid slice offset
   *
   * @example
   * ```ts
   * import { StridedLayout } from "@causeway/causeway/layout";
   *
   * const part = StridedLayout.dense([4, 5], 8).sliced(1);
   * part.equals(StridedLayout.from(JSON.parse(JSON.stringify(part)))); // true
   * ```
   */
  static from(fields: Pick<StridedLayout, "shape" | "strides" | "itemsize" | "sliceOffset">): StridedLayout {
    if (fields instanceof StridedLayout) return fields;
    if (typeof fields !== "object" || fields === null) {
      throw new TypeError(
        `Expected the fields of a layout (shape, strides, itemsize, sliceOffset), got ${show(fields)}`,
      );
    }
    const { sliceOffset } = fields;
    const { shape, strides, itemsize, volume } = new StridedLayout(fields.shape, fields.strides, fields.itemsize);
    if (!Number.isSafeInteger(sliceOffset)) throw notInteger("sliceOffset", "an integer", sliceOffset);
    checkSpan(shape, strides, itemsize, sliceOffset);
    if (!Number.isInteger(sliceOffset * itemsize)) throw beginsInsideByte(itemsize, sliceOffset);
    return new StridedLayout(shape, strides, itemsize, DERIVED, sliceOffset + 0, volume); // not -0
  }

  /** Number of axes. */
  get ndim(): number {
    return this.shape.length;
  }

  /** The strides in bytes. Fractional where packed sub-byte elements share a byte. */
  get stridesInBytes(): readonly number[] {
    return this.found().stridesInBytes ??= this.strides.map((stride) => stride * this.itemsize);
  }

  /** Bytes from offset 0 to the first element; always an integer, even for packed sub-byte elements. */
  get sliceOffsetInBytes(): number {
    return this.sliceOffset * this.itemsize;
  }

  /**
   * The axes from the largest stride to the smallest, ignoring signs; equal strides by falling extent, then by axis.
   */
  get strideOrder(): readonly number[] {
    return this.found().strideOrder ??= sortedAxes(this.shape, this.strides);
  }

  /** The smallest and the largest element offset, in elements from offset 0; [0, -1] if there are no elements. */
  get offsetBounds(): readonly [min: number, max: number] {
    return this.#facts?.offsetBounds ?? this.findBounds();
  }

  /** The smallest element offset, in elements from offset 0; 0 if there are no elements. */
  get minOffset(): number {
    return this.offsetBounds[0];
  }

  /** The largest element offset, in elements from offset 0; -1 if there are no elements. */
  get maxOffset(): number {
    return this.offsetBounds[1];
  }

  /**
   * Whether no two indices map to the same element. True without elements.
   *
   * Exact, except for layouts of three or more interleaved axes that would take long to decide: those count as not
   * unique. It is never true if two indices do collide.
   */
  get isUnique(): boolean {
    return this.found().isUnique ??= this.volume <= 1 || isNestedRowMajor(this.shape, this.strides) ||
      isNested(this.shape, this.strides, this.strideOrder) ||
      hasNoCollision(this.shape, this.strides, this.strideOrder, this.volume, this.maxOffset - this.minOffset + 1);
  }

  /** Whether the elements are contiguous, last axis fastest, wherever the first one lies. */
  get isContiguousC(): boolean {
    return this.found().isContiguousC ??= this.volume === 0 || isRowMajor(this.shape, this.strides);
  }

  /** Whether the elements are contiguous, first axis fastest, wherever the first one lies. */
  get isContiguousF(): boolean {
    return this.found().isContiguousF ??= this.volume === 0 || isColumnMajor(this.shape, this.strides);
  }

  /** Whether the elements are contiguous, with the axes nested in some order. */
  get isContiguousAny(): boolean {
    return this.found().isContiguousAny ??= this.isContiguousC || this.isContiguousF ||
      isDenseInOrder(this.shape, this.strides, this.strideOrder);
  }

  /** Whether the elements are contiguous from offset 0 on, in some order of the axes. */
  get isDense(): boolean {
    return this.sliceOffset === 0 && this.isContiguousAny;
  }

  /**
   * The smallest size of a buffer that contains every element of this layout, if it begins at offset 0.
   *
   * @returns bytes from offset 0 (not from the first element) to the end of the last element; 0 without elements
   * @throws {RangeError} if elements lie before offset 0: no buffer that begins there contains them
   */
  requiredSizeInBytes(): number {
    if (this.minOffset < 0) {
      throw new RangeError(
        `Expected a layout without elements before offset 0, but ${this} begins at offset ${this.minOffset}`,
      );
    }
    return bytesFrom(this);
  }

  /**
   * The offset of one element.
   *
   * @param indices one per axis; negative counts from the back
   * @returns elements from offset 0
   * @throws {TypeError | RangeError} if there is not one integer per axis, or one is out of range
   *
   * @example
   * ```ts
   * import { StridedLayout } from "@causeway/causeway/layout";
   *
   * StridedLayout.dense([3, 4], 8).offsetOf(2, -1); // 11
   * ```
   */
  offsetOf(...indices: readonly number[]): number {
    if (indices.length !== this.ndim) {
      throw new RangeError(`Expected ${this.ndim} indices for shape ${formatShape(this.shape)}, got ${indices.length}`);
    }
    let offset = this.sliceOffset;
    for (let axis = 0; axis < indices.length; axis++) {
      offset += position(at(indices, axis), axis, at(this.shape, axis)) * at(this.strides, axis);
    }
    return offset;
  }

  /**
   * The contiguous layout that a copy of the elements would have.
   *
   * @param order "K" (default): the current nesting of the axes; "C", "F" or a permutation as in
   *   {@linkcode StridedLayout.dense}
   * @returns this layout itself if it is dense in that order already; otherwise one that begins at offset 0, with all
   *   strides positive
   * @throws {TypeError | RangeError} if the order is not a permutation of the axes, or the copy would exceed 2^52 bytes
   */
  toDense(order: DenseOrder | "K" = "K"): StridedLayout {
    const { shape, volume, itemsize } = this;
    const isDenseSo = order === "K"
      ? this.isContiguousAny
      : order === "C"
      ? this.isContiguousC
      : order === "F" && this.isContiguousF;
    if (isDenseSo && this.sliceOffset === 0) return this;
    checkDenseSpan(shape, volume, itemsize);
    const strides = order === "K"
      ? denseStrides(shape, this.strideOrder, volume)
      : stridesInOrder(shape, order, volume);
    // Layouts are immutable, so two may share an array.
    const dense = new StridedLayout(shape, strides, itemsize, DERIVED, 0, volume);
    return this.equals(dense) ? this : dense;
  }

  /**
   * The same elements, in the same order, in another shape, without moving any.
   *
   * @param shape the new extents; one may be -1, which stands for whatever the others leave
   * @throws {TypeError} if the shape is not an array of numbers
   * @throws {RangeError} if it has another number of elements, or the elements are not evenly enough spaced
   *
   * @example
   * ```ts
   * import { StridedLayout } from "@causeway/causeway/layout";
   *
   * StridedLayout.dense([4, 6], 4).reshaped([2, 2, -1]).shape; // [2, 2, 6]
   * StridedLayout.dense([4, 6], 4).transposed().reshaped([6, 2, 2]).strides; // [1, 12, 6]
   * ```
   */
  reshaped(shape: Shape): StridedLayout {
    const { volume } = this;
    const extents = completeShape(shape, this.shape, volume);
    const strides = volume === 0 || isRowMajor(this.shape, this.strides)
      ? rowMajorStrides(extents, volume)
      : stridesForShape(this.shape, this.strides, extents);
    if (strides === null) throw notEvenlySpaced(this.shape, this.strides, extents);
    return this.withSameElements(extents, strides);
  }

  /**
   * The same elements with the axes in another order.
   *
   * @param axes for each axis of the result, the current axis; negative counts from the back
   * @throws {TypeError | RangeError} if it is not a permutation of the axes
   *
   * @example
   * ```ts
   * import { StridedLayout } from "@causeway/causeway/layout";
   *
   * StridedLayout.dense([2, 3, 4], 4).permuted([2, 0, 1]).shape; // [4, 2, 3]
   * ```
   */
  permuted(axes: readonly number[]): StridedLayout {
    const shape = arrayOf(this.shape.length, 0);
    const strides = arrayOf(this.shape.length, 0);
    permuteInto(this.shape, this.strides, axes, shape, strides);
    return this.withSameElements(shape, strides);
  }

  /** The same elements with the axes in reverse order. */
  transposed(): StridedLayout {
    const last = this.shape.length - 1;
    const shape = arrayOf(last + 1, 0);
    const strides = arrayOf(last + 1, 0);
    for (let axis = 0; axis <= last; axis++) {
      shape[axis] = at(this.shape, last - axis);
      strides[axis] = at(this.strides, last - axis);
    }
    return this.withSameElements(shape, strides);
  }

  /**
   * The same elements with as many neighbouring axes joined as possible without moving any. Axes of extent 1 join
   * freely.
   *
   * @param options which axes may be joined; default: all of them
   * @returns a scalar becomes an array of one element
   * @throws {RangeError} if an axis is out of range, or the mask requests a join that is impossible
   *
   * @example
   * ```ts
   * import { slice, StridedLayout } from "@causeway/causeway/layout";
   *
   * const layout = StridedLayout.dense([2, 3, 4], 4);
   * layout.flattened().shape; // [24]
   * layout.flattened({ start: 1 }).shape; // [2, 12]
   * layout.sliced(slice(), slice(0, 2)).flattened().shape; // [2, 8]
   *
   * // Two layouts of one shape, flattened alike for a kernel that walks both:
   * const other = StridedLayout.dense([2, 3, 4], 4, [1, 2, 0]);
   * const mask = layout.flattenedAxisMask() & other.flattenedAxisMask();
   * layout.flattened({ mask }).shape; // [2, 12]
   * other.flattened({ mask }).strides; // [1, 2]
   * ```
   */
  flattened(options?: FlattenOptions): StridedLayout {
    const { ndim } = this;
    if (options !== undefined) checkOptions(options, flattenOptionNames);
    const mask = allowedMerges(options?.mask, ndim);
    // A scalar becomes one axis, which is the axis that may be named.
    const start = options?.start === undefined ? 0 : normalizeAxis(options.start, Math.max(ndim, 1));
    const end = options?.end === undefined ? ndim - 1 : normalizeAxis(options.end, Math.max(ndim, 1));
    if (ndim === 0) return this.withSameElements([1], [1]);
    const left = flattenInto(this, start, end, mask, null, null);
    if (left === ndim) return this;
    if (left === 1) return this.withSameElements([this.volume], [commonStride(this)]);
    const shape = arrayOf(left, 0);
    const strides = arrayOf(left, 0);
    flattenInto(this, start, end, mask, shape, strides);
    return this.withSameElements(shape, strides);
  }

  /**
   * Which axes can be joined with the one before them. Masks of several layouts of one shape can be combined with `&`;
   * the result flattens all of them alike.
   *
   * @returns bit i stands for joining axis i with axis i-1; bit 0 is never set
   */
  flattenedAxisMask(): bigint {
    return mergeableAxes(this);
  }

  /** The same elements without the axes of extent 1. Without elements the result has the shape (0,). */
  squeezed(): StridedLayout {
    if (this.volume === 0) return this.withSameElements([0], [0]);
    const kept = squeezedNdim(this.shape);
    if (kept === this.shape.length) return this;
    const shape = arrayOf(kept, 0);
    const strides = arrayOf(kept, 0);
    squeezeInto(this.shape, this.strides, shape, strides);
    return this.withSameElements(shape, strides);
  }

  /**
   * The same elements with new axes of extent 1.
   *
   * @param axes positions of the new axes in the result; negative counts from its back
   * @throws {TypeError | RangeError} if an axis is out of range or given twice, or there would be more than 64
   *
   * @example
   * ```ts
   * import { StridedLayout } from "@causeway/causeway/layout";
   *
   * StridedLayout.dense([2, 3], 4).unsqueezed(0).shape; // [1, 2, 3]
   * StridedLayout.dense([2, 3], 4).unsqueezed([1, -1]).shape; // [2, 1, 3, 1]
   * ```
   */
  unsqueezed(axes: number | readonly number[]): StridedLayout {
    let ndim = this.shape.length + 1;
    let low = 0;
    let high = 0;
    if (typeof axes === "number") {
      checkNdim(ndim);
      const axis = normalizeAxis(axes, ndim);
      if (axis < 32) low = 1 << axis;
      else high = 1 << axis;
    } else {
      checkArray("axes", axes);
      if (axes.length === 0) return this;
      ndim = this.shape.length + axes.length;
      checkNdim(ndim);
      ({ low, high } = axisSet(axes, ndim));
    }
    const shape = arrayOf(ndim, 0);
    const strides = arrayOf(ndim, 0);
    unsqueezeInto(this.shape, this.strides, low, high, shape, strides);
    return this.withSameElements(shape, strides);
  }

  /**
   * The elements repeated, without copying any, to fill a larger shape by NumPy's rules: new axes are added in front,
   * and axes of extent 1 stretch, with stride 0.
   *
   * @param shape extents of the result
   * @throws {TypeError | RangeError} if the shape is invalid, has fewer axes, or differs where an extent is not 1
   *
   * @example
   * ```ts
   * import { StridedLayout } from "@causeway/causeway/layout";
   *
   * StridedLayout.dense([3, 1], 4).broadcastTo([2, 3, 4]).strides; // [0, 1, 0]
   * ```
   */
  broadcastTo(shape: Shape): StridedLayout {
    const extents = arrayOf(ndimOf(shape), 0);
    const strides = arrayOf(extents.length, 0);
    const volume = broadcastInto(this.shape, this.strides, shape, extents, strides);
    return new StridedLayout(extents, strides, this.itemsize, DERIVED, this.sliceOffset, volume);
  }

  /**
   * A part of the elements, chosen axis by axis: a number picks one index and drops the axis, {@linkcode slice} a
   * range, `null` adds an axis of extent 1, `"..."` stands for all the axes that no other item addresses.
   *
   * @param items the selection along each axis; axes without an item are kept whole
   * @throws {TypeError} if an item is of another kind
   * @throws {RangeError} if an index is out of range, there are more items than axes, or a packed sub-byte layout would
   * begin inside a byte
   *
   * @example
   * ```ts
   * import { slice, StridedLayout } from "@causeway/causeway/layout";
   *
   * const layout = StridedLayout.dense([4, 5, 6], 4);
   * layout.sliced(0).shape; // [5, 6]
   * layout.sliced(slice(1, 3), "...", -1).shape; // [2, 5]
   * layout.sliced(slice(null, null, -1)).strides; // [-30, 6, 1]
   * layout.sliced(null).shape; // [1, 4, 5, 6]
   * ```
   */
  sliced(...items: readonly SliceItem[]): StridedLayout {
    const ndim = slicedNdim(this.shape, items);
    checkNdim(ndim);
    const shape = arrayOf(ndim, 0);
    const strides = arrayOf(ndim, 0);
    let offset = this.sliceOffset + sliceInto(this.shape, this.strides, items, shape, strides, this.itemsize);
    const volume = volumeOf(shape);
    if (this.itemsize < 1 && !Number.isInteger(offset * this.itemsize)) {
      if (volume !== 0) throw beginsInsideByte(this.itemsize, offset);
      offset = this.sliceOffset;
    }
    return new StridedLayout(shape, strides, this.itemsize, DERIVED, offset, volume);
  }

  // law layout/StridedLayout.repacked: layout/strided_layout_oracle
  /**
   * The same bytes as elements of another size: neighbours along one axis are joined, or each element is split. A copy
   * moves larger elements faster, and this turns packed sub-byte elements into bytes.
   *
   * @param itemsize bytes per new element: a multiple or a divisor of the current itemsize
   * @returns this layout itself if the size stays the same
   * @throws {TypeError | RangeError} if the number of bytes would change, the elements along the axis are not adjacent,
   *   or the extent, an offset, another stride or the data pointer does not divide
   *
   * @example
   * ```ts
   * import { StridedLayout } from "@causeway/causeway/layout";
   *
   * const layout = StridedLayout.dense([5, 12], 2);
   * layout.repacked(8).shape; // [5, 3]
   * layout.repacked(8).repacked(2).equals(layout); // true
   * // Bytes of two four-bit elements:
   * StridedLayout.dense([5, 12], 0.5).repacked(1).shape; // [5, 6]
   * ```
   */
  repacked(itemsize: number, options?: RepackOptions): StridedLayout {
    if (options !== undefined) {
      checkOptions(options, repackOptionNames);
      checkBoolean("keepDim", options.keepDim);
    }
    const dataPtr = options?.dataPtr;
    checkItemsize(itemsize);
    checkDataPtr(dataPtr);
    checkSizes(this.itemsize, itemsize);
    if (itemsize === this.itemsize && this.ndim === 0 && options?.axis === undefined) return this;
    const axis = normalizeAxis(options?.axis ?? -1, this.ndim);
    if (itemsize === this.itemsize) return this;
    const shape = arrayOf(this.shape.length, 0);
    const strides = arrayOf(this.shape.length, 0);
    let offset: number;
    let volume: number;
    if (itemsize > this.itemsize) {
      const ratio = itemsize / this.itemsize;
      packInto(this, ratio, axis, dataPtr, shape, strides);
      offset = this.sliceOffset / ratio;
      volume = this.volume / ratio;
      if (shape[axis] === 1 && options?.keepDim === false) {
        shape.splice(axis, 1);
        strides.splice(axis, 1);
      }
    } else {
      const parts = this.itemsize / itemsize;
      unpackInto(this, parts, axis, shape, strides);
      offset = this.sliceOffset * parts;
      volume = checkVolume(this.volume * parts, shape);
      // Sub-byte elements outnumber the bytes, so the limit is checked again.
      if (itemsize < 1) checkSpan(shape, strides, itemsize, offset);
    }
    return new StridedLayout(shape, strides, itemsize, DERIVED, offset, volume);
  }

  // law layout/StridedLayout.maxCompatibleItemsize: layout/strided_layout_oracle
  /**
   * The largest itemsize that {@linkcode StridedLayout.repacked} accepts for this layout, among the divisors of `max`
   * that are multiples of the current itemsize.
   *
   * @returns bytes; the itemsize itself if nothing larger can be used
   * @throws {TypeError | RangeError} if max is less than the itemsize, or the axis is out of range
   *
   * @example
   * ```ts
   * import { StridedLayout } from "@causeway/causeway/layout";
   *
   * StridedLayout.dense([3, 6], 2).maxCompatibleItemsize(); // 4
   * StridedLayout.dense([3, 8], 2).maxCompatibleItemsize({ dataPtr: 0x1008n }); // 8
   * ```
   */
  maxCompatibleItemsize(options?: CompatibleItemsizeOptions): number {
    if (options !== undefined) checkOptions(options, compatibleItemsizeOptionNames);
    const max = options?.max ?? 16;
    const dataPtr = options?.dataPtr;
    checkItemsize(max);
    checkDataPtr(dataPtr);
    if (max < this.itemsize) {
      throw new RangeError(`Expected max to be at least the itemsize ${this.itemsize}, got ${max}`);
    }
    if (this.ndim === 0 && options?.axis === undefined) return this.itemsize;
    const axis = normalizeAxis(options?.axis ?? -1, this.ndim);
    if (max % this.itemsize !== 0) return this.itemsize;
    return this.itemsize * largestPack(this, max / this.itemsize, axis, dataPtr);
  }

  /**
   * Whether the other is a layout with the same shape, strides, itemsize and offset. For a map key use
   * {@linkcode StridedLayout.toString}, which returns the same text for equal layouts, and only for those.
   *
   * @throws {TypeError} for a layout of another copy of this package
   */
  equals(other: unknown): boolean {
    if (this === other) return true;
    if (!(other instanceof StridedLayout)) return falseFor(other, "StridedLayout.from(it)");
    if (this.itemsize !== other.itemsize || this.sliceOffset !== other.sliceOffset || this.ndim !== other.ndim) {
      return false;
    }
    for (let axis = 0; axis < this.shape.length; axis++) {
      if (at(this.shape, axis) !== at(other.shape, axis) || at(this.strides, axis) !== at(other.strides, axis)) {
        return false;
      }
    }
    return true;
  }

  /** Text such as `StridedLayout(shape=(3, 4), strides=(4, 1), itemsize=8)`, with the slice offset if it is not 0. */
  toString(): string {
    const offset = this.sliceOffset === 0 ? "" : `, sliceOffset=${this.sliceOffset}`;
    return `StridedLayout(shape=${formatShape(this.shape)}, strides=${
      formatShape(this.strides)
    }, itemsize=${this.itemsize}${offset})`;
  }

  /** The facts computed about the layout so far. */
  private found(): Facts {
    return this.#facts ??= new Facts();
  }

  /** Computes {@linkcode StridedLayout.offsetBounds} on first use. */
  private findBounds(): readonly [min: number, max: number] {
    return this.found().offsetBounds = boundsOf(this.shape, this.strides, this.sliceOffset, this.volume);
  }

  /** A layout of exactly these elements, in another shape. */
  private withSameElements(shape: number[], strides: number[]): StridedLayout {
    return new StridedLayout(shape, strides, this.itemsize, DERIVED, this.sliceOffset, this.volume);
  }

  static {
    showAs(StridedLayout, (layout) => `${layout}`.replace(/^StridedLayout\s*/, ""), "fields");
  }
}

/** The error for anything but a layout; above all for a view, which has one. */
function noLayout(given: unknown): TypeError {
  const isView = typeof given === "object" && given !== null && "layout" in given &&
    given.layout instanceof StridedLayout;
  return new TypeError(
    `Expected a StridedLayout, got ${showGiven(given)}${isView ? "; a view has one: view.layout" : ""}`,
  );
}
