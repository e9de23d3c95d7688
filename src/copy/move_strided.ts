/**
 * Moves elements between two arrangements in host memory, given as plain numbers: for memory that is not a whole array,
 * such as a part of one that is converted in blocks.
 *
 * @module
 */
import { carryOut, type HostPlace, type ReadyPlan, readyPlan } from "./host_move.ts";
import { planHostCopy } from "./host_plan.ts";

/**
 * Prepares moves that will be made repeatedly.
 *
 * @param toStrides bytes from one element to the next along each axis; any sign
 * @param shape extents, one per axis
 * @param itemsize bytes of an element, 1 or more
 */
export function prepareStrided(
  toStrides: readonly number[],
  fromStrides: readonly number[],
  shape: readonly number[],
  itemsize: number,
): ReadyPlan {
  const axes = shape.map((extent, axis) => ({ extent, to: toStrides[axis] ?? 0, from: fromStrides[axis] ?? 0 }));
  return readyPlan(planHostCopy(axes, itemsize));
}

/** Moves all elements, once. See {@linkcode prepareStrided}; the two must not overlap. */
export function moveStrided(
  to: HostPlace,
  toStrides: readonly number[],
  from: HostPlace,
  fromStrides: readonly number[],
  shape: readonly number[],
  itemsize: number,
): void {
  carryOut(prepareStrided(toStrides, fromStrides, shape, itemsize), to, from);
}

/** Size in bytes of the largest pieces that machine code moves individually. */
const unit = 16;

/**
 * Prepares moves of contiguous bytes.
 *
 * @param isFar whether either side is in no near cache: then the bytes are moved piece by piece, because `memcpy` takes
 *   longer at addresses that are not multiples of 32
 * @returns null if only loops could make the moves
 */
export function prepareRun(bytes: number, isFar: boolean): ReadyPlan | null {
  const isInPieces = isFar && bytes % unit === 0;
  const axes = isInPieces ? [{ extent: bytes / unit, to: unit, from: unit }] : [];
  const span = { start: 0, end: bytes };
  const moves = [{ bytes: isInPieces ? unit : bytes, axes, toOffset: 0, fromOffset: 0 }];
  const ready = readyPlan({ moves, run: bytes, runs: 1, tile: null, isFree: true, to: span, from: span });
  return ready.moves === null ? null : ready;
}
