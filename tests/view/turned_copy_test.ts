/** Copies of narrow elements whose axes change order: four bytes at a time, as far as addresses and rows allow. */
import { assertEquals, assertStringIncludes } from "@std/assert";
import { test } from "node:test";
import { Cuda, type MemoryBuffer, StridedLayout, StridedMemoryView } from "../../mod.ts";
import { check, fc } from "../support/property.ts";
import { copiedByHand, pattern, type Placed } from "./arrays.ts";
import { room } from "./room.ts";

interface Case {
  readonly itemsize: number;
  readonly source: Placed;
  readonly destination: Placed;
  readonly seed: number;
}

/** What a case is made of; all but one of these are multiples of 8 bytes. */
const quantities = ["across", "down", "gap", "larger gap", "offset", "gap there", "larger gap there", "offset there"];

const cases: fc.Arbitrary<Case> = fc.record({
  itemsize: fc.constantFrom(1, 2),
  odd: fc.constantFrom(...quantities),
  unit: fc.constantFrom(4, 2, 1),
  seed: fc.nat(),
}).chain(({ itemsize, odd, unit, seed }) => {
  const multiple = (quantity: string, min: number, max: number) => {
    const elements = Math.ceil((quantity === odd ? unit : 8) / itemsize);
    return fc.integer({ min, max }).map((value) => Math.ceil(value / elements) * elements);
  };
  // An axis that neither side has innermost, the one that is read along, and the one that is written along.
  const shapes = fc.tuple(fc.integer({ min: 1, max: 3 }), multiple("across", 40, 170), multiple("down", 9, 170));
  return shapes.chain((shape) => {
    // Axes from the largest step to the smallest: the last has step 1, and the others gaps before their next step.
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
      source: placed("", [0, 2, 1], [2, 0, 1]),
      destination: placed(" there", [0, 1, 2], [1, 0, 2]),
      seed: fc.constant(seed),
    });
  });
});

/** Whether elements can be moved four bytes at a time: all that an access may begin at is a multiple of four bytes. */
function isWide({ itemsize, source, destination }: Case): boolean {
  return [source, destination].flatMap(({ layout: { shape, strides }, offset }) => [
    offset,
    ...strides.filter((stride, axis) => stride !== 1 && shape[axis] !== 1).map((stride) => stride * itemsize),
    ...shape.slice(1).map((extent) => extent * itemsize),
  ]).every((length) => length % 4 === 0);
}

test("narrow elements are turned over, four bytes at a time where addresses and rows are multiples of four", () => {
  const view = (buffer: MemoryBuffer, { layout: { shape, strides }, offset }: Placed, itemsize: number) =>
    StridedMemoryView.fromBuffer(buffer, { shape, strides, offset, dtype: itemsize === 1 ? "uint8" : "uint16" });
  check(
    fc.property(cases, (one) => {
      const { itemsize, seed, source, destination } = one;
      using cuda = Cuda.simulate({ seed });
      const { device, allocate, read } = room(cuda);
      const [before, after] = [pattern(source.size, seed), pattern(destination.size, seed + 1)];
      const [from, to] = [allocate("device", before), allocate("device", after)];
      const [here, there] = [view(from, source, itemsize), view(to, destination, itemsize)];
      there.copyFrom(here);
      device.synchronize();
      const how = there.explainCopyFrom(here);
      assertEquals(read(to), copiedByHand(source, before, destination, after), how);
      const side = isWide(one) ? 128 / itemsize : 64;
      assertStringIncludes(how, `in tiles of ${side} x ${side} through shared memory`);
      for (const buffer of [from, to]) buffer.close();
    }),
    50,
  );
});
