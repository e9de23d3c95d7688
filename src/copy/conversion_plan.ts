/**
 * Plans for conversions in host memory: which boxes of elements are gathered, converted and scattered. A pure function
 * decides, from extents and steps alone; `host_conversion.ts` carries the plan out.
 *
 * @module
 */
import type { MoveAxis } from "../native/mod.ts";
import { type Bytes, elementsAreApart, joinAxes, type Span, spanOf, startOf, turnedForwards } from "./host_plan.ts";

/** The boxes and axes of one conversion. */
export interface ConversionPlan {
  /** In the order of the destination, the last one fastest; steps in bytes. At least one. */
  readonly axes: readonly MoveAxis[];
  /** Length of a box along each axis; the last box along an axis may be shorter. */
  readonly box: readonly number[];
  /** Whether elements of the destination do not overlap, so that they may be written in any order, and repeatedly. */
  readonly isFree: boolean;
  /** Position of the first box on both sides, in bytes from the first element. */
  readonly toOffset: number;
  readonly fromOffset: number;
  /** Span of all elements, in bytes from the first one. */
  readonly to: Span;
  readonly from: Span;
}

// law copy/planConversion: copy/conversion_plan
/**
 * Plans a conversion.
 *
 * @param axes in element order, the last one fastest; steps in bytes, no extent of 0
 * @param sizes bytes of an element
 * @param most maximum number of elements in a box
 */
export function planConversion(axes: readonly MoveAxis[], sizes: Bytes, most: number): ConversionPlan {
  const longer = axes.filter(({ extent }) => extent > 1);
  const isFree = elementsAreApart(longer, sizes.to);
  // Where elements of the destination overlap, the last one in element order wins: so the order is kept.
  const forwards = isFree ? longer.map(turnedForwards) : longer;
  const joined = joinAxes(isFree ? forwards.toSorted((one, other) => other.to - one.to) : forwards);
  const ordered = joined.length > 0 ? joined : [{ extent: 1, ...sizes }];
  const box = isFree ? boxOf(ordered, most) : filled(ordered, ordered.map(() => 1), most);
  return {
    axes: ordered,
    box,
    isFree,
    toOffset: startOf(longer, forwards, "to"),
    fromOffset: startOf(longer, forwards, "from"),
    to: spanOf(axes, sizes.to, "to"),
    from: spanOf(axes, sizes.from, "from"),
  };
}

/** As wide along the source's densest axis as along the destination's, so that both use whole cache lines. */
function boxOf(axes: readonly MoveAxis[], most: number): number[] {
  const ones = axes.map(() => 1);
  const inner = axes.at(-1);
  const densest = axes.filter(({ from }) => from !== 0)
    .reduce((one, other) => one !== undefined && Math.abs(one.from) <= Math.abs(other.from) ? one : other, inner);
  if (densest === inner || inner === undefined || densest === undefined) return filled(axes, ones, most);
  const side = Math.floor(Math.sqrt(most));
  const square = axes.map((axis) => axis === inner || axis === densest ? Math.min(axis.extent, side) : 1);
  return filled(axes, square, most);
}

/** Extends a box along the last axis, then along those before it, as far as there is room. */
function filled(axes: readonly MoveAxis[], least: readonly number[], most: number): number[] {
  const box = [...least];
  for (let i = axes.length - 1; i >= 0; i--) {
    const others = box.reduce((all, extent, axis) => axis === i ? all : all * extent, 1);
    box[i] = Math.max(box[i] ?? 1, Math.min(axes[i]?.extent ?? 1, Math.floor(most / others)));
  }
  return box;
}

// law copy/isRun: copy/conversion_plan, copy/host_conversion
/** Whether the elements of a box of a shape are contiguous, in the order of the axes. */
export function isRun(axes: readonly MoveAxis[], shape: readonly number[], side: "to" | "from", size: number): boolean {
  let step = size;
  for (let i = axes.length - 1; i >= 0; i--) {
    const extent = shape[i] ?? 1;
    if (extent > 1 && axes[i]?.[side] !== step) return false;
    step *= extent;
  }
  return true;
}
