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
 * Axes that are contiguous on both sides are joined first; the innermost run is then one copy of bytes where it is
 * dense on both sides, and a loop over elements where it is not. Of a byte that packed elements share with others only
 * their own bits are written.
 */
export function copyHost(source: HostArray, destination: HostArray): void {
  if (source.layout.volume === 0) return;
  const { bytes: from } = source;
  const { bytes: to } = destination;
  const { itemsize } = source.layout;
  const move = itemsize < 1 ? copyBits : copyRun;
  eachRow(source, destination, (sAt, sStep, dAt, dStep, count) => {
    if (sStep === itemsize && dStep === itemsize) return move(from, sAt, to, dAt, count * itemsize);
    for (let i = 0; i < count; i++) move(from, sAt + i * sStep, to, dAt + i * dStep, itemsize);
  });
}

/** Where the elements of a row begin and how far they are apart, on both sides, in bytes: fractions for packed ones. */
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
  const [s, d] = joined(source, destination);
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

// law copy/copyBits: copy/packed_copy
/** The same for bits that may begin and end inside a byte; the length too is in bytes. */
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
    const count = Math.min(left, 8 - before); // as many as go into one byte
    const [read, written] = [(source - skipped) / 8, (target - before) / 8];
    const pair = (from[read] ?? 0) | (from[read + 1] ?? 0) << 8; // of the second byte bits that may not be needed
    const mask = (1 << count) - 1 << before;
    to[written] = (to[written] ?? 0) & ~mask | pair >> skipped << before & mask;
    [source, target, left] = [source + count, target + count, left - count];
  }
}
