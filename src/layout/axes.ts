/**
 * Operations that rearrange, add and repeat whole axes.
 */
import { arrayOf, at, checkArray, checkExtent, checkVolume, normalizeAxis, type Shape } from "./shape.ts";
import { formatShape } from "./show.ts";

// law layout/permuteInto: layout/strided_layout, layout/strided_layout_oracle, layout/subbyte,
//   layout/strided_layout_errors, layout/strided_layout_facts
/**
 * Puts the axes into another order.
 *
 * @param axes for each axis of the result, the axis it comes from
 * @param newShape receives the extents; of the same length
 * @param newStrides receives the strides; of the same length
 * @throws {TypeError | RangeError} if it is not an array, has the wrong length, or an axis is out of range or repeated
 */
export function permuteInto(
  shape: Shape,
  strides: readonly number[],
  axes: readonly number[],
  newShape: number[],
  newStrides: number[],
): void {
  checkArray("axes", axes);
  if (axes.length !== shape.length) throw noPermutation(axes, shape.length);
  let seenLow = 0; // axes 0 to 31 as bits, and 32 to 63
  let seenHigh = 0;
  for (let place = 0; place < axes.length; place++) {
    const axis = normalizeAxis(at(axes, place), shape.length);
    const bit = 1 << axis; // JavaScript shifts by the axis modulo 32
    if (((axis < 32 ? seenLow : seenHigh) & bit) !== 0) throw axisTwice(axis, axes);
    if (axis < 32) seenLow |= bit;
    else seenHigh |= bit;
    newShape[place] = at(shape, axis);
    newStrides[place] = at(strides, axis);
  }
}

function noPermutation(axes: readonly number[], ndim: number): RangeError {
  return new RangeError(`Expected a permutation of ${ndim} axes, got ${axes.length}: ${formatShape(axes)}`);
}

function axisTwice(axis: number, axes: readonly number[]): RangeError {
  return new RangeError(`Expected every axis once, got axis ${axis} twice in ${formatShape(axes)}`);
}

/**
 * A copy of a permutation of `ndim` axes, with each axis counted from the front.
 *
 * @throws {TypeError | RangeError} as {@linkcode permuteInto} does
 */
export function normalizePermutation(axes: readonly number[], ndim: number): number[] {
  const all = Array.from({ length: ndim }, (_, axis) => axis);
  const order = arrayOf(ndim, 0);
  permuteInto(all, all, axes, order, arrayOf(ndim, 0));
  return order;
}

/** A placeholder for an axis to which {@linkcode placeNewAxes} has yet to give an extent. */
export const NEW_AXIS = -1;

// law layout/placeNewAxes: layout/strided_layout, layout/strided_layout_oracle, layout/subbyte,
//   layout/strided_layout_errors, layout/strided_layout_facts
/**
 * Gives every new axis extent 1 and a stride that keeps dense layouts dense: that of a step over the whole next axis;
 * at the end the stride of the last axis, or 1 if there is none.
 *
 * @param shape extents, {@linkcode NEW_AXIS} for each new axis; modified in place
 * @param strides strides; those of the new axes are overwritten
 */
export function placeNewAxes(shape: number[], strides: number[]): void {
  let stride = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    if (at(shape, axis) === NEW_AXIS) continue;
    stride = at(strides, axis);
    break;
  }
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    const extent = at(shape, axis);
    if (extent === NEW_AXIS) {
      shape[axis] = 1;
      strides[axis] = stride;
    } else {
      stride = extent * at(strides, axis) + 0; // not -0
    }
  }
}

/** The number of axes whose extent is not 1. */
export function squeezedNdim(shape: Shape): number {
  let kept = 0;
  for (let axis = 0; axis < shape.length; axis++) if (at(shape, axis) !== 1) kept++;
  return kept;
}

/**
 * Removes the axes of extent 1.
 *
 * @param newShape receives the extents; of the length that {@linkcode squeezedNdim} returns
 * @param newStrides receives the strides; as long
 */
export function squeezeInto(
  shape: Shape,
  strides: readonly number[],
  newShape: number[],
  newStrides: number[],
): void {
  let made = 0;
  for (let axis = 0; axis < shape.length; axis++) {
    if (at(shape, axis) === 1) continue;
    newShape[made] = at(shape, axis);
    newStrides[made] = at(strides, axis);
    made++;
  }
}

/** A set of axes out of at most 64: axes 0 to 31 as the bits of one number, 32 to 63 as those of another. */
export interface AxisSet {
  readonly low: number;
  readonly high: number;
}

// law layout/axisSet: layout/strided_layout, layout/strided_layout_oracle, layout/subbyte,
//   layout/strided_layout_errors, layout/strided_layout_facts
/**
 * Reads a list of axes.
 *
 * @throws {TypeError | RangeError} if one is not an axis, or is repeated
 */
export function axisSet(axes: readonly number[], ndim: number): AxisSet {
  let low = 0;
  let high = 0;
  for (let place = 0; place < axes.length; place++) {
    const axis = normalizeAxis(at(axes, place), ndim);
    const bit = 1 << axis; // JavaScript shifts by the axis modulo 32
    if (((axis < 32 ? low : high) & bit) !== 0) throw axisTwice(axis, axes);
    if (axis < 32) low |= bit;
    else high |= bit;
  }
  return { low, high };
}

/** Whether an axis is in a set given by its two numbers; JavaScript shifts by the axis modulo 32. */
export function isInSet(low: number, high: number, axis: number): boolean {
  return (((axis < 32 ? low : high) >>> axis) & 1) !== 0;
}

/**
 * Adds axes of extent 1, with the strides of {@linkcode placeNewAxes}.
 *
 * @param low which axes of the result from 0 to 31 are new, as bits
 * @param high which from 32 to 63 are
 * @param newShape receives the extents; longer than `shape` by the number of new axes
 * @param newStrides receives the strides; as long
 */
export function unsqueezeInto(
  shape: Shape,
  strides: readonly number[],
  low: number,
  high: number,
  newShape: number[],
  newStrides: number[],
): void {
  let from = shape.length - 1;
  let stride = from < 0 ? 1 : at(strides, from);
  for (let axis = newShape.length - 1; axis >= 0; axis--) {
    if (isInSet(low, high, axis)) {
      newShape[axis] = 1;
      newStrides[axis] = stride;
    } else {
      newShape[axis] = at(shape, from);
      newStrides[axis] = at(strides, from);
      stride = at(shape, from) * at(strides, from) + 0; // not -0
      from--;
    }
  }
}

// law layout/broadcastInto: layout/strided_layout, layout/strided_layout_oracle, layout/subbyte,
//   layout/strided_layout_errors, layout/strided_layout_facts
/**
 * Repeats elements to fill a larger shape, by NumPy's rules.
 *
 * @param wanted the extents of the result
 * @param newShape receives a copy of them; all 0 before
 * @param newStrides receives the strides; all 0 before
 * @returns the new number of elements
 * @throws {TypeError | RangeError} if an extent is invalid, there are fewer axes, or an extent other than 1 differs
 */
export function broadcastInto(
  shape: Shape,
  strides: readonly number[],
  wanted: Shape,
  newShape: number[],
  newStrides: number[],
): number {
  const added = wanted.length - shape.length;
  if (added < 0) throw cannotBroadcast(shape, wanted);
  let volume = added === 0 ? 1 : addInFront(wanted, added, newShape);
  for (let axis = added; axis < wanted.length; axis++) {
    // Indexed without `at`, which would make this loop too long for the engines to inline.
    const extent = shape[axis - added] as number;
    if (wanted[axis] === extent) { // so it is a valid extent, and not -0
      newShape[axis] = extent;
      newStrides[axis] = strides[axis - added] as number;
      volume *= extent;
    } else {
      volume *= stretched(wanted, axis, newShape);
      if (extent !== 1) throw cannotBroadcast(shape, wanted);
    }
  }
  return checkVolume(volume, newShape);
}

/** Copies the extents of the axes added in front. */
function addInFront(wanted: Shape, added: number, newShape: number[]): number {
  let volume = 1;
  for (let axis = 0; axis < added; axis++) volume *= stretched(wanted, axis, newShape);
  return volume;
}

// law layout/stretched: layout/strided_layout, layout/strided_layout_oracle, layout/subbyte,
//   layout/strided_layout_errors, layout/strided_layout_facts
/** Copies the extent of an axis along which elements are repeated. */
function stretched(wanted: Shape, axis: number, newShape: number[]): number {
  const extent = at(wanted, axis);
  checkExtent(extent, axis);
  return newShape[axis] = extent === 0 ? 0 : extent; // not -0
}

function cannotBroadcast(shape: Shape, wanted: Shape): RangeError {
  const added = wanted.length - shape.length;
  const axis = shape.findIndex((extent, axis) => extent !== 1 && extent !== at(wanted, axis + added));
  const reason = added < 0
    ? `it has ${shape.length} axes, too many`
    : `extent ${at(shape, axis)} is neither ${at(wanted, axis + added)} nor 1`;
  return new RangeError(`Cannot broadcast ${formatShape(shape)} to ${formatShape(wanted)}: ${reason}`);
}
