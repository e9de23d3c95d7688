/**
 * Plans for conversions in host memory: which boxes of elements are brought together, converted and put where they
 * belong. A pure function decides, from extents and steps alone; `host_conversion.ts` carries it out.
 *
 * @module
 */
import type { MoveAxis } from "../native/mod.ts";
import { elementsAreApart, joinAxes, type Span, spanOf, startOf, turnedForwards } from "./host_plan.ts";

/** What one conversion consists of: boxes along axes. */
export interface ConversionPlan {
  /** In the order of the destination, the last one fastest; steps in bytes. At least one. */
  readonly axes: readonly MoveAxis[];
  /** How long a box is along each axis; the last one along it may be shorter. */
  readonly box: readonly number[];
  /** Where the first element lies on both sides, in bytes from offset 0 of the layouts. */
  readonly toOffset: number;
  readonly fromOffset: number;
  /** Where all elements lie, from offset 0 of the layouts. */
  readonly to: Span;
  readonly from: Span;
}

/** Bytes on both sides. */
export interface Bytes {
  readonly to: number;
  readonly from: number;
}

const origin: Bytes = { to: 0, from: 0 };

// law copy/planConversion: copy/conversion_plan
/**
 * Plans a conversion.
 *
 * @param axes in the order of the elements, the last one fastest; steps in bytes, no extent of 0
 * @param sizes of an element
 * @param most elements of a box
 * @param first where the first element is, in bytes from offset 0
 */
export function planConversion(
  axes: readonly MoveAxis[],
  sizes: Bytes,
  most: number,
  first: Bytes = origin,
): ConversionPlan {
  const longer = axes.filter(({ extent }) => extent > 1);
  const isFree = elementsAreApart(longer, sizes.to);
  // Where elements of the destination meet, the last one in the order of the elements stays: so the order does.
  const forwards = isFree ? longer.map(turnedForwards) : longer;
  const joined = joinAxes(isFree ? forwards.toSorted((one, other) => other.to - one.to) : forwards);
  const ordered = joined.length > 0 ? joined : [{ extent: 1, ...sizes }];
  const box = isFree ? boxOf(ordered, most) : filled(ordered, ordered.map(() => 1), most);
  return {
    axes: ordered,
    box,
    toOffset: first.to + startOf(longer, forwards, "to"),
    fromOffset: first.from + startOf(longer, forwards, "from"),
    to: spanOf(axes, sizes.to, "to", first.to),
    from: spanOf(axes, sizes.from, "from", first.from),
  };
}

/** As wide along the axis on which the source is densest as along the destination's, so that both use up their lines. */
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

/** Longer along the last axis, then along those before it, as far as there is room. */
function filled(axes: readonly MoveAxis[], least: readonly number[], most: number): number[] {
  const box = [...least];
  for (let i = axes.length - 1; i >= 0; i--) {
    const others = box.reduce((all, extent, axis) => axis === i ? all : all * extent, 1);
    box[i] = Math.max(box[i] ?? 1, Math.min(axes[i]?.extent ?? 1, Math.floor(most / others)));
  }
  return box;
}

// law copy/isRun: copy/conversion_plan, copy/host_conversion
/** Whether the elements of a box of a shape follow each other without a gap, in the order of the axes. */
export function isRun(axes: readonly MoveAxis[], shape: readonly number[], side: "to" | "from", size: number): boolean {
  let step = size;
  for (let i = axes.length - 1; i >= 0; i--) {
    const extent = shape[i] ?? 1;
    if (extent > 1 && axes[i]?.[side] !== step) return false;
    step *= extent;
  }
  return true;
}
