import { type AxisSet, isInSet } from "./axes.ts";
import type { OptionNames } from "./options.ts";
import { at, type Shape } from "./shape.ts";
import { formatShape, show } from "./show.ts";
import type { StridedLayout } from "./strided_layout.ts";

/** Options of `StridedLayout.flattened`. */
export interface FlattenOptions {
  /** First axis that may be joined with the one after it. Negative counts from the back. Default: 0. */
  start?: number;
  /** Last axis that may be joined with the one before it. Negative counts from the back. Default: -1. */
  end?: number;
  /**
   * Bit i requests that axis i be joined with axis i-1; see `StridedLayout.flattenedAxisMask`. Default: all that can
   * be.
   */
  mask?: bigint;
}

/** The names of {@linkcode FlattenOptions}. */
export const flattenOptionNames: OptionNames<FlattenOptions> = { start: true, end: true, mask: true };

/** The part of a layout that the functions of this file need. */
type FlattenableLayout = Pick<StridedLayout, "shape" | "strides" | "volume">;

// law layout/allowedMerges: layout/strided_layout, layout/strided_layout_oracle, layout/subbyte,
//   layout/strided_layout_errors, layout/strided_layout_facts
/**
 * Converts a mask to numbers once: a bigint operation per axis would cost more than all the rest.
 *
 * @throws {TypeError} if the mask is not a bigint
 * @throws {RangeError} if it has bits for axis 0, which has no axis before it, or for axes that do not exist
 */
export function allowedMerges(mask: bigint | undefined, ndim: number): AxisSet | null {
  if (mask === undefined) return null;
  if (typeof mask !== "bigint") throw new TypeError(`Expected mask to be a bigint, got ${show(mask)}`);
  if (mask < 0n || mask >> BigInt(ndim) !== 0n || (mask & 1n) !== 0n) {
    throw new RangeError(
      `Expected a mask with bits from 1 to ${ndim - 1} only, got 0x${mask.toString(16)} for ${ndim} axes`,
    );
  }
  return { low: Number(mask & 0xffffffffn) | 0, high: Number(mask >> 32n) | 0 };
}

// law layout/flattenInto: layout/strided_layout, layout/strided_layout_oracle, layout/subbyte,
//   layout/strided_layout_errors, layout/strided_layout_facts
/**
 * Joins neighbouring axes from left to right. Called twice: without arrays to count the remaining axes, then with
 * arrays of that size to fill them.
 *
 * @param start first axis that may be joined with the next
 * @param end last axis that may be joined with the one before
 * @param mask the joins to make, or null for all that are possible
 * @param newShape receives the extents
 * @param newStrides receives the strides
 * @returns the number of remaining axes
 * @throws {RangeError} if the mask requests a join that would require moving elements
 */
export function flattenInto(
  { shape, strides, volume }: FlattenableLayout,
  start: number,
  end: number,
  mask: AxisSet | null,
  newShape: number[] | null,
  newStrides: number[] | null,
): number {
  let made = 0;
  let outerExtent = 1;
  let outerStride = 0;
  for (let axis = 0; axis < shape.length; axis++) {
    const extent = at(shape, axis);
    const stride = at(strides, axis);
    if (axis > start && axis <= end && (mask === null || isInSet(mask.low, mask.high, axis))) {
      if (volume === 0 || extent === 1 || outerExtent === 1 || outerStride === stride * extent) {
        made--;
        // The joined axis has the stride of its innermost part that is longer than 1.
        if (extent !== 1 || outerExtent === 1) outerStride = stride;
        outerExtent *= extent;
      } else if (mask !== null) throw cannotJoin(shape, strides, axis);
      else {
        outerExtent = extent;
        outerStride = stride;
      }
    } else {
      outerExtent = extent;
      outerStride = stride;
    }
    if (newShape !== null) newShape[made] = outerExtent;
    if (newStrides !== null) newStrides[made] = volume === 0 ? 0 : outerStride;
    made++;
  }
  return made;
}

/**
 * The stride of elements that are all evenly spaced.
 *
 * @returns the stride of the innermost axis whose extent is not 1, or 0 without elements
 */
export function commonStride({ shape, strides, volume }: FlattenableLayout): number {
  if (volume === 0) return 0;
  for (let axis = shape.length - 1; axis >= 0; axis--) if (at(shape, axis) !== 1) return at(strides, axis);
  return at(strides, shape.length - 1);
}

// law layout/mergeableAxes: layout/strided_layout, layout/strided_layout_oracle, layout/subbyte,
//   layout/strided_layout_errors, layout/strided_layout_facts
/**
 * Which axes can be joined with the one before them, as the bits of a mask.
 *
 * An axis of extent 1 joins freely, and the axis after it is compared with the last longer one before it. So any subset
 * of these bits is a valid mask, and masks of several layouts can be combined.
 */
export function mergeableAxes({ shape, strides, volume }: FlattenableLayout): bigint {
  let low = 0;
  let high = 0;
  let outerStride: number | null = null;
  for (let axis = 0; axis < shape.length; axis++) {
    const extent = at(shape, axis);
    const stride = at(strides, axis);
    const joins = volume === 0 || extent === 1 || outerStride === null || outerStride === stride * extent;
    if (joins && axis > 0) {
      if (axis < 32) low |= 1 << axis;
      else high |= 1 << (axis - 32);
    }
    if (extent !== 1) outerStride = stride;
  }
  return BigInt(low >>> 0) | (BigInt(high >>> 0) << 32n);
}

function cannotJoin(shape: Shape, strides: readonly number[], axis: number): RangeError {
  return new RangeError(
    `Cannot join axis ${axis} of ${formatShape(shape)} with strides ${formatShape(strides)} to the axis before it: ` +
      "the elements are not evenly spaced. AND the mask with this layout's flattenedAxisMask()",
  );
}
