/**
 * Copies between two layouts against an oracle that moves one byte of one element at a time.
 */
import { assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { StridedLayout } from "../../src/layout/mod.ts";
import { copyHost, denseCopy } from "../../src/view/host_copy.ts";
import { shapes } from "../layout/oracle.ts";
import { check, fc } from "../support/property.ts";
import { apart, copiedByHand, meeting, pattern, type Placed } from "./arrays.ts";

const itemsizes = fc.integer({ min: 1, max: 16 });

/** Two arrays of one shape and itemsize: where from, and where to. */
const pairs: fc.Arbitrary<{ source: Placed; destination: Placed }> = fc.tuple(
  // Long innermost axes too, for runs that are copied at once.
  fc.oneof({ weight: 4, arbitrary: shapes() }, { weight: 1, arbitrary: fc.tuple(fc.nat(4), fc.nat(90)) }),
  itemsizes,
).chain(([shape, itemsize]) =>
  fc.record({
    source: fc.oneof({ weight: 3, arbitrary: apart(shape, itemsize) }, {
      weight: 1,
      arbitrary: meeting(shape, itemsize),
    }),
    destination: apart(shape, itemsize),
  })
);

test("a copy moves every byte of every element to the same index, and touches no other byte", () => {
  check(
    fc.property(pairs, ({ source, destination }) => {
      const from = pattern(source.size, 1);
      const to = pattern(destination.size, 2);
      const expected = copiedByHand(source, from, destination, to);
      const before = from.slice();
      copyHost({ bytes: from, ...source }, { bytes: to, ...destination });
      assertEquals(to, expected);
      assertEquals(from, before);
    }),
    6000,
  );
});

test("a dense copy holds the same elements in C order", () => {
  check(
    fc.property(fc.tuple(shapes(), itemsizes).chain(([shape, itemsize]) => meeting(shape, itemsize)), (source) => {
      const from = pattern(source.size, 1);
      const { layout } = source;
      const length = layout.volume * layout.itemsize;
      const dense = { layout: StridedLayout.dense(layout.shape, layout.itemsize), offset: 0, size: length };
      const copy = denseCopy({ bytes: from, ...source });
      assertEquals(copy.offset, 0);
      assertEquals(copy.layout.isContiguousC, true);
      assertEquals(copy.bytes, copiedByHand(source, from, dense, new Uint8Array(length)));
    }),
    1000,
  );
});

test("elements inside a byte are not copied one by one, because their bytes hold others too", () => {
  const layout = StridedLayout.dense([4], 0.5);
  const array = { bytes: new Uint8Array(2), offset: 0, layout };
  assertThrows(() => copyHost(array, array), RangeError, "packed elements of 4 bits");
});

test("without elements there is nothing to copy, whatever the strides and the itemsize", () => {
  for (const itemsize of [8, 0.5]) {
    const layout = new StridedLayout([3, 0, 2], [100, 7, -50], itemsize);
    const to = new Uint8Array([1, 2, 3]);
    copyHost({ bytes: new Uint8Array(0), offset: 0, layout }, { bytes: to, offset: 0, layout });
    assertEquals(to, new Uint8Array([1, 2, 3]));
  }
});
