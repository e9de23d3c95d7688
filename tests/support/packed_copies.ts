/**
 * Copies of packed elements for tests, and the law that all of them keep, spelled out bit by bit.
 *
 * @module
 */
import { assertEquals } from "@std/assert";
import {
  type Cuda,
  type CudaStream,
  DeviceMemoryResource,
  HostMemoryResource,
  type MemoryBuffer,
  PinnedMemoryResource,
  slice,
  StridedLayout,
} from "../../mod.ts";
import { gridOf, permutations } from "./strided_oracle.ts";
import { fc } from "./property.ts";
import { pattern, type Placed } from "./arrays.ts";
import { laidOut } from "./laid_out.ts";

const bitsOf = {
  bool1_packed: 1,
  uint2_packed: 2,
  int3_packed: 3,
  uint4_packed: 4,
  float4_e2m1fn_packed: 4,
  uint5_packed: 5,
  float6_e2m3fn_packed: 6,
  int7_packed: 7,
} as const;

type Packed = keyof typeof bitsOf;
/** Packed element types, one or more for each bit width. */
export const packedTypes = Object.keys(bitsOf) as readonly Packed[];
const dtypes = fc.constantFrom(...packedTypes);

/** The bit at which each element begins, in C order. */
function bitsIn({ layout, offset }: Placed): number[] {
  return gridOf(layout).values.map((element) => offset * 8 + element * layout.itemsize * 8);
}

/** What `destination` must hold after every bit of every element has been copied, and no other bit. */
export function movedByHand(source: Placed, from: Uint8Array, destination: Placed, to: Uint8Array): Uint8Array {
  const result = to.slice();
  const sources = bitsIn(source);
  bitsIn(destination).forEach((start, place) => {
    for (let i = 0; i < destination.layout.itemsize * 8; i++) {
      const [here, there] = [(sources[place] ?? NaN) + i, start + i];
      const bit = (from[Math.floor(here / 8)] ?? NaN) >> here % 8 & 1;
      const [byte, at] = [Math.floor(there / 8), there % 8];
      result[byte] = (result[byte] ?? NaN) & ~(1 << at) | bit << at;
    }
  });
  return result;
}

/**
 * Places a layout in memory with room on either side: offset 0 is at a whole byte, wherever the elements before it lie.
 */
function place(layout: StridedLayout, before: number, after: number): Placed {
  const { values } = gridOf(layout);
  const offset = before + Math.ceil(-Math.min(0, ...values) * layout.itemsize);
  const end = Math.ceil((Math.max(-1, ...values) + 1) * layout.itemsize);
  return { layout, offset, size: Math.max(offset + end, 0) + after + 1 };
}

/** Layouts in which no two elements overlap: axes in any order and direction, with gaps, cut at byte boundaries. */
function apart(shape: readonly number[], bits: number): fc.Arbitrary<Placed> {
  const perAxis = <T>(one: fc.Arbitrary<T>) => fc.array(one, { minLength: shape.length, maxLength: shape.length });
  return fc.record({
    order: permutations(shape.length),
    gaps: perAxis(fc.constantFrom(0, 0, 0, 1, 3)),
    signs: perAxis(fc.constantFrom(1, 1, 1, -1)),
    cut: fc.constantFrom(0, 0, 1, 2, 8),
    unit: fc.constantFrom(1, 1, 8),
    before: fc.nat(9),
    after: fc.nat(9),
  }).map(({ order, gaps, signs, cut, unit, before, after }) => {
    const longer = shape.map((extent) => extent + cut);
    const strides = shape.map(() => 0);
    let stride = 1;
    order.forEach((axis, i) => {
      stride += gaps[axis] ?? 0;
      if (i > 0) stride = Math.ceil(stride / unit) * unit;
      strides[axis] = stride * (signs[axis] ?? 1) + 0;
      stride *= Math.max(longer[axis] ?? 1, 1);
    });
    const whole = new StridedLayout(longer, strides, bits / 8);
    const first = strides.reduce((sum, step) => sum + step * cut, 0);
    // A view cannot begin inside a byte: where a cut would, take the first elements instead.
    const start = first * bits % 8 === 0 ? cut : 0;
    return place(whole.sliced(...shape.map((extent) => slice(start, start + extent))), before, after);
  });
}

/** Layouts whose elements may coincide: repeated, overlapping, or apart. */
function meeting(shape: readonly number[], bits: number): fc.Arbitrary<Placed> {
  const strides = fc.array(fc.integer({ min: -6, max: 6 }), { minLength: shape.length, maxLength: shape.length });
  return fc.tuple(strides, fc.nat(9), fc.nat(9)).map(([steps, before, after]) =>
    place(new StridedLayout(shape, steps, bits / 8), before, after)
  );
}

/** Layouts whose axes are interleaved, though no two elements overlap. */
function interleaved([rows = 1, columns = 1]: readonly number[], bits: number): fc.Arbitrary<Placed> {
  return fc.tuple(fc.nat(9), fc.nat(9)).map(([before, after]) =>
    place(new StridedLayout([rows, columns], [columns, rows], bits / 8), before, after)
  );
}

/** Two arrays of packed elements. */
export interface Pair {
  readonly dtype: Packed;
  readonly source: Placed;
  readonly destination: Placed;
}

const shapes: fc.Arbitrary<{ readonly shape: number[]; readonly isInterleaved: boolean }> = fc.oneof(
  { weight: 6, arbitrary: fc.array(fc.integer({ min: 0, max: 5 }), { maxLength: 4 }) },
  { weight: 2, arbitrary: fc.tuple(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 8, max: 40 })) },
  { weight: 1, arbitrary: fc.tuple(fc.constantFrom(8, 16), fc.constantFrom(8, 24)) },
).map((shape) => ({ shape, isInterleaved: false }));

const coprime = fc.constantFrom([3, 2], [2, 5], [4, 3], [5, 7]).map((shape) => ({ shape, isInterleaved: true }));

/** Pairs of any two layouts of the same shape. */
export const pairs: fc.Arbitrary<Pair> = fc.tuple(
  fc.oneof({ weight: 12, arbitrary: shapes }, { weight: 1, arbitrary: coprime }),
  dtypes,
).chain(([{ shape, isInterleaved }, dtype]) => {
  const bits = bitsOf[dtype];
  return fc.record({
    dtype: fc.constant(dtype),
    source: fc.oneof(
      { weight: 4, arbitrary: apart(shape, bits) },
      { weight: 1, arbitrary: meeting(shape, bits) },
    ),
    destination: isInterleaved ? interleaved(shape, bits) : apart(shape, bits),
  });
});

/** Where memory is: on the first device, on the second, or on the host. */
type Place = "device" | "other device" | "pinned" | "host";

/** A copy. */
export interface PackedCopy extends Pair {
  readonly from: Place;
  readonly to: Place;
  readonly seed: number;
}

/** Copies of packed elements between any two layouts in these places. */
export function packedCopies(...places: readonly Place[]): fc.Arbitrary<PackedCopy> {
  const place = fc.constantFrom(...places);
  return fc.tuple(pairs, place, place, fc.nat()).map(([pair, from, to, seed]) => ({ ...pair, from, to, seed }));
}

/** Allocates memory in a place, with a home stream if it can have one. */
function allocate(place: Place, size: number, home: CudaStream): MemoryBuffer {
  if (place === "host") return new HostMemoryResource().allocate(size);
  const resource = place === "pinned" ? new PinnedMemoryResource(home.device) : new DeviceMemoryResource(home.device);
  return resource.allocate(size, { stream: home });
}

/** Copies bytes into memory. Does not wait if the memory has a home stream: later work has to be ordered after it. */
function put(buffer: MemoryBuffer, bytes: Uint8Array): void {
  const { stream } = buffer;
  if (stream === null) return buffer.bytes().set(bytes);
  using staging = new PinnedMemoryResource(stream.device).allocate(bytes.length, { stream });
  staging.bytes().set(bytes);
  buffer.copyFrom(staging, { stream });
}

/** Asserts that a copy moves each element to its place, ordered after both home streams, and changes no other bit. */
export function assertMoved(cuda: Cuda, { dtype, source, destination, from, to, seed }: PackedCopy): void {
  const deviceOf = (place: Place) => cuda.device(place === "other device" ? 1 : 0);
  // On a device that takes part in the copy, if there is one.
  using stream = deviceOf(from === "other device" && to !== "device" ? from : to).createStream();
  using home = deviceOf(from).createStream();
  using otherHome = deviceOf(to).createStream();
  using one = allocate(from, source.size, home);
  using other = allocate(to, destination.size, otherHome);
  const [before, after] = [pattern(source.size, seed), pattern(destination.size, seed + 1)];
  put(one, before);
  put(other, after);
  const [here, there] = [laidOut(one, { ...source, dtype }), laidOut(other, { ...destination, dtype })];
  there.copyFrom(here, { stream });
  if (other.stream === null) stream.synchronize();
  const order = other.stream ?? stream;
  using result = new PinnedMemoryResource(order.device).allocate(destination.size, { stream: order });
  result.copyFrom(other, { stream: order });
  order.synchronize();
  const how = `${from} to ${to}: ${there.explainCopyFrom(here, { stream })}`;
  assertEquals(result.bytes().slice(), movedByHand(source, before, destination, after), how);
}
