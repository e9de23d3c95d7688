import type { OptionNames } from "./options.ts";
import { at, type Shape } from "./shape.ts";
import { formatShape, notInteger, show } from "./show.ts";
import type { StridedLayout } from "./strided_layout.ts";
import { gcd } from "./uniqueness.ts";

/** Options of `StridedLayout.repacked`. */
export interface RepackOptions {
  /**
   * Address of offset 0, which must be aligned for the larger elements. Default: none, which is aligned to anything.
   */
  dataPtr?: bigint;
  /** The axis along which elements are joined or split. Default: -1, the last. */
  axis?: number;
  /** Whether to keep an axis that joining reduces to extent 1. Default: true. */
  keepDim?: boolean;
}

/** The names of {@linkcode RepackOptions}. */
export const repackOptionNames: OptionNames<RepackOptions> = { dataPtr: true, axis: true, keepDim: true };

/** Options of `StridedLayout.maxCompatibleItemsize`. */
export interface CompatibleItemsizeOptions {
  /** The preferred size in bytes; the result divides it. Default: 16, the widest load of a GPU. */
  max?: number;
  /** Address of offset 0; the result divides it. Default: none, which is aligned to anything. */
  dataPtr?: bigint;
  /** The axis along which elements would be joined. Default: -1, the last. */
  axis?: number;
}

/** The names of {@linkcode CompatibleItemsizeOptions}. */
export const compatibleItemsizeOptionNames: OptionNames<CompatibleItemsizeOptions> = {
  max: true,
  dataPtr: true,
  axis: true,
};

/** Throws a TypeError or RangeError unless a value is a valid address. */
export function checkDataPtr(dataPtr: bigint | undefined): void {
  if (dataPtr === undefined) return;
  if (typeof dataPtr !== "bigint") throw new TypeError(`Expected dataPtr to be a bigint, got ${show(dataPtr)}`);
  if (dataPtr < 0n) throw new RangeError(`Expected dataPtr to be an address, got ${show(dataPtr)}`);
}

/**
 * Throws unless a value is a valid element size: a positive number of bytes, or below one byte a number of eighths (a
 * packed sub-byte element: 0.5 for four bits).
 */
export function checkItemsize(itemsize: number): void {
  if (isItemsize(itemsize)) return;
  throw notInteger("itemsize", "a positive integer, or below 1 a multiple of 1/8", itemsize);
}

function isItemsize(value: number): boolean {
  if (Number.isSafeInteger(value)) return value > 0;
  return typeof value === "number" && value > 0 && value < 1 && Number.isInteger(value * 8);
}

/** The part of a layout that {@linkcode packInto} and {@linkcode unpackInto} need. */
type PackableLayout = Pick<StridedLayout, "shape" | "strides" | "itemsize" | "sliceOffset">;

/**
 * Throws unless one size is a multiple of the other: otherwise bytes would be gained or lost.
 *
 * @throws {RangeError}
 */
export function checkSizes(itemsize: number, newItemsize: number): void {
  if (newItemsize % itemsize === 0 || itemsize % newItemsize === 0) return;
  throw new RangeError(
    `Cannot repack elements of ${itemsize} into elements of ${newItemsize} bytes: the number of bytes would change. ` +
      "Choose a multiple or a divisor; maxCompatibleItemsize() finds the largest",
  );
}

// law layout/isAligned: layout/strided_layout, layout/strided_layout_oracle, layout/subbyte,
//   layout/strided_layout_errors, layout/strided_layout_facts
/**
 * Whether an address is a multiple of an element's size. Computed in bits, so that it also works for packed sub-byte
 * elements.
 */
function isAligned(dataPtr: bigint | undefined, itemsize: number): boolean {
  return dataPtr === undefined || (dataPtr * 8n) % BigInt(itemsize * 8) === 0n;
}

// law layout/packInto: layout/strided_layout, layout/strided_layout_oracle, layout/subbyte,
//   layout/strided_layout_errors, layout/strided_layout_facts
/**
 * Joins each group of `ratio` neighbours along an axis into one element.
 *
 * @param ratio how many, an integer above 1
 * @param dataPtr the address of offset 0, which must be aligned to the new size (undefined is aligned to anything)
 * @param newShape receives the extents
 * @param newStrides receives the strides
 * @throws {RangeError} if the neighbours are not adjacent in memory, or a boundary would fall inside a new element
 */
export function packInto(
  layout: PackableLayout,
  ratio: number,
  axis: number,
  dataPtr: bigint | undefined,
  newShape: number[],
  newStrides: number[],
): void {
  const { shape, strides, itemsize, sliceOffset } = layout;
  checkAdjacent(shape, strides, axis);
  if (at(shape, axis) % ratio !== 0) {
    throw cannotPack(layout, ratio, axis, `the extent ${at(shape, axis)} is not a multiple of ${ratio}`);
  }
  if (sliceOffset % ratio !== 0) {
    throw cannotPack(layout, ratio, axis, `the slice offset ${sliceOffset} is not a multiple of ${ratio}`);
  }
  if (!isAligned(dataPtr, itemsize * ratio)) {
    throw cannotPack(
      layout,
      ratio,
      axis,
      `the data pointer ${show(dataPtr)} is not aligned to ${itemsize * ratio} bytes`,
    );
  }
  for (let other = 0; other < shape.length; other++) {
    const stride = at(strides, other);
    newShape[other] = at(shape, other);
    if (other === axis) continue;
    if (stride % ratio === 0) newStrides[other] = stride / ratio;
    // The stride of an axis of extent 1 is never used: any value is right.
    else if (at(shape, other) === 1) newStrides[other] = Math.trunc(stride / ratio) + 0;
    else throw cannotPack(layout, ratio, axis, `the stride ${stride} of axis ${other} is not a multiple of ${ratio}`);
  }
  newShape[axis] = at(shape, axis) / ratio;
  newStrides[axis] = 1;
}

/**
 * Splits every element into `parts` neighbours along an axis.
 *
 * @param parts how many, an integer above 1
 * @param newShape receives the extents
 * @param newStrides receives the strides
 * @throws {RangeError} if the elements along the axis are not adjacent in memory
 */
export function unpackInto(
  { shape, strides }: PackableLayout,
  parts: number,
  axis: number,
  newShape: number[],
  newStrides: number[],
): void {
  checkAdjacent(shape, strides, axis);
  for (let other = 0; other < shape.length; other++) {
    newShape[other] = at(shape, other);
    newStrides[other] = at(strides, other) * parts;
  }
  newShape[axis] = at(shape, axis) * parts;
  newStrides[axis] = 1;
}

// law layout/largestPack: layout/strided_layout, layout/strided_layout_oracle, layout/subbyte,
//   layout/strided_layout_errors, layout/strided_layout_facts
/**
 * The largest number of elements along an axis that {@linkcode packInto} can join, among the divisors of `most`.
 *
 * @param most the upper limit, a positive integer
 * @returns at least 1
 */
export function largestPack(
  { shape, strides, itemsize, sliceOffset }: PackableLayout,
  most: number,
  axis: number,
  dataPtr: bigint | undefined,
): number {
  const extent = at(shape, axis);
  if (extent === 0 || (extent > 1 && at(strides, axis) !== 1)) return 1;
  let ratio = gcd(gcd(most, extent), Math.abs(sliceOffset));
  for (let other = 0; other < shape.length; other++) {
    if (other !== axis && at(shape, other) !== 1) ratio = gcd(ratio, Math.abs(at(strides, other)));
  }
  if (!isAligned(dataPtr, itemsize)) return 1;
  if (dataPtr !== undefined) {
    const elementsBefore = (dataPtr * 8n) / BigInt(itemsize * 8);
    ratio = gcd(ratio, Number(elementsBefore % BigInt(ratio)));
  }
  // Joined sub-byte elements make a valid element only if they fill whole bytes, or less than one.
  while (!isItemsize(itemsize * ratio)) ratio = nextDivisor(ratio);
  return ratio;
}

/** The largest proper divisor of a number. */
function nextDivisor(value: number): number {
  let factor = 2;
  while (value % factor !== 0) factor++;
  return value / factor;
}

function cannotPack(
  { shape, strides, itemsize }: PackableLayout,
  ratio: number,
  axis: number,
  reason: string,
): RangeError {
  return new RangeError(
    `Cannot pack ${ratio} elements of ${itemsize} bytes along axis ${axis} of ${formatShape(shape)} with strides ${
      formatShape(strides)
    }: ${reason}`,
  );
}

// law layout/checkAdjacent: layout/strided_layout_oracle
function checkAdjacent(shape: Shape, strides: readonly number[], axis: number): void {
  const extent = at(shape, axis);
  if (extent === 0) throw new RangeError(`Cannot repack along axis ${axis} of ${formatShape(shape)}: its extent is 0`);
  if (extent > 1 && at(strides, axis) !== 1) {
    const order = JSON.stringify([...shape.keys()].filter((other) => other !== axis).concat(axis));
    const call = axis === shape.length - 1 ? "contiguous()" : `copy({ order: ${order} })`;
    const copy = shape.includes(0) ? "" : `, or copy it first: ${call} of a view lays it out as toDense(${order})`;
    throw new RangeError(
      `Cannot repack along axis ${axis} of ${formatShape(shape)} with strides ${formatShape(strides)}: ` +
        `its stride must be 1. Choose another axis${copy}.`,
    );
  }
}
