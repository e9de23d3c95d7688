import { normalizePermutation } from "./axes.ts";
import { arrayOf, at, type Shape } from "./shape.ts";
import { show } from "./show.ts";

/**
 * How a dense layout orders its axes in memory: `"C"` last axis fastest, `"F"` first axis fastest, or a permutation of
 * the axes from slowest to fastest.
 */
export type DenseOrder = "C" | "F" | readonly number[];

/**
 * The axes from the largest stride to the smallest, counted without sign; equal strides by falling extent, then by
 * rising axis. A walk through memory nests its loops in this order.
 */
export function sortedAxes(shape: Shape, strides: readonly number[]): number[] {
  const order = arrayOf(shape.length, 0);
  for (let axis = 0; axis < shape.length; axis++) {
    // Insertion sort: axes are few and most layouts are sorted already, which makes it a single pass.
    const stride = Math.abs(at(strides, axis));
    const extent = at(shape, axis);
    let slot = axis;
    while (slot > 0) {
      const before = at(order, slot - 1);
      const strideBefore = Math.abs(at(strides, before));
      if (strideBefore > stride || (strideBefore === stride && at(shape, before) >= extent)) break;
      order[slot] = before;
      slot--;
    }
    order[slot] = axis;
  }
  return order;
}

/**
 * The strides, in elements, of a contiguous layout whose axes lie in memory in the given order.
 *
 * @param order a permutation of the axes as {@linkcode normalizePermutation} returns it, slowest first
 * @returns all 0 if there are no elements
 */
export function denseStrides(shape: Shape, order: readonly number[], volume: number): number[] {
  const strides = arrayOf(shape.length, 0);
  if (volume === 0) return strides;
  let stride = 1;
  for (let position = order.length - 1; position >= 0; position--) {
    const axis = at(order, position);
    strides[axis] = stride;
    stride *= at(shape, axis);
  }
  return strides;
}

/** As {@linkcode denseStrides}, last axis fastest. */
export function rowMajorStrides(shape: Shape, volume: number): number[] {
  const strides = arrayOf(shape.length, 0);
  if (volume === 0) return strides;
  let stride = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    strides[axis] = stride;
    stride *= at(shape, axis);
  }
  return strides;
}

/** As {@linkcode denseStrides}, first axis fastest. */
function columnMajorStrides(shape: Shape, volume: number): number[] {
  const strides = arrayOf(shape.length, 0);
  if (volume === 0) return strides;
  let stride = 1;
  for (let axis = 0; axis < shape.length; axis++) {
    strides[axis] = stride;
    stride *= at(shape, axis);
  }
  return strides;
}

/**
 * The dense strides for an order given by a caller.
 *
 * @throws {TypeError} if the order is neither "C", "F" nor an array
 * @throws {RangeError} if it is not a permutation of the axes
 */
export function stridesInOrder(shape: Shape, order: DenseOrder, volume: number): number[] {
  if (order === "C") return rowMajorStrides(shape, volume);
  if (order === "F") return columnMajorStrides(shape, volume);
  if (!Array.isArray(order)) throw badOrder(order);
  return denseStrides(shape, normalizePermutation(order, shape.length), volume);
}

function badOrder(order: unknown): TypeError {
  return new TypeError(`Expected order to be "C", "F" or a permutation of the axes, got ${show(order)}`);
}

/**
 * Whether the elements, walked in the order of the axes, are contiguous. Axes of extent 1 do not matter: their stride
 * is never used.
 */
export function isRowMajor(shape: Shape, strides: readonly number[]): boolean {
  let expected = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    const extent = at(shape, axis);
    if (extent === 1) continue;
    if (at(strides, axis) !== expected) return false;
    expected *= extent;
  }
  return true;
}

/** As {@linkcode isRowMajor}, with the first axis fastest. */
export function isColumnMajor(shape: Shape, strides: readonly number[]): boolean {
  let expected = 1;
  for (let axis = 0; axis < shape.length; axis++) {
    const extent = at(shape, axis);
    if (extent === 1) continue;
    if (at(strides, axis) !== expected) return false;
    expected *= extent;
  }
  return true;
}

/** As {@linkcode isRowMajor}, with the axes nested in the given order, slowest first. */
export function isDenseInOrder(shape: Shape, strides: readonly number[], order: readonly number[]): boolean {
  let expected = 1;
  for (let position = order.length - 1; position >= 0; position--) {
    const axis = at(order, position);
    const extent = at(shape, axis);
    if (extent === 1) continue;
    if (at(strides, axis) !== expected) return false;
    expected *= extent;
  }
  return true;
}
