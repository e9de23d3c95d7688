import { arrayOf, at, checkArray, checkExtent, checkNdim, type Shape } from "./shape.ts";
import { formatShape } from "./show.ts";

// law layout/completeShape: layout/strided_layout, layout/strided_layout_oracle, layout/subbyte,
//   layout/strided_layout_errors, layout/strided_layout_facts
/**
 * The shape that a reshape requests, with the open extent filled in.
 *
 * @param requested the requested extents; at most one is -1, which stands for whatever the others leave
 * @param shape the current shape, for the error
 * @param volume its number of elements
 * @returns a copy that the caller owns
 * @throws {TypeError | RangeError} if an extent is invalid, more than one is open, or the number of elements differs
 */
export function completeShape(requested: Shape, shape: Shape, volume: number): number[] {
  checkArray("shape", requested);
  checkNdim(requested.length);
  const extents = arrayOf(requested.length, 0);
  let open = -1;
  let product = 1;
  for (let axis = 0; axis < extents.length; axis++) {
    const extent = at(requested, axis);
    if (extent === -1) {
      if (open >= 0) throw cannotReshape(shape, requested, "at most one extent may be -1");
      open = axis;
      continue;
    }
    checkExtent(extent, axis);
    if (extent === 0) product = 0;
    else {
      extents[axis] = extent; // not -0
      product *= extent;
    }
  }
  if (open >= 0) {
    if (product === 0) throw cannotReshape(shape, requested, "-1 is ambiguous next to an extent of 0");
    if (volume % product !== 0) {
      throw cannotReshape(shape, requested, `${volume} elements are not divisible by ${product}`);
    }
    extents[open] = volume / product;
  } else if (product !== volume) {
    throw cannotReshape(shape, requested, `it has ${volume} elements, not ${product}`);
  }
  return extents;
}

// law layout/stridesForShape: layout/strided_layout, layout/strided_layout_oracle, layout/subbyte,
//   layout/strided_layout_errors, layout/strided_layout_facts
/**
 * Strides that present the same elements, in the same order, in another shape.
 *
 * Walks both shapes from the last axis back. Consecutive old axes that are evenly spaced, however many, form one run of
 * equal steps; every new axis must take its extent out of the open run. A reshape is impossible if a new axis would
 * have to cross from one run into the next, whose step differs.
 *
 * @param target the new extents, with the same number of elements, none of them 0
 * @returns the new strides, or null if the elements are not evenly enough spaced
 */
export function stridesForShape(shape: Shape, strides: readonly number[], target: Shape): number[] | null {
  const result = arrayOf(target.length, 0);
  let axis = shape.length - 1;
  let step = 1; // between the elements of the open run
  let run = 1; // elements of the open run
  let taken = 1; // how many of them the new axes have taken; multiplied up, since a division may not be integral
  for (let made = target.length - 1; made >= 0; made--) {
    const extent = at(target, made);
    if (taken === run && extent !== 1) {
      // The volumes are equal, so an old axis longer than 1 is left.
      while (at(shape, axis) === 1) axis--;
      step = at(strides, axis);
      run = at(shape, axis);
      taken = 1;
      for (axis--; axis >= 0; axis--) {
        const outer = at(shape, axis);
        if (outer === 1) continue;
        if (at(strides, axis) !== step * run) break;
        run *= outer;
      }
    }
    result[made] = step * taken;
    taken *= extent;
    // If this does not divide the run, no further new axis can make it fit, and a later one returns here.
    if (taken > run) return null;
  }
  return result;
}

// law layout/notEvenlySpaced: layout/strided_layout_oracle
/** The error for a reshape that would have to move elements. */
export function notEvenlySpaced(shape: Shape, strides: readonly number[], target: Shape): RangeError {
  return new RangeError(
    `Cannot reshape ${formatShape(shape)} with strides ${formatShape(strides)} to ${formatShape(target)}: ` +
      `the elements are not evenly spaced. Copy them first, in C order: contiguous() copies a view, and toDense("C") is the layout of the copy.`,
  );
}

function cannotReshape(shape: Shape, requested: Shape, reason: string): RangeError {
  return new RangeError(`Cannot reshape ${formatShape(shape)} to ${formatShape(requested)}: ${reason}`);
}
