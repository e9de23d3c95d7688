/** The planner's decisions, and its reports of them. The copies themselves are in device_copy_test.ts. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { slice, StridedLayout } from "../../mod.ts";
import { explainPlan, planDeviceCopy } from "../../src/copy/device_plan.ts";
import { coalesce } from "../../src/copy/coalesced_copy.ts";
import { shapes } from "../support/strided_oracle.ts";
import { check, fc } from "../support/property.ts";
import { apart, meeting, positionsOf } from "../support/arrays.ts";

const { dense } = StridedLayout;

function explain(source: StridedLayout, destination: StridedLayout, options: { launch?: boolean; at?: bigint } = {}) {
  const { launch = true, at = 0n } = options;
  const plan = planDeviceCopy(coalesce(source, destination, { from: at, to: at }), launch);
  return plan === null ? null : explainPlan(plan);
}

test("elements laid out alike on both sides are one copy, in whatever order and direction", () => {
  const layout = dense([4, 6, 8], 4);
  for (const same of [layout, layout.transposed(), layout.sliced(slice(null, null, -1)), layout.permuted([1, 2, 0])]) {
    assertEquals(explain(same, same), "one copy of 768 bytes by the driver");
  }
  assertEquals(explain(dense([0, 3], 4), dense([0, 3], 4)), "nothing to copy");
  assertEquals(explain(dense([], 4), dense([], 4)), "one copy of 4 bytes by the driver");
});

test("wide rows are copied by the driver, narrow ones by a kernel where one can run", () => {
  const wide = dense([10, 256], 4).sliced(slice(), slice(0, 200));
  assertEquals(explain(wide, dense([10, 200], 4)), "10 rows of 800 bytes by the driver");
  const boxes = dense([5, 10, 256], 4).sliced(slice(), slice(0, 8), slice(0, 200));
  assertEquals(explain(boxes, dense([5, 8, 200], 4)), "5 slices of 8 rows of 800 bytes by the driver");
  const narrow = dense([10, 16], 4).sliced(slice(), slice(0, 4));
  const kernel = "a kernel over 10 words of 16 bytes as 10, in the order of the destination";
  assertEquals(explain(narrow, dense([10, 4], 4)), kernel);
  assertEquals(explain(narrow, dense([10, 4], 4), { launch: false }), "10 rows of 16 bytes by the driver");
});

test("elements read along one axis and written along another go through tiles", () => {
  const turned = (itemsize: number) => explain(dense([256, 512], itemsize).transposed(), dense([512, 256], itemsize));
  const kernel = (bytes: number, side: number) =>
    `a kernel over 131072 words of ${bytes} bytes as 512 x 256, in tiles of ${side} x ${side} through shared memory`;
  const sides = new Map([[1, 128], [2, 64], [4, 64], [8, 32], [16, 32]]);
  for (const [itemsize, side] of sides) assertEquals(turned(itemsize), kernel(itemsize, side));
  const unaligned = explain(dense([256, 512], 1).transposed(), dense([512, 256], 1), { at: 2n });
  assertEquals(unaligned, kernel(1, 64));
  const odd = explain(dense([255, 512], 1).transposed(), dense([512, 255], 1));
  assertEquals(odd, "a kernel over 130560 words of 1 bytes as 512 x 255, in tiles of 64 x 64 through shared memory");
  assertEquals(explain(dense([256, 512], 4).transposed(), dense([512, 256], 4), { launch: false }), null);
});

test("elements are joined to the widest words that both sides and both addresses allow", () => {
  const row = dense([8, 64], 2).sliced(slice(), slice(0, 32));
  const words = (at: bigint) => coalesce(row, dense([8, 32], 2), { from: at, to: at }).word;
  assertEquals([0n, 8n, 4n, 2n].map(words), [16, 8, 4, 2]);
  assertEquals(words(1n), 1);
});

test("an impossible copy is refused: other shapes, other sizes, a destination that overlaps itself", () => {
  const layout = dense([2, 3], 4);
  assertThrows(() => coalesce(layout, dense([3, 2], 4)), RangeError, "expected equal shapes");
  assertThrows(() => coalesce(layout, dense([2, 3], 8)), RangeError, "elements of equal size");
  assertThrows(
    () => coalesce(layout, dense([1, 3], 4).broadcastTo([2, 3])),
    RangeError,
    "may lead to the same element",
  );
});

const pairs = fc.tuple(shapes(), fc.constantFrom(1, 2, 3, 4, 8, 16), fc.bigInt(0n, 15n), fc.bigInt(0n, 15n)).chain(
  ([shape, itemsize, from, to]) =>
    fc.record({
      source: fc.oneof(apart(shape, itemsize), meeting(shape, itemsize)),
      destination: apart(shape, itemsize),
      from: fc.constant(from),
      to: fc.constant(to),
    }),
);

test("a problem names the same bytes as the layouts, in the order of the destination, in words that begin where they can", () => {
  check(
    fc.property(pairs, ({ source, destination, from, to }) => {
      const problem = coalesce(source.layout, destination.layout, { from, to });
      const { word, axes, words } = problem;
      const pairsOf = (starts: readonly number[], targets: readonly number[], bytes: number) =>
        starts.flatMap((start, i) =>
          Array.from({ length: bytes }, (_, byte) => `${start + byte} ${(targets[i] ?? NaN) + byte}`)
        ).sort();
      const firsts = [source.layout.sliceOffsetInBytes, destination.layout.sliceOffsetInBytes] as const;
      let steps: [number, number][] = words === 0
        ? []
        : [[firsts[0] + problem.fromOffset, firsts[1] + problem.toOffset]];
      for (const axis of axes) {
        steps = steps.flatMap(([a, b]) =>
          Array.from(
            { length: axis.extent },
            (_, i): [number, number] => [a + i * axis.from * word, b + i * axis.to * word],
          )
        );
      }
      assertEquals(steps.length, words);
      const byHand = pairsOf(
        positionsOf({ ...source, offset: 0 }),
        positionsOf({ ...destination, offset: 0 }),
        source.layout.itemsize,
      );
      assertEquals(pairsOf(steps.map(([a]) => a), steps.map(([, b]) => b), word), byHand);
      assert(axes.every(({ extent, to }, i) => extent > 1 && to > 0 && to <= (axes[i - 1]?.to ?? Infinity)));
      for (const [a, b] of steps) {
        assert((from + BigInt(a - firsts[0])) % BigInt(word) === 0n);
        assert((to + BigInt(b - firsts[1])) % BigInt(word) === 0n);
      }
    }),
    1500,
  );
});
