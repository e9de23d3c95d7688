/**
 * Copies between two layouts in host memory: `host_plan.ts` plans the moves, and `host_move.ts` chooses machine code or
 * loops for each.
 *
 * @module
 */
import { StridedLayout } from "../layout/mod.ts";
import { canMoveNatively } from "../native/mod.ts";
import { carryOut, type HostPlace, type ReadyPlan, readyPlan } from "./host_move.ts";
import { threadsFor } from "./host_parts.ts";
import { type Bytes, type HostPlan, planHostCopy } from "./host_plan.ts";
import { PlanCache } from "./plan_cache.ts";

/** An array in host memory, whose place is that of the layout's offset 0. */
export interface HostArray extends HostPlace {
  readonly layout: StridedLayout;
}

// law copy/copyHost: copy/host_copy
/**
 * Copies every element of a source to the element with the same index of a destination of the same shape. The two must
 * not overlap.
 *
 * Whole bytes are moved by a plan (`host_plan.ts`). For packed elements, axes that are contiguous on both sides are
 * joined, and runs of bits copied; in a byte shared with other elements only their own bits are written.
 *
 * @throws {RangeError} if not all elements are in the memory
 */
export function copyHost(source: HostArray, destination: HostArray): void {
  const ready = readyFor(source.layout, destination.layout);
  if (ready === null) copyBitByBit(source, destination);
  else carryOut(ready, destination, source, firstOf(source.layout, destination.layout));
}

const plans = new PlanCache<ReadyPlan>();

/** @returns a plan, wherever the first elements lie; null for packed elements */
export function readyFor(source: StridedLayout, destination: StridedLayout): ReadyPlan | null {
  const { itemsize } = source;
  if (itemsize < 1) return null;
  const known = plans.find(source, destination, itemsize);
  if (known !== null) return known;
  const ready = readyPlan(planFor(source, destination));
  plans.add(source, destination, itemsize, ready);
  return ready;
}

/** Positions of the first elements, in bytes from offset 0 of the layouts. */
export function firstOf(source: StridedLayout, destination: StridedLayout): Bytes {
  return { to: destination.sliceOffsetInBytes, from: source.sliceOffsetInBytes };
}

function planFor(source: StridedLayout, destination: StridedLayout): HostPlan {
  const { shape, itemsize } = destination;
  const axes = shape.map((extent, axis) => ({
    extent,
    to: step(destination, axis, 0),
    from: step(source, axis, 0),
  }));
  return planHostCopy(axes, itemsize);
}

/** Copies packed elements, bit by bit where necessary. Axes that are contiguous on both sides are joined first. */
function copyBitByBit(source: HostArray, destination: HostArray): void {
  const { bytes: from } = source;
  const { bytes: to } = destination;
  const { itemsize, volume } = source.layout;
  if (volume === 0) return;
  const [s, d] = joined(source.layout, destination.layout);
  const { shape } = d;
  const inner = shape.length - 1;
  const count = shape[inner] ?? 1;
  const [sStep, dStep] = [step(s, inner, 1), step(d, inner, 1)];
  const isRun = sStep === itemsize && dStep === itemsize;
  const walk = (axis: number, sAt: number, dAt: number): void => {
    if (axis < inner) {
      const [sStride, dStride] = [step(s, axis, 0), step(d, axis, 0)];
      for (let i = 0, n = shape[axis] ?? 0; i < n; i++) walk(axis + 1, sAt + i * sStride, dAt + i * dStride);
    } else if (isRun) copyBits(from, sAt, to, dAt, count * itemsize);
    else for (let i = 0; i < count; i++) copyBits(from, sAt + i * sStep, to, dAt + i * dStep, itemsize);
  };
  walk(0, source.offset + s.sliceOffsetInBytes, destination.offset + d.sliceOffsetInBytes);
}

/** Two layouts of one shape, with axes joined that are contiguous in both. */
function joined(
  source: StridedLayout,
  destination: StridedLayout,
): [source: StridedLayout, destination: StridedLayout] {
  const mask = source.flattenedAxisMask() & destination.flattenedAxisMask();
  return [source.flattened({ mask }), destination.flattened({ mask })];
}

/** Bytes from one element to the next. */
function step({ strides, itemsize }: StridedLayout, axis: number, none: number): number {
  return (strides[axis] ?? none) * itemsize;
}

/** Describes in words what {@linkcode copyHost} does. */
export function explainHostCopy(source: StridedLayout, destination: StridedLayout): string {
  if (source.volume === 0) return "nothing to copy";
  if (source.itemsize < 1) return explainPackedCopy(source, destination);
  const plan = planFor(source, destination);
  const { moves, run, runs, tile } = plan;
  const threads = threadsFor(plan);
  const by = !canMoveNatively() ? "loops" : threads < 2 ? "machine code" : `machine code on ${threads} threads`;
  const [move] = moves;
  if (runs === 1) return `one copy of ${run} bytes by the host, by ${by}`;
  const pieces = move === undefined || move.bytes === run ? "" : `, ${move.bytes} at a time`;
  const tiles = tile === null ? "" : `, in tiles of ${tile.join(" x ")}`;
  return `${runs} runs of ${run} bytes by the host${pieces}${tiles}, by ${by}`;
}

function explainPackedCopy(source: StridedLayout, destination: StridedLayout): string {
  const [s, d] = joined(source, destination);
  const inner = d.shape.length - 1;
  const isRun = [s, d].every((layout) => step(layout, inner, 1) === layout.itemsize);
  if (!isRun) return "element by element by the host";
  const run = (d.shape[inner] ?? 1) * d.itemsize;
  return run === d.volume * d.itemsize ? `one copy of ${run} bytes by the host` : `runs of ${run} bytes by the host`;
}

/** A copy of the elements in separate memory, in C order. */
export function denseCopy(source: HostArray): HostArray {
  const layout = StridedLayout.dense(source.layout.shape, source.layout.itemsize);
  const copy = { bytes: new Uint8Array(Math.ceil(layout.volume * layout.itemsize)), offset: 0, layout };
  copyHost(source, copy);
  return copy;
}

/** Below this many bytes a loop is faster than `TypedArray.set`, which needs a view first. */
const shortRun = 64;

function copyRun(from: Uint8Array, sAt: number, to: Uint8Array, dAt: number, length: number): void {
  if (length >= shortRun) to.set(from.subarray(sAt, sAt + length), dAt);
  else for (let i = 0; i < length; i++) to[dAt + i] = from[sAt + i] ?? 0;
}

// law copy/copyBits: copy/packed_copy
/** As `copyRun`, for bits that may begin and end inside a byte; the length is in bytes, too. */
function copyBits(from: Uint8Array, sAt: number, to: Uint8Array, dAt: number, length: number): void {
  let [source, target, left] = [sAt * 8, dAt * 8, length * 8];
  while (left > 0) {
    const [skipped, before] = [source % 8, target % 8];
    if (skipped === 0 && before === 0 && left >= 8) {
      const whole = Math.floor(left / 8);
      copyRun(from, source / 8, to, target / 8, whole);
      [source, target, left] = [source + whole * 8, target + whole * 8, left - whole * 8];
      continue;
    }
    const count = Math.min(left, 8 - before); // as many as fit into one byte
    const [read, written] = [(source - skipped) / 8, (target - before) / 8];
    const pair = (from[read] ?? 0) | (from[read + 1] ?? 0) << 8; // the second byte's bits may not be needed
    const mask = (1 << count) - 1 << before;
    to[written] = (to[written] ?? 0) & ~mask | pair >> skipped << before & mask;
    [source, target, left] = [source + count, target + count, left - count];
  }
}
