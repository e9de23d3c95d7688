/**
 * What a layout means, spelled out: the offset of every element, one by one. Slow and simple, so that it can be
 * trusted.
 */
import { fc } from "./property.ts";
import { Slice, slice, type SliceItem, StridedLayout } from "../../src/layout/mod.ts";

/** An array of offsets: extents, and the values in C order. */
export interface Grid {
  shape: number[];
  values: number[];
}

/** All indices of a shape, in C order. */
export function indicesOf(shape: readonly number[]): number[][] {
  let indices: number[][] = [[]];
  for (const extent of shape) {
    indices = indices.flatMap((index) => Array.from({ length: extent }, (_, last) => [...index, last]));
  }
  return indices;
}

/** The offsets of all elements by the definition. */
export function gridOf(layout: StridedLayout): Grid {
  return makeGrid(layout.shape, layout.strides, layout.sliceOffset);
}

/** The offsets of all elements of a layout that may be invalid. */
export function makeGrid(shape: readonly number[], strides: readonly number[], sliceOffset = 0): Grid {
  const values = indicesOf(shape).map((index) =>
    index.reduce((offset, position, axis) => offset + position * (strides[axis] ?? NaN), sliceOffset)
  );
  return { shape: [...shape], values };
}

/** The value at an index. */
export function valueAt({ shape, values }: Grid, index: readonly number[]): number {
  const place = index.reduce((sum, position, axis) => sum * (shape[axis] ?? NaN) + position, 0);
  return values[place] ?? NaN;
}

/** A grid each of whose elements is looked up in another one. */
export function lookUp(grid: Grid, shape: readonly number[], where: (index: number[]) => number[]): Grid {
  return { shape: [...shape], values: indicesOf(shape).map((index) => valueAt(grid, where(index))) };
}

/** The positions that Python's `range(extent)[start:stop:step]` yields, found by walking. */
export function positions({ start, stop, step }: Slice, extent: number): number[] {
  const bound = (value: number) => value < 0 ? value + extent : value;
  const found: number[] = [];
  // From the end where the step starts to the other, within the axis.
  const from = start === null ? (step > 0 ? 0 : extent - 1) : bound(start);
  const to = stop === null ? (step > 0 ? extent : -1) : bound(stop);
  const first = step > 0 ? Math.max(from, 0) : Math.min(from, extent - 1);
  for (let at = first; step > 0 ? at < to : at > to; at += step) {
    if (at < 0 || at >= extent) break;
    found.push(at);
  }
  return found;
}

/** The expected result of slicing; the items must be in range. */
export function slicedGrid(grid: Grid, items: readonly SliceItem[]): Grid {
  const named = items.filter((item) => typeof item === "number" || item instanceof Slice).length;
  const whole = Array.from({ length: grid.shape.length - named }, () => slice());
  const at = items.indexOf("...");
  const full: readonly SliceItem[] = at < 0
    ? [...items, ...whole]
    : [...items.slice(0, at), ...whole, ...items.slice(at + 1)];
  const shape: number[] = [];
  const pick: ((index: readonly number[]) => number)[] = [];
  let axis = 0;
  for (const item of full) {
    if (item === null) shape.push(1);
    else if (item instanceof Slice) {
      const kept = positions(item, grid.shape[axis++] ?? NaN);
      const place = shape.length;
      shape.push(kept.length);
      pick.push((index) => kept[index[place] ?? NaN] ?? NaN);
    } else if (typeof item === "number") {
      const extent = grid.shape[axis++] ?? NaN;
      pick.push(() => item < 0 ? item + extent : item);
    }
  }
  return lookUp(grid, shape, (index) => pick.map((choose) => choose(index)));
}

/** Strides that yield these offsets in this order, or null if there are none. */
export function stridesFor({ values }: Grid, shape: readonly number[]): number[] | null {
  const reshaped: Grid = { shape: [...shape], values };
  const [origin] = values;
  if (origin === undefined) return shape.map(() => 0);
  const strides = shape.map((extent, axis) => {
    if (extent === 1) return 0;
    return valueAt(reshaped, shape.map((_, other) => other === axis ? 1 : 0)) - origin;
  });
  const again = makeGrid(shape, strides, origin).values;
  return again.every((value, place) => value === values[place]) ? strides : null;
}

/** The most elements that the oracle is asked to enumerate. */
const MAX_VOLUME = 400;

/** Extents whose product the oracle can enumerate; ones and zeros included. */
export function shapes(maxNdim = 5): fc.Arbitrary<number[]> {
  const extent = fc.oneof(
    { weight: 6, arbitrary: fc.integer({ min: 1, max: 4 }) },
    {
      weight: 2,
      arbitrary: fc.constant(1),
    },
    { weight: 1, arbitrary: fc.integer({ min: 5, max: 9 }) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(0, 1, 2),
    },
  );
  return fc.array(extent, { maxLength: maxNdim }).map((extents) => {
    let volume = 1;
    return extents.filter((one) => {
      if (volume * one > MAX_VOLUME) return false;
      volume *= one;
      return true;
    });
  });
}

/** A permutation of `ndim` axes. */
export function permutations(ndim: number): fc.Arbitrary<number[]> {
  const axes = Array.from({ length: ndim }, (_, axis) => axis);
  return fc.shuffledSubarray(axes, { minLength: ndim, maxLength: ndim });
}

/** A slice whose bounds are on the axis, beyond it on either side, or omitted. */
export function slices(extent: number): fc.Arbitrary<Slice> {
  const bound = fc.option(fc.integer({ min: -extent - 2, max: extent + 2 }), { freq: 2 });
  const step = fc.constantFrom(1, 1, 2, 3, -1, -2, extent + 1, null);
  return fc.tuple(bound, bound, step).map(([start, stop, by]) => slice(start, stop, by));
}

/** Arguments that a call of `sliced` accepts for a shape. */
export function sliceItems(shape: readonly number[]): fc.Arbitrary<SliceItem[]> {
  const perAxis = shape.map((extent): fc.Arbitrary<SliceItem> => {
    const some: fc.Arbitrary<SliceItem> = slices(extent);
    return extent === 0 ? some : fc.oneof(
      { weight: 3, arbitrary: some },
      { weight: 1, arbitrary: fc.integer({ min: -extent, max: extent - 1 }) },
    );
  });
  return fc.record({
    items: fc.tuple(...perAxis),
    leftOut: fc.tuple(fc.nat(shape.length), fc.nat(shape.length)),
    added: fc.array(fc.nat(shape.length), { maxLength: 2 }),
  }).map(({ items, leftOut: [from, to], added }) => {
    const chosen: SliceItem[] = [...items];
    // An ellipsis instead of some axes, or of none; or axes left out at the end.
    if (from < to) chosen.splice(from, to - from, "...");
    else if (from === to) chosen.splice(from, chosen.length - from);
    for (const place of added) chosen.splice(place, 0, null);
    return chosen;
  });
}

/** Strides of any sign, which often make elements overlap or leave gaps. */
function anyStrides(shape: readonly number[]): fc.Arbitrary<number[]> {
  return fc.array(fc.integer({ min: -12, max: 12 }), { minLength: shape.length, maxLength: shape.length });
}

/** Nested strides, occasionally with gaps, negative signs and repetition. */
function nestedStrides(shape: readonly number[]): fc.Arbitrary<number[]> {
  return fc.record({
    order: permutations(shape.length),
    gaps: fc.array(fc.constantFrom(0, 0, 0, 0, 1, 2), { minLength: shape.length, maxLength: shape.length }),
    signs: fc.array(fc.constantFrom(1, 1, 1, 1, 1, 0, -1), { minLength: shape.length, maxLength: shape.length }),
  }).map(({ order, gaps, signs }) => {
    const strides = shape.map(() => 0);
    let stride = 1;
    for (const axis of order) {
      stride += gaps[axis] ?? 0;
      strides[axis] = stride * (signs[axis] ?? 1) + 0;
      stride *= Math.max(shape[axis] ?? 1, 1);
    }
    return strides;
  });
}

/** Layouts of all kinds: dense, gapped, overlapping, broadcast, reversed, empty, and parts of such. */
export function layouts(itemsizes: readonly number[] = [1, 2, 4, 8, 3]): fc.Arbitrary<StridedLayout> {
  const whole = shapes().chain((shape) =>
    fc.record({
      strides: fc.oneof(
        { weight: 2, arbitrary: anyStrides(shape) },
        { weight: 4, arbitrary: nestedStrides(shape) },
        { weight: 1, arbitrary: fc.constant(null) },
      ),
      itemsize: fc.constantFrom(...itemsizes),
    }).map(({ strides, itemsize }) => new StridedLayout(shape, strides, itemsize))
  );
  // A packed sub-byte layout can only be cut at whole bytes, which is tested separately.
  const part = whole.filter(({ itemsize }) => itemsize >= 1)
    .chain((layout) => sliceItems(layout.shape).map((items) => layout.sliced(...items)));
  return fc.oneof({ weight: 3, arbitrary: whole }, { weight: 1, arbitrary: part });
}
