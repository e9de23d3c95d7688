/**
 * Arrays in host memory for tests: layouts of a given shape, and the meaning of a copy, spelled out byte by byte.
 *
 * @module
 */
import { slice, StridedLayout } from "../../src/layout/mod.ts";
import { gridOf, permutations } from "./strided_oracle.ts";
import { fc } from "./property.ts";

/** Memory and a layout in it. */
export interface Placed {
  readonly layout: StridedLayout;
  /** Bytes from the start of the memory to offset 0 of the layout. */
  readonly offset: number;
  /** Bytes of memory: as many as the elements need, and some more. */
  readonly size: number;
}

/** The byte at which each element begins, in C order. */
export function positionsOf({ layout, offset }: Placed): number[] {
  return gridOf(layout).values.map((element) => offset + element * layout.itemsize);
}

/** What `destination` must hold after every element of the source has been copied, one byte at a time. */
export function copiedByHand(source: Placed, from: Uint8Array, destination: Placed, to: Uint8Array): Uint8Array {
  const result = to.slice();
  const sources = positionsOf(source);
  positionsOf(destination).forEach((start, place) => {
    for (let byte = 0; byte < destination.layout.itemsize; byte++) {
      result[start + byte] = from[(sources[place] ?? NaN) + byte] ?? NaN;
    }
  });
  return result;
}

/** Layouts of one shape in which no two elements overlap: axes in any order, either direction, with or without gaps. */
export function apart(shape: readonly number[], itemsize: number): fc.Arbitrary<Placed> {
  const perAxis = <T>(one: fc.Arbitrary<T>) => fc.array(one, { minLength: shape.length, maxLength: shape.length });
  return fc.record({
    order: permutations(shape.length),
    gaps: perAxis(fc.constantFrom(0, 0, 0, 1, 3)),
    signs: perAxis(fc.constantFrom(1, 1, 1, -1)),
    cut: fc.constantFrom(0, 0, 1, 2),
    slack: fc.record({ before: fc.nat(20), after: fc.nat(20) }),
  }).map(({ order, gaps, signs, cut, slack }) => {
    // Built too long by `cut` on every axis, then sliced to size, so that slice offsets are covered as well.
    const longer = shape.map((extent) => extent + cut);
    const strides = shape.map(() => 0);
    let stride = 1;
    for (const axis of order) {
      stride += gaps[axis] ?? 0;
      strides[axis] = stride * (signs[axis] ?? 1) + 0;
      stride *= Math.max(longer[axis] ?? 1, 1);
    }
    const layout = new StridedLayout(longer, strides, itemsize).sliced(...shape.map(() => slice(cut)));
    return place(layout, slack);
  });
}

/** Layouts of one shape whose elements may overlap: repeated, overlapping, or disjoint. */
export function meeting(shape: readonly number[], itemsize: number): fc.Arbitrary<Placed> {
  const strides = fc.array(fc.integer({ min: -6, max: 6 }), { minLength: shape.length, maxLength: shape.length });
  const slack = fc.record({ before: fc.nat(20), after: fc.nat(20) });
  return fc.tuple(strides, slack).map(([steps, room]) => place(new StridedLayout(shape, steps, itemsize), room));
}

/** The same layout again: another object, whose first element lies some elements further on. */
export function anew({ layout, offset, size }: Placed, elements: number): Placed {
  const { shape, strides, itemsize, sliceOffset } = layout;
  const moved = { shape, strides, itemsize, sliceOffset: sliceOffset + elements };
  return { layout: StridedLayout.from(moved), offset, size: size + elements * itemsize };
}

function place(layout: StridedLayout, slack: { readonly before: number; readonly after: number }): Placed {
  const { values } = gridOf(layout);
  const first = Math.min(0, ...values) * layout.itemsize;
  const end = (Math.max(-1, ...values) + 1) * layout.itemsize;
  return { layout, offset: slack.before - first, size: slack.before - first + end + slack.after };
}

/** `length` bytes, all different from their neighbours, and different for each seed. */
export function pattern(length: number, seed: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(new ArrayBuffer(length));
  let state = (seed * 2654435761) >>> 0;
  for (let i = 0; i < length; i++) { // a loop, for many properties spend most of their time here
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    bytes[i] = state >>> 24;
  }
  return bytes;
}
