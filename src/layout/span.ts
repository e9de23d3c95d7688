/**
 * How far the elements of a layout lie apart, and that it is not too far to count exactly.
 */
import { rowMajorStrides } from "./stride_order.ts";
import { arrayOf, at, checkArray, formatShape, MAX_SPAN_IN_BYTES, notInteger, type Shape } from "./shape.ts";

/** Options of the constructor of `StridedLayout`. */
export interface StridedLayoutOptions {
  /** Whether the strides are given in bytes, to be divided by the itemsize without a remainder. Default: false. */
  divideStrides?: boolean;
}

/**
 * The smallest and the largest offset of an element, in elements from offset 0.
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

/**
 * A copy of the strides that a caller gave, or those that leave no gap if none were given.
 *
 * @throws {TypeError | RangeError} if they are no array of integers, of another length, no multiples of the itemsize where
 * they are to be divided by it, or reach too far
 */
export function explicitStrides(
  shape: Shape,
  strides: readonly number[] | null,
  itemsize: number,
  volume: number,
  options: StridedLayoutOptions | undefined,
): number[] {
  if (strides === null) {
    checkDenseSpan(shape, volume, itemsize);
    return rowMajorStrides(shape, volume);
  }
  const steps = copyStrides(shape, strides, options?.divideStrides === true ? itemsize : 1);
  checkSpan(shape, steps, itemsize);
  return steps;
}

/**
 * A copy of a caller's strides, in elements.
 *
 * @param unit what they count in: 1 for elements, or the itemsize if they are in bytes
 * @throws {TypeError | RangeError} if they are no array of integers, of another length, or no multiples of the unit
 */
function copyStrides(shape: Shape, strides: readonly number[], unit: number): number[] {
  checkArray("strides", strides);
  if (strides.length !== shape.length) {
    throw new RangeError(
      `Expected one stride per axis of ${formatShape(shape)}, got ${strides.length}: ${formatShape(strides)}`,
    );
  }
  const steps = arrayOf(strides.length, 0);
  for (let axis = 0; axis < steps.length; axis++) {
    const stride = at(strides, axis);
    if (!Number.isSafeInteger(stride)) throw notInteger(`stride of axis ${axis}`, "an integer", stride);
    if (unit === 1) {
      if (stride !== 0) steps[axis] = stride; // not -0
    } else {
      if (stride % unit !== 0) {
        throw new RangeError(
          `Expected strides in bytes that divide by the itemsize ${unit}, got ${stride} for axis ${axis}`,
        );
      }
      steps[axis] = stride / unit + 0; // not -0
    }
  }
  return steps;
}

/**
 * Throws a RangeError if the layout, or a single axis of it, would span more than 2^52 bytes.
 *
 * @param sliceOffset elements from offset 0 to the first element
 */
export function checkSpan(shape: Shape, strides: readonly number[], itemsize: number, sliceOffset = 0): void {
  // For packed elements of less than a byte, the numbers of elements are the larger ones.
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

/** Throws a RangeError if so many elements without gaps would span more than 2^52 bytes. */
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
