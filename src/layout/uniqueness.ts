import { at, type Shape } from "./shape.ts";

/**
 * How many combinations of steps the search below may try. Layouts that people make need none or a handful; an
 * adversarial one must not be able to hang the caller.
 */
const MAX_STEPS = 10_000;

// law layout/isNested: layout/strided_layout, layout/strided_layout_oracle, layout/subbyte,
//   layout/strided_layout_errors, layout/strided_layout_facts
/**
 * Whether every axis steps over everything the axes after it reach, so that no two elements can meet.
 *
 * True settles uniqueness; false does not: (3, 2) with strides (2, 3) fails here and is unique all the same.
 *
 * @param order the axes from the largest stride to the smallest
 */
export function isNested(shape: Shape, strides: readonly number[], order: readonly number[]): boolean {
  let reach = 0;
  for (let position = order.length - 1; position >= 0; position--) {
    const axis = at(order, position);
    const extent = at(shape, axis);
    if (extent === 1) continue;
    const stride = Math.abs(at(strides, axis));
    if (stride <= reach) return false;
    reach += stride * (extent - 1);
  }
  return true;
}

/**
 * As {@linkcode isNested} for axes that already stand in C order: the common case, which then needs no sorting. One
 * function for both is 12% slower in Deno where the order is given.
 */
export function isNestedRowMajor(shape: Shape, strides: readonly number[]): boolean {
  let reach = 0;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    const extent = at(shape, axis);
    if (extent === 1) continue;
    const stride = Math.abs(at(strides, axis));
    if (stride <= reach) return false;
    reach += stride * (extent - 1);
  }
  return true;
}

// law layout/hasNoCollision: layout/strided_layout, layout/strided_layout_oracle, layout/subbyte,
//   layout/strided_layout_errors, layout/strided_layout_facts
/**
 * Whether no two indices of a layout that is not nested lead to the same offset.
 *
 * Two indices meet exactly if their difference d, |d[i]| < shape[i], is not zero and sum(d[i] * strides[i]) is.
 * Counting rules most layouts out, two axes are decided by a division, and the rest is a search for d that is cut off
 * by what the remaining axes can reach and by their common divisor. If the search grows beyond a fixed number of steps
 * the answer is false: this function may miss a unique layout, but never calls one unique that is not.
 *
 * @param shape extents, none of them 0
 * @param order the axes from the largest stride to the smallest
 * @param span how many offsets there are from the smallest to the largest, both included
 */
export function hasNoCollision(
  shape: Shape,
  strides: readonly number[],
  order: readonly number[],
  volume: number,
  span: number,
): boolean {
  if (volume > span) return false; // which leaves a stride of 0 only beside another, whose pair it fails in
  const steps: number[] = [];
  const limits: number[] = [];
  for (const axis of order) {
    const extent = at(shape, axis);
    if (extent === 1) continue;
    const stride = Math.abs(at(strides, axis));
    steps.push(stride);
    limits.push(extent - 1);
  }
  for (let first = 0; first < steps.length; first++) {
    for (let second = first + 1; second < steps.length; second++) {
      // Two axes alone meet first after the least common multiple of their strides.
      const divisor = gcd(at(steps, first), at(steps, second));
      if (at(steps, second) / divisor <= at(limits, first) && at(steps, first) / divisor <= at(limits, second)) {
        return false;
      }
    }
  }
  return steps.length <= 2 || new CollisionSearch(steps, limits).isFree();
}

/** Looks for steps along several axes, not all zero, that cancel each other out. */
class CollisionSearch {
  readonly #steps: readonly number[];
  readonly #limits: readonly number[];
  /** What the axes from i on reach together, and the divisor of everything they reach. */
  readonly #reach: number[];
  readonly #divisor: number[];
  #stepsLeft: number = MAX_STEPS;

  constructor(steps: readonly number[], limits: readonly number[]) {
    this.#steps = steps;
    this.#limits = limits;
    this.#reach = [...steps, 0];
    this.#divisor = [...steps, 0];
    let reach = 0;
    let divisor = 0;
    for (let axis = steps.length - 1; axis >= 0; axis--) {
      reach += at(steps, axis) * at(limits, axis);
      divisor = gcd(at(steps, axis), divisor);
      this.#reach[axis] = reach;
      this.#divisor[axis] = divisor;
    }
  }

  /** Whether it is certain that no such steps exist. */
  isFree(): boolean {
    return !this.#meets(0, 0);
  }

  // law layout/CollisionSearch.meets: layout/strided_layout, layout/strided_layout_oracle, layout/subbyte,
  //   layout/strided_layout_errors, layout/strided_layout_facts
  /**
   * Whether the axes from `axis` on can, or out of steps might, cancel `rest`.
   *
   * @param hasMoved whether an earlier axis took a step; nothing taken at all is no meeting
   */
  #meets(axis: number, rest: number, hasMoved = false): boolean {
    if (axis === this.#steps.length) return hasMoved && rest === 0;
    const step = at(this.#steps, axis);
    const limit = at(this.#limits, axis);
    const reach = at(this.#reach, axis + 1);
    const divisor = at(this.#divisor, axis + 1);
    // The later axes must be able to bring rest + taken * step back to zero. A difference and its negative are the same
    // meeting, so the first step that is not zero may be taken forwards only.
    const least = !hasMoved ? 0 : Math.max(-limit, Math.ceil((-reach - rest) / step));
    const most = Math.min(limit, Math.floor((reach - rest) / step));
    for (let taken = least; taken <= most; taken++) {
      if (--this.#stepsLeft < 0) return true;
      const left = rest + taken * step;
      const isReachable = divisor === 0 ? left === 0 : left % divisor === 0;
      if (isReachable && this.#meets(axis + 1, left, hasMoved || taken !== 0)) return true;
    }
    return false;
  }
}

/** The greatest common divisor of two non-negative integers; that of 0 and n is n. */
export function gcd(left: number, right: number): number {
  while (right !== 0) {
    const rest = left % right;
    left = right;
    right = rest;
  }
  return left;
}
