import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { batchesOf, keptRows } from "../../../src/vortex/file/rows.ts";
import { check, fc } from "../../support/property.ts";

const zones = fc.array(fc.integer({ min: 1, max: 20 }), { maxLength: 3 });

test("rows are kept exactly if their zones are wanted, in ranges that do not touch", async () => {
  await check(
    fc.property(fc.nat(100), fc.nat(100), zones, fc.infiniteStream(fc.boolean()), (one, other, zones, dice) => {
      const [start, end] = [Math.min(one, other), Math.max(one, other)];
      // Each zone of each column is wanted or not; a row is wanted if all of its zones are.
      const wanted = zones.map((zone) =>
        Array.from({ length: Math.ceil(101 / zone) }, () => dice.next().value === true)
      );
      const isWanted = (row: number) => zones.every((zone, i) => wanted[i]?.[Math.floor(row / zone)] === true);
      const ranges = [...keptRows({ start, end }, zones, (piece) => isWanted(piece.start))];
      const rows = ranges.flatMap(({ start, end }) => Array.from({ length: end - start }, (_, i) => start + i));
      assertEquals(rows, Array.from({ length: end - start }, (_, i) => start + i).filter(isWanted));
      ranges.forEach(({ start, end }, i) => {
        assertEquals(start < end && start !== ranges[i - 1]?.end, true);
      });
    }),
  );
});

test("batches have all rows in order, and as many as allowed", async () => {
  const ranges = fc.array(fc.record({ start: fc.nat(99), size: fc.integer({ min: 1, max: 50 }) }), { maxLength: 4 });
  await check(fc.property(ranges, fc.integer({ min: 1, max: 60 }), (ranges, most) => {
    const all = ranges.map(({ start, size }) => ({ start, end: start + size }));
    const expected = all.flatMap(({ start, end }) =>
      Array.from({ length: Math.ceil((end - start) / most) }, (_, i) => ({
        start: start + i * most,
        end: Math.min(end, start + (i + 1) * most),
      }))
    );
    assertEquals([...batchesOf(all, most)], expected);
  }));
});

test("of a file of more rows than can be counted, the first are read at once", () => {
  const ranges = keptRows({ start: 0, end: 2 ** 53 - 1 }, [1], ({ start }) => start % 2 === 0);
  const [first] = batchesOf(ranges, 1);
  assertEquals(first, { start: 0, end: 1 });
});
