/**
 * A view as text, as NumPy prints arrays: nested brackets, lines of at most 75 characters, and only the corners of
 * arrays of more than 1000 elements.
 *
 * @module
 */
import { type ArrayParts, checkOpen } from "../copy/mod.ts";
import { enqueueCopy } from "../device/mod.ts";
import { noteHostAccess } from "../driver/mod.ts";
import { HostMemoryResource, partOf } from "../memory/mod.ts";
import type { Scalar } from "../layout/mod.ts";
import { formatOf } from "./number_format.ts";
import { hostWaits, hostWaitsForCopy } from "../order/mod.ts";

/** Arrays of more elements than this are elided. */
const THRESHOLD = 1000;
/** How many elements of an elided axis are printed at either end. */
const EDGE = 3;
const LINE_WIDTH = 75;

/**
 * Prints a view. Device memory is copied first, only the elements that are printed; the call waits for its home stream.
 *
 * @param most arrays of more elements are elided to their corners
 */
export function print(view: ArrayParts, most: number = THRESHOLD): string {
  const { layout, dtype } = view;
  const lanes = dtype.lanes === 1 ? [] : [dtype.lanes]; // printed as an extra axis
  const isElided = layout.volume * dtype.lanes > most;
  const format = formatOf(dtype);
  checkOpen(view);
  if (layout.volume === 0) return "[]";
  const shown = view.layout.shape.map((extent) => indices(extent, isElided));
  const scalars = readElements(view, offsetsOf(view, shown));
  const [only] = scalars;
  if (layout.ndim + lanes.length === 0) return only === undefined ? "" : format.alone(only);
  const counts = [...shown.map(({ length }) => length), ...lanes];
  const gaps = [...view.layout.shape.map((extent) => isElided && extent > 2 * EDGE), ...lanes.map(() => false)];
  return bracketed(format.together(scalars), counts, gaps);
}

/** How many rows of the last axis are printed: all of them, or those of the corners. */
export function rowsOf({ layout: { shape } }: ArrayParts, isElided: boolean): number {
  return shape.slice(0, -1).reduce((rows, extent) => rows * (isElided ? Math.min(extent, 2 * EDGE + 1) : extent), 1);
}

/** Prints the first and the last elements, in C order, on one line. */
export function printEnds(view: ArrayParts): string {
  const { layout, dtype, offset } = view;
  const { volume, shape, strides, sliceOffset, itemsize } = layout;
  const isElided = volume > 2 * EDGE;
  const places = Array.from(
    { length: Math.min(volume, 2 * EDGE) },
    (_, i) => i < EDGE || !isElided ? i : volume + i - 2 * EDGE,
  );
  const offsets = places.map((place) => {
    let rest = place;
    let element = sliceOffset;
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      const extent = shape[axis] ?? 1;
      element += (rest % extent) * (strides[axis] ?? 0);
      rest = Math.floor(rest / extent);
    }
    return offset + element * itemsize;
  });
  const words = formatOf(dtype).together(readElements(view, offsets)).map((word) => word.trim());
  const { lanes } = dtype;
  const elements = lanes === 1
    ? words
    : offsets.map((_, at) => `[${words.slice(at * lanes, (at + 1) * lanes).join(" ")}]`);
  if (isElided) elements.splice(EDGE, 0, "...");
  return `[${elements.join(" ")}]`;
}

/** Which elements of an axis are printed. */
function indices(extent: number, isElided: boolean): number[] {
  if (!isElided || extent <= 2 * EDGE) return Array.from({ length: extent }, (_, i) => i);
  return Array.from({ length: 2 * EDGE }, (_, i) => i < EDGE ? i : extent - 2 * EDGE + i);
}

/** Byte offset in the buffer of each printed element, in C order. */
function offsetsOf({ layout, offset }: ArrayParts, shown: readonly (readonly number[])[]): number[] {
  let elements = [layout.sliceOffset];
  shown.forEach((places, axis) => {
    const stride = layout.strides[axis] ?? 0;
    elements = elements.flatMap((start) => places.map((place) => start + place * stride));
  });
  return elements.map((element) => offset + element * layout.itemsize);
}

// law view/readElements: view/print, copy/page_locked
/** The scalars of the elements at these offsets. */
function readElements(view: ArrayParts, offsets: readonly number[]): Scalar[] {
  const { dtype, buffer } = view;
  const { device } = buffer;
  const read = (memory: DataView, at: number): readonly Scalar[] => {
    const value = dtype.read(memory, at);
    return Array.isArray(value) ? value : [value as Scalar]; // only lanes are read as an array
  };
  if (device === null) {
    hostWaits(buffer); // page-locked memory has a home stream
    const scalars: Scalar[] = [];
    for (const at of offsets) { // in a callback of an array's method a report would name that as the caller
      const start = Math.floor(at);
      const size = Math.ceil(at + dtype.itemsize) - start;
      noteHostAccess(buffer.ptr + BigInt(start), size, false, "view.toString()");
      scalars.push(...read(partOf(buffer, start, size), at - start));
    }
    return scalars;
  }
  const runs = runsOf(offsets, dtype.itemsize);
  const size = runs.reduce((sum, { start, end }) => sum + end - start, 0);
  using staging = new HostMemoryResource().allocate(size);
  const stream = buffer.stream ?? device.defaultStream;
  const places = new Map<number, number>();
  let used = 0;
  try {
    for (const { start, end, members } of runs) {
      enqueueCopy(stream, staging.ptr + BigInt(used), buffer.ptr + BigInt(start), end - start, "DtoH");
      for (const at of members) places.set(at, used + at - start);
      used += end - start;
    }
    hostWaitsForCopy(stream);
  } catch (error) {
    staging.pinUntilPassed(stream); // copies enqueued before the failure still write there
    throw error;
  }
  const bytes = new DataView(staging.bytes().buffer);
  return offsets.flatMap((at) => read(bytes, places.get(at) ?? NaN));
}

/** A byte range covered by one copy, and the elements in it. */
interface Run {
  readonly start: number;
  end: number;
  readonly members: number[];
}

/** Gaps of up to this many bytes are copied, too: that costs less than another copy. */
const SMALL_GAP = 512;

function runsOf(offsets: readonly number[], itemsize: number): Run[] {
  const runs: Run[] = [];
  for (const at of [...offsets].sort((a, b) => a - b)) {
    const [start, end] = [Math.floor(at), Math.ceil(at + itemsize)];
    const last = runs.at(-1);
    if (last !== undefined && start <= last.end + SMALL_GAP) {
      last.end = Math.max(last.end, end);
      last.members.push(at);
    } else runs.push({ start, end, members: [at] });
  }
  return runs;
}

/**
 * Puts words in nested brackets.
 *
 * @param counts words along each axis
 * @param gaps whether words in the middle of an axis are elided
 */
function bracketed(words: readonly string[], counts: readonly number[], gaps: readonly boolean[]): string {
  let next = 0;
  const inner = (axis: number): string => {
    const indent = " ".repeat(axis + 1);
    const isLast = axis === counts.length - 1;
    const items = Array.from({ length: counts[axis] ?? 0 }, () => isLast ? words[next++] ?? "" : inner(axis + 1));
    if (gaps[axis] === true) items.splice(EDGE, 0, "...");
    if (isLast) return `[${wrapped(items, indent, LINE_WIDTH - axis - 1)}]`;
    return `[${items.join("\n".repeat(counts.length - axis - 1) + indent)}]`;
  };
  return inner(0);
}

/** Joins words with spaces and wraps them; every line but the first, which follows a bracket, is indented. */
function wrapped(words: readonly string[], indent: string, width: number): string {
  const lines: string[] = [];
  let line = indent;
  for (const word of words) {
    if (line.length + word.length > width && line.length > indent.length) {
      lines.push(line.trimEnd());
      line = indent;
    }
    line += `${word} `;
  }
  return [...lines, line.slice(0, -1)].join("\n").slice(indent.length);
}
