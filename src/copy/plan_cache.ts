/**
 * A cache of the plans of earlier copies, found by what the two layouts say rather than by the objects: programs slice
 * their arrays anew for each copy, and planning takes twenty times as long as moving a few elements of host memory.
 *
 * A plan does not depend on where the first elements lie: slices of one array that differ only in that share a plan.
 *
 * @module
 */
import type { StridedLayout } from "../layout/mod.ts";

/** A plan, and everything that it depends on. */
interface Cached<Plan> {
  /** Of two layouts of one shape. */
  readonly source: StridedLayout;
  readonly destination: StridedLayout;
  readonly kind: number;
  readonly plan: Plan;
}

/** Number of sets of two places each: two copies that a program makes in turn may fall into the same set. */
const sets = 256;

// law copy/PlanCache: copy/plan_cache
/** Plans of one form. It holds at most 512. */
export class PlanCache<Plan> {
  readonly #cached: (Cached<Plan> | undefined)[] = Array.from({ length: 2 * sets });
  /** The one found last: the same two arrays, or slices like them, are often copied repeatedly. */
  #last: Cached<Plan> | undefined;

  /**
   * Finds the plan of a copy between two layouts of one shape.
   *
   * @param kind what else the plan depends on, as a number: the size of the elements, or the types that are converted,
   *   and on a device, how the first elements are aligned and whether kernels can reach them
   */
  find(source: StridedLayout, destination: StridedLayout, kind: number): Plan | null {
    const last = this.#last;
    if (last !== undefined && isFor(last, source, destination, kind)) return last.plan;
    const place = placeOf(source, destination, kind);
    const newer = this.#cached[place];
    const found = newer !== undefined && isFor(newer, source, destination, kind) ? newer : this.#cached[place + 1];
    if (found === undefined || found !== newer && !isFor(found, source, destination, kind)) return null;
    this.#last = found;
    return found.plan;
  }

  /** Caches a plan, in the place of the older of two. Same parameters as {@linkcode PlanCache.find}. */
  add(source: StridedLayout, destination: StridedLayout, kind: number, plan: Plan): void {
    const place = placeOf(source, destination, kind);
    this.#cached[place + 1] = this.#cached[place];
    this.#cached[place] = { source, destination, kind, plan };
  }
}

/** Whether a cached plan is for these layouts, wherever their first elements lie. */
function isFor(cached: Cached<unknown>, source: StridedLayout, destination: StridedLayout, kind: number): boolean {
  if (cached.kind !== kind) return false;
  if (cached.source === source && cached.destination === destination) return true;
  const { shape, strides: to } = destination;
  const { strides: from } = source;
  const { shape: knownShape, strides: knownTo } = cached.destination;
  const { strides: knownFrom } = cached.source;
  if (shape.length !== knownShape.length) return false;
  for (let axis = 0; axis < shape.length; axis++) {
    if (shape[axis] !== knownShape[axis]) return false;
    if (to[axis] !== knownTo[axis] || from[axis] !== knownFrom[axis]) return false;
  }
  return true;
}

/** The first place of the set for a copy. */
function placeOf({ strides: from }: StridedLayout, { shape, strides: to }: StridedLayout, kind: number): number {
  let hash = kind | 0;
  for (let axis = 0; axis < shape.length; axis++) {
    hash = Math.imul(hash, 31) + (shape[axis] ?? 0) | 0;
    hash = Math.imul(hash, 31) + (to[axis] ?? 0) | 0;
    hash = Math.imul(hash, 31) + (from[axis] ?? 0) | 0;
  }
  return 2 * ((hash ^ hash >>> 8 ^ hash >>> 16) & sets - 1);
}
