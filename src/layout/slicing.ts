import { at, formatShape, MAX_SPAN_IN_BYTES, notInteger, type Shape, show } from "./shape.ts";
import { Slice } from "./slice.ts";

/**
 * What selects a part of one axis: a position (which drops the axis), a {@linkcode Slice}, `null` (a new axis of extent
 * 1), or `"..."` (all the axes that no other item speaks of; once at most, and implied at the end).
 */
export type SliceItem = number | Slice | null | "...";

/** Stands for an axis that {@linkcode placeNewAxes} has yet to give an extent. */
export const NEW_AXIS = -1;

/**
 * How many axes slicing with these items leaves.
 *
 * @throws {TypeError} if an item is of another kind
 * @throws {RangeError} if there are more items than axes, or more than one ellipsis
 */
export function slicedNdim(shape: Shape, items: readonly SliceItem[]): number {
  let selected = 0;
  let dropped = 0;
  let added = 0;
  let ellipses = 0;
  for (let place = 0; place < items.length; place++) {
    const item = items[place];
    if (typeof item === "number") {
      selected++;
      dropped++;
    } else if (item instanceof Slice) selected++;
    else if (item === null) added++;
    else if (item === "...") ellipses++;
    else {
      throw new TypeError(
        `Expected an index to be an integer, slice(), null or "...", got ${show(item)} at position ${place}`,
      );
    }
  }
  if (selected > shape.length) {
    throw new RangeError(
      `Expected at most ${shape.length} indices for shape ${formatShape(shape)}, got ${selected}`,
    );
  }
  if (ellipses > 1) throw new RangeError(`Expected at most one "...", got ${ellipses}`);
  return shape.length - dropped + added;
}

/**
 * Fills in the extents and strides that slicing leaves. New axes get the extent {@linkcode NEW_AXIS}.
 *
 * @param shape the extents now
 * @param strides the strides now
 * @param items as {@linkcode slicedNdim} accepted them
 * @param newShape receives the extents; of the length that `slicedNdim` gave
 * @param newStrides receives the strides; as long
 * @returns how many elements the first element moves
 * @throws {TypeError | RangeError} if an index is no integer, or out of range
 */
export function sliceInto(
  shape: Shape,
  strides: readonly number[],
  items: readonly SliceItem[],
  newShape: number[],
  newStrides: number[],
): number {
  let offset = 0;
  let axis = 0;
  let made = 0;
  for (let place = 0; place < items.length; place++) {
    const item = items[place];
    if (typeof item === "number") {
      offset += position(item, axis, at(shape, axis)) * at(strides, axis);
      axis++;
    } else if (item instanceof Slice) {
      const extent = at(shape, axis);
      const stride = at(strides, axis);
      const { step } = item;
      let first = 0;
      let count = extent;
      if (step !== 1 || item.start !== null || item.stop !== null) {
        first = firstPosition(item, extent);
        const end = endPosition(item, extent);
        const distance = step > 0 ? end - first : first - end;
        count = distance > 0 ? Math.floor((distance - 1) / Math.abs(step)) + 1 : 0;
      }
      newShape[made] = count;
      newStrides[made] = steppedStride(stride, step);
      made++;
      if (count > 0) offset += first * stride;
      axis++;
    } else if (item === null) {
      newShape[made++] = NEW_AXIS;
    } else {
      // The ellipsis: as many axes as the remaining items leave over.
      let after = 0;
      for (let rest = place + 1; rest < items.length; rest++) if (items[rest] !== null) after++;
      for (const end = shape.length - after; axis < end; axis++, made++) {
        newShape[made] = at(shape, axis);
        newStrides[made] = at(strides, axis);
      }
    }
  }
  for (; axis < shape.length; axis++, made++) {
    newShape[made] = at(shape, axis);
    newStrides[made] = at(strides, axis);
  }
  return offset;
}

/**
 * A position counted from either end, as one from the front.
 *
 * @throws {TypeError | RangeError} if it is no integer, or out of range
 */
export function position(index: number, axis: number, extent: number): number {
  if (!Number.isSafeInteger(index)) throw notInteger(`index of axis ${axis}`, "an integer", index);
  const fromFront = index < 0 ? index + extent : index;
  if (fromFront < 0 || fromFront >= extent) {
    throw new RangeError(`Index ${index} is out of range for axis ${axis} with extent ${extent}`);
  }
  return fromFront;
}

function firstPosition({ start, step }: Slice, extent: number): number {
  if (start === null) return step > 0 ? 0 : extent - 1;
  return clamp(start, step, extent);
}

function endPosition({ stop, step }: Slice, extent: number): number {
  if (stop === null) return step > 0 ? extent : -1;
  return clamp(stop, step, extent);
}

/** Moves a bound onto the axis, or to the place just beyond the end that a walk with this step runs out at. */
function clamp(bound: number, step: number, extent: number): number {
  const fromFront = bound < 0 ? bound + extent : bound;
  return step > 0 ? Math.min(Math.max(fromFront, 0), extent) : Math.min(Math.max(fromFront, -1), extent - 1);
}

/**
 * The stride between elements that are `step` apart.
 *
 * A step beyond the end of the axis leaves at most one element, and its stride may be anything: so if the product would
 * leave the exact range, the old stride stays.
 */
function steppedStride(stride: number, step: number): number {
  if (step === 1) return stride;
  const product = stride * step;
  // Adding 0 turns the -0 of a broadcast axis walked backwards into 0.
  return Math.abs(product) <= MAX_SPAN_IN_BYTES ? product + 0 : stride;
}

/**
 * Gives every new axis extent 1 and a stride: one that keeps dense layouts dense, which is that of a walk over all of the
 * next axis; at the end that of the last axis, and 1 if there is none.
 *
 * @param shape extents, {@linkcode NEW_AXIS} where a new axis comes; changed
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
