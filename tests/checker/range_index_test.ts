/** Ranges that may overlap: those found are those that a search through all of them finds. */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { RangeIndex } from "../../src/checker/range_index.ts";
import { check, fc } from "../support/property.ts";

const anyRange = fc.oneof(
  fc.record({ start: fc.nat(64), size: fc.integer({ min: 1, max: 64 }) }),
  fc.record({ start: fc.nat(2 ** 40), size: fc.integer({ min: 1, max: 2 ** 40 }) }),
).map(({ start, size }) => ({ start, end: start + size }));

test("the ranges that overlap another are found, whatever their lengths, however they came in", () => {
  check(
    fc.property(fc.array(anyRange), fc.array(anyRange), anyRange, (first, later, { start, end }) => {
      const index = new RangeIndex(first);
      for (const one of later) index.add(one);
      const all = new Set([...first, ...later]);
      assertEquals(new Set(index.all), all);
      assertEquals(index.all.length, all.size);
      assertEquals(
        new Set(index.overlapping(start, end)),
        new Set([...all].filter((one) => one.start < end && start < one.end)),
      );
    }),
    500,
  );
});
