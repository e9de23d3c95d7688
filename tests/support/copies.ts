/**
 * Copies for tests, the law that all of them keep, and which of them are transposed four bytes at a time.
 *
 * @module
 */
import { assertEquals } from "@std/assert";
import { type Cuda, DType, type MemoryBuffer, StridedLayout, StridedMemoryView } from "../../mod.ts";
import { fc } from "./property.ts";
import { apart, copiedByHand, meeting, pattern, type Placed } from "./arrays.ts";
import { room, type Where } from "./buffers.ts";

/** Element types by their size in bytes; what the elements are does not matter. */
const types: { readonly [bytes: number]: string } = {
  1: "uint8",
  2: "uint16",
  3: "uint8x3",
  4: "uint32",
  8: "uint64",
  12: "uint32x3",
  16: "complex128",
};

const shapes: fc.Arbitrary<number[]> = fc.oneof(
  fc.array(fc.integer({ min: 0, max: 6 }), { maxLength: 4 }),
  fc.tuple(fc.integer({ min: 8, max: 70 }), fc.integer({ min: 8, max: 140 })),
  fc.tuple(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 8, max: 40 }), fc.integer({ min: 8, max: 40 })),
  fc.tuple(fc.constantFrom(32, 64, 128), fc.constantFrom(32, 64, 96)),
);

const where = fc.constantFrom<Where>("device", "device", "pinned", "host");

/** A copy. */
export interface Case {
  readonly itemsize: number;
  readonly from: Where;
  readonly to: Where;
  readonly seed: number;
  readonly source: Placed;
  readonly destination: Placed;
}

/** Copies between any two layouts, anywhere. */
export const copies: fc.Arbitrary<Case> = fc.tuple(shapes, fc.constantFrom(1, 2, 3, 4, 8, 12, 16)).chain((
  [shape, itemsize],
) =>
  fc.record({
    itemsize: fc.constant(itemsize),
    from: where,
    to: where,
    seed: fc.nat(),
    source: fc.oneof(
      { weight: 4, arbitrary: apart(shape, itemsize) },
      { weight: 1, arbitrary: meeting(shape, itemsize) },
    ).map(aligned),
    destination: apart(shape, itemsize).map(aligned),
  })
);

/** Aligns every other case to 16 bytes, the alignment that suits words of any width. */
function aligned(placed: Placed): Placed {
  const { layout, offset, size } = placed;
  return size % 2 === 0 ? placed : { layout, offset: Math.ceil(offset / 16) * 16, size: size + 16 };
}

/** A side of a copy as a view of the memory that it is in. */
export function view(buffer: MemoryBuffer, { layout, offset }: Placed, itemsize: number): StridedMemoryView {
  const { shape, strides } = layout;
  const dtype = DType.from(types[itemsize] ?? "");
  const start = layout.volume === 0 ? 0 : offset + layout.sliceOffsetInBytes;
  return StridedMemoryView.fromBuffer(buffer, { shape, strides, dtype, offset: start });
}

/** The quantities of a case; all but one of these are multiples of 8 bytes. */
const quantities = ["across", "down", "gap", "larger gap", "offset", "gap there", "larger gap there", "offset there"];

/** Copies on a device of elements of one and two bytes, whose axes change order. */
export const turnedCopies: fc.Arbitrary<Case> = fc.record({
  itemsize: fc.constantFrom(1, 2),
  odd: fc.constantFrom(...quantities),
  unit: fc.constantFrom(4, 2, 1),
  seed: fc.nat(),
}).chain(({ itemsize, odd, unit, seed }) => {
  const multiple = (quantity: string, min: number, max: number) => {
    const elements = Math.ceil((quantity === odd ? unit : 8) / itemsize);
    return fc.integer({ min, max }).map((value) => Math.ceil(value / elements) * elements);
  };
  // The axis that is innermost on neither side, the axis read along, and the axis written along.
  const shapes = fc.tuple(fc.integer({ min: 1, max: 3 }), multiple("across", 40, 170), multiple("down", 9, 170));
  return shapes.chain((shape) => {
    // Axes from the largest step to the smallest: the last has step 1, and the others have gaps before their next step.
    const placed = (there: string, ...orders: readonly [outer: number, middle: number, inner: number][]) =>
      fc.record({
        order: fc.constantFrom(...orders),
        gap: multiple(`gap${there}`, 0, 20),
        larger: multiple(`larger gap${there}`, 0, 20),
        offset: multiple(`offset${there}`, 0, 40),
      }).map(({ order: [outer, middle, inner], gap, larger, offset }): Placed => {
        const strides = [0, 0, 0];
        strides[inner] = 1;
        strides[middle] = Math.ceil((shape[inner] ?? 0) / 8) * 8 + gap; // a row may end sooner than it could
        strides[outer] = (strides[middle] ?? 0) * (shape[middle] ?? 0) + larger;
        const end = offset + (strides[outer] ?? 0) * (shape[outer] ?? 0);
        return {
          layout: new StridedLayout(shape, strides, itemsize),
          offset: offset * itemsize,
          size: (end + 3) * itemsize,
        };
      });
    return fc.record({
      itemsize: fc.constant(itemsize),
      from: fc.constant<Where>("device"),
      to: fc.constant<Where>("device"),
      source: placed("", [0, 2, 1], [2, 0, 1]),
      destination: placed(" there", [0, 1, 2], [1, 0, 2]),
      seed: fc.constant(seed),
    });
  });
});

/**
 * Whether elements can be moved four bytes at a time: every position where an access may begin is a multiple of four
 * bytes.
 */
export function isWide({ itemsize, source, destination }: Case): boolean {
  return [source, destination].flatMap(({ layout: { shape, strides }, offset }) => [
    offset,
    ...strides.filter((stride, axis) => stride !== 1 && shape[axis] !== 1).map((stride) => stride * itemsize),
    ...shape.slice(1).map((extent) => extent * itemsize),
  ]).every((length) => length % 4 === 0);
}

/**
 * Asserts that a copy moves each element to its place and touches nothing else.
 *
 * @returns how the copy was done
 */
export function assertCopied(cuda: Cuda, { itemsize, from, to, seed, source, destination }: Case): string {
  const { device, allocate, read } = room(cuda);
  const [before, after] = [pattern(source.size, seed), pattern(destination.size, seed + 1)];
  const [one, other] = [allocate(from, before), allocate(to, after)];
  const [here, there] = [view(one, source, itemsize), view(other, destination, itemsize)];
  using stream = device.createStream();
  there.copyFrom(here, { stream });
  stream.synchronize();
  const how = there.explainCopyFrom(here);
  assertEquals(read(other), copiedByHand(source, before, destination, after), how);
  assertEquals(read(one), before);
  for (const buffer of [one, other]) buffer.close();
  return how;
}
