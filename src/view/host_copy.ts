/**
 * Copies between two layouts in host memory.
 *
 * @module
 */
import { StridedLayout } from "../layout/mod.ts";

/** An array in host memory. */
export interface HostArray {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Where in `bytes` offset 0 of the layout lies. */
  readonly offset: number;
  readonly layout: StridedLayout;
}

/**
 * Copies every element of a source to the element with the same index of a destination of the same shape. The two must
 * not overlap.
 *
 * Axes that are contiguous on both sides are joined first; the innermost run is then one copy of bytes where it is dense
 * on both sides, and a loop over elements where it is not.
 *
 * @throws {RangeError} for packed elements that do not fill whole bytes together
 */
export function copyHost(source: HostArray, destination: HostArray): void {
  if (source.layout.volume === 0) return;
  const { bytes: from } = source;
  const { bytes: to } = destination;
  const [s, d] = [inBytes(source.layout), inBytes(destination.layout)];
  const { itemsize } = s;
  eachRow({ ...source, layout: s }, { ...destination, layout: d }, (sAt, sStep, dAt, dStep, count) => {
    if (sStep === itemsize && dStep === itemsize) return copyRun(from, sAt, to, dAt, count * itemsize);
    for (let i = 0; i < count; i++) copyRun(from, sAt + i * sStep, to, dAt + i * dStep, itemsize);
  });
}

/** Where the elements of a row begin and how far they are apart, on both sides, in bytes. */
export type RowWalker = (sAt: number, sStep: number, dAt: number, dStep: number, count: number) => void;

/**
 * Calls a function for every innermost row of two arrays of one shape, whose elements may differ in size. Axes that are
 * contiguous on both sides are joined first.
 */
export function eachRow(source: HostArray, destination: HostArray, row: RowWalker): void {
  if (source.layout.volume === 0) return;
  const [s, d] = joined(source.layout, destination.layout);
  const { shape } = d;
  const inner = shape.length - 1;
  const [sStep, dStep] = [step(s, inner, 1), step(d, inner, 1)];
  const walk = (axis: number, sAt: number, dAt: number): void => {
    if (axis >= inner) return row(sAt, sStep, dAt, dStep, shape[inner] ?? 1);
    const [sStride, dStride] = [step(s, axis, 0), step(d, axis, 0)];
    for (let i = 0, n = shape[axis] ?? 0; i < n; i++) walk(axis + 1, sAt + i * sStride, dAt + i * dStride);
  };
  walk(0, source.offset + s.sliceOffsetInBytes, destination.offset + d.sliceOffsetInBytes);
}

/** Packed elements are copied by the bytes that they fill. */
function inBytes(layout: StridedLayout): StridedLayout {
  return layout.itemsize < 1 ? layout.repacked(1) : layout;
}

/** Two layouts of one shape, with the axes joined that are contiguous in both. */
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

/** What {@linkcode copyHost} does, in words. */
export function explainHostCopy(source: StridedLayout, destination: StridedLayout): string {
  if (source.volume === 0) return "nothing to copy";
  const [s, d] = joined(inBytes(source), inBytes(destination));
  const inner = d.shape.length - 1;
  const isRun = [s, d].every((layout) => step(layout, inner, 1) === layout.itemsize);
  if (!isRun) return "element by element by the host";
  const run = (d.shape[inner] ?? 1) * d.itemsize;
  return run === d.volume * d.itemsize ? `one copy of ${run} bytes by the host` : `runs of ${run} bytes by the host`;
}

/** The same elements in memory of their own, in C order. */
export function denseCopy(source: HostArray): HostArray {
  const layout = StridedLayout.dense(source.layout.shape, source.layout.itemsize);
  const copy = { bytes: new Uint8Array(Math.ceil(layout.volume * layout.itemsize)), offset: 0, layout };
  copyHost(source, copy);
  return copy;
}

/** Below this many bytes a loop is faster than `TypedArray.set`, which makes a view first. */
const shortRun = 64;

function copyRun(from: Uint8Array, sAt: number, to: Uint8Array, dAt: number, length: number): void {
  if (length >= shortRun) to.set(from.subarray(sAt, sAt + length), dAt);
  else for (let i = 0; i < length; i++) to[dAt + i] = from[sAt + i] ?? 0;
}
