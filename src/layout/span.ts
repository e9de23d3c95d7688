/** The extent of a layout's elements in memory, and the check that it is small enough for exact arithmetic. */
import { checkBoolean, checkOptions, type OptionNames } from "./options.ts";
import { checkItemsize } from "./repack.ts";
import { rowMajorStrides } from "./stride_order.ts";
import { arrayOf, at, checkArray, copyShape, MAX_SPAN_IN_BYTES, type Shape, volumeOf } from "./shape.ts";
import { formatShape, notInteger } from "./show.ts";
import type { StridedLayout } from "./strided_layout.ts";

/** Options of the constructor of `StridedLayout`. */
export interface StridedLayoutOptions {
  /** Whether the strides are given in bytes, to be divided by the itemsize without a remainder. Default: false. */
  divideStrides?: boolean;
}

const stridedLayoutOptionNames: OptionNames<StridedLayoutOptions> = { divideStrides: true };

/**
 * The smallest and the largest element offset, in elements from offset 0.
 *
 * @returns [0, -1] if there are no elements
 */
export function boundsOf(
  shape: Shape,
  strides: readonly number[],
  sliceOffset: number,
  volume: number,
): readonly [min: number, max: number] {
  if (volume === 0) return [0, -1];
  let min = sliceOffset;
  let max = sliceOffset;
  for (let axis = 0; axis < shape.length; axis++) {
    const stride = at(strides, axis);
    const reach = stride * (at(shape, axis) - 1);
    if (stride < 0) min += reach;
    else max += reach;
  }
  return [min, max];
}

/** A layout under construction. */
type NewLayout = {
  -readonly [Field in "shape" | "strides" | "itemsize" | "sliceOffset" | "volume"]: StridedLayout[Field];
};

/**
 * Fills a layout with copies of the constructor's arguments, and with contiguous strides if none are given.
 *
 * @throws {TypeError | RangeError} if they make no valid layout: see the constructor
 */
export function readLayout(
  layout: NewLayout,
  shape: Shape,
  strides: readonly number[] | null,
  itemsize: number,
  options: StridedLayoutOptions | undefined,
): void {
  if (options !== undefined) {
    checkOptions(options, stridedLayoutOptionNames);
    checkBoolean("divideStrides", options.divideStrides);
  }
  checkItemsize(itemsize);
  const extents = copyShape(shape);
  const volume = volumeOf(extents);
  let steps: readonly number[];
  if (strides === null) {
    checkDenseSpan(extents, volume, itemsize);
    steps = rowMajorStrides(extents, volume);
  } else {
    steps = copyStrides(extents, strides, itemsize, options?.divideStrides === true ? itemsize : 1);
  }
  layout.shape = extents;
  layout.strides = steps;
  layout.itemsize = itemsize;
  layout.sliceOffset = 0;
  layout.volume = volume;
}

// law layout/copyStrides: layout/strided_layout_errors, layout/strided_layout, layout/strided_layout_oracle
/**
 * A copy of a caller's strides, in elements. One loop, which also measures their reach: every layout with explicit
 * strides passes through here.
 *
 * @param unit the unit of the strides: 1 for elements, or the itemsize if they are in bytes
 * @throws {TypeError | RangeError} if they are not an array of integers, have the wrong length, are not multiples of
 *   the unit, or reach too far
 */
function copyStrides(shape: Shape, strides: readonly number[], itemsize: number, unit: number): number[] {
  checkArray("strides", strides);
  if (strides.length !== shape.length) throw notOnePerAxis(shape, strides);
  const steps = arrayOf(strides.length, 0);
  // For packed sub-byte elements, counts of elements exceed counts of bytes.
  const limit = MAX_SPAN_IN_BYTES / Math.max(itemsize, 1);
  let isNear = true;
  let total = 0;
  for (let axis = 0; axis < steps.length; axis++) {
    const given = at(strides, axis);
    if (!Number.isSafeInteger(given)) throw notInteger(`stride of axis ${axis}`, "an integer", given);
    const stride = unit === 1 ? given : divided(given, unit, axis);
    if (stride !== 0) steps[axis] = stride; // not -0
    const distance = Math.abs(stride);
    if (distance > limit) isNear = false;
    const extent = at(shape, axis);
    if (extent > 1) total += distance * (extent - 1);
  }
  if (!(isNear && total < limit)) throw spansTooFar(shape, steps, itemsize);
  return steps;
}

function notOnePerAxis(shape: Shape, strides: readonly number[]): RangeError {
  return new RangeError(
    `Expected one stride per axis of ${formatShape(shape)}, got ${strides.length}: ${formatShape(strides)}`,
  );
}

// law layout/divided: layout/strided_layout_errors, layout/strided_layout, layout/strided_layout_oracle
function divided(stride: number, unit: number, axis: number): number {
  if (stride % unit === 0) return stride / unit;
  throw new RangeError(`Expected byte strides divisible by the itemsize ${unit}, got ${stride} for axis ${axis}`);
}

// law layout/checkSpan: layout/strided_layout_errors, layout/strided_layout, layout/strided_layout_oracle
/**
 * Throws a RangeError if the layout, or a single axis of it, would span more than 2^52 bytes.
 *
 * @param sliceOffset elements from offset 0 to the first element
 */
export function checkSpan(shape: Shape, strides: readonly number[], itemsize: number, sliceOffset = 0): void {
  // For packed sub-byte elements, counts of elements exceed counts of bytes.
  const unit = Math.max(itemsize, 1);
  let total = Math.abs(sliceOffset);
  for (let axis = 0; axis < shape.length; axis++) {
    const extent = at(shape, axis);
    const stride = Math.abs(at(strides, axis));
    if (stride * unit > MAX_SPAN_IN_BYTES) throw spansTooFar(shape, strides, itemsize);
    if (extent > 1) total += stride * (extent - 1);
  }
  if (total * unit >= MAX_SPAN_IN_BYTES) throw spansTooFar(shape, strides, itemsize);
}

// law layout/checkDenseSpan: layout/strided_layout_errors, layout/strided_layout, layout/strided_layout_oracle
/** Throws a RangeError if that many contiguous elements would span more than 2^52 bytes. */
export function checkDenseSpan(shape: Shape, volume: number, itemsize: number): void {
  if (volume * itemsize > MAX_SPAN_IN_BYTES || volume > MAX_SPAN_IN_BYTES) {
    throw new RangeError(
      `Expected a layout that spans at most 2^52 bytes, got shape ${formatShape(shape)} with itemsize ${itemsize}`,
    );
  }
}

function spansTooFar(shape: Shape, strides: readonly number[], itemsize: number): RangeError {
  return new RangeError(
    `Expected a layout that spans at most 2^52 bytes, got shape ${formatShape(shape)} with strides ${
      formatShape(strides)
    } and itemsize ${itemsize}`,
  );
}

// law layout/bytesBefore: layout/subbyte, dlpack/import, dlpack/array_interface, dlpack/fuzz
/** Bytes from the lowest byte of all elements to offset 0 of the layout. */
export function bytesBefore({ minOffset, itemsize }: Pick<StridedLayout, "minOffset" | "itemsize">): number {
  return minOffset === 0 ? 0 : 0 - wholeBytes(minOffset, itemsize);
}

/** Bytes from offset 0 of the layout to the end of the highest byte of all elements. */
export function bytesFrom({ maxOffset, itemsize }: Pick<StridedLayout, "maxOffset" | "itemsize">): number {
  return 0 - wholeBytes(-maxOffset - 1, itemsize);
}

/** Bytes of that many elements, rounded down. */
function wholeBytes(elements: number, itemsize: number): number {
  return itemsize >= 1 ? elements * itemsize : packedBytes(elements, itemsize);
}

// law layout/packedBytes: layout/subbyte
/**
 * Bytes of packed elements, by groups of eight, which take whole bytes: a fraction of 2^52 elements exceeds a number's
 * precision.
 */
function packedBytes(elements: number, itemsize: number): number {
  const eights = Math.floor(elements / 8);
  return eights * (8 * itemsize) + Math.floor((elements - 8 * eights) * itemsize);
}
