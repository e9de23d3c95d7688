/** Conversion plans: boxes cover every element once, in an order that leaves the right one where elements meet. */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { type ConversionPlan, isRun, planConversion } from "../../src/copy/conversion_plan.ts";
import { check, fc } from "../support/property.ts";

interface Axis {
  readonly extent: number;
  readonly to: number;
  readonly from: number;
}

const step = fc.oneof(fc.integer({ min: -40, max: 40 }), fc.constantFrom(-600, 256, 1000, 4096));
const axes: fc.Arbitrary<Axis[]> = fc.array(
  fc.record({ extent: fc.integer({ min: 1, max: 7 }), to: step, from: step }),
  { maxLength: 4 },
);
const sizes = fc.record({ to: fc.constantFrom(1, 2, 4, 8, 16), from: fc.constantFrom(1, 2, 4, 8, 16) });

/** Where each element is read and written, the last axis fastest. */
function places(all: readonly Axis[], start: string): string[] {
  const [to = 0, from = 0] = start.split(" ").map(Number);
  const [axis, ...inner] = all;
  if (axis === undefined) return [start];
  return Array.from({ length: axis.extent }, (_, i) => places(inner, `${to + i * axis.to} ${from + i * axis.from}`))
    .flat();
}

/** The same, box by box. */
function placesOf({ axes, box, toOffset, fromOffset }: ConversionPlan): string[][] {
  const parts = (axis: Axis, length: number) =>
    Array.from({ length: Math.ceil(axis.extent / length) }, (_, i) => ({
      start: i * length,
      axis: { ...axis, extent: Math.min(length, axis.extent - i * length) },
    }));
  let boxes = [{ to: toOffset, from: fromOffset, axes: [] as Axis[] }];
  for (const [i, axis] of axes.entries()) {
    boxes = boxes.flatMap((outer) =>
      parts(axis, box[i] ?? NaN).map(({ start, axis: inner }) => ({
        to: outer.to + start * axis.to,
        from: outer.from + start * axis.from,
        axes: [...outer.axes, inner],
      }))
    );
  }
  return boxes.map(({ to, from, axes: inside }) => places(inside, `${to} ${from}`));
}

test("boxes cover every element once, at most the given number each; where elements meet, in their order", () => {
  check(
    fc.property(axes, sizes, fc.integer({ min: 1, max: 60 }), (all, size, most) => {
      const plan = planConversion(all, size, most);
      const boxes = placesOf(plan);
      for (const box of boxes) assert(box.length <= most);
      const expected = places(all, "0 0");
      assertEquals(boxes.flat().toSorted(), expected.toSorted());
      const last = (list: readonly string[]) =>
        new Map(list.flatMap((place) => {
          const [to = 0, from = 0] = place.split(" ").map(Number);
          return Array.from({ length: size.to }, (_, byte) => [to + byte, `${from} ${byte}`] as const);
        }));
      assertEquals(
        [...last(boxes.flat())].toSorted(([one], [other]) => one - other),
        [...last(expected)].toSorted(([one], [other]) => one - other),
      );
      const starts = expected.map((place) => place.split(" ").map(Number));
      for (const [which, side] of [[0, "to"], [1, "from"]] as const) {
        const all = starts.map((one) => one[which] ?? NaN);
        assertEquals(plan[side], { start: Math.min(...all), end: Math.max(...all) + size[side] });
      }
    }),
    1000,
  );
});

test("elements that follow each other without a gap are a run, and no others", () => {
  check(
    fc.property(axes, fc.constantFrom(1, 2, 4), fc.boolean(), (drawn, size, isDense) => {
      let next = size;
      const dense = drawn.toReversed().map(({ extent, from }) => {
        const axis = { extent, to: next, from };
        next *= extent;
        return axis;
      }).toReversed();
      const all = isDense ? dense : drawn;
      const starts = places(all, "0 0").map((place) => Number(place.split(" ")[0]));
      assertEquals(isRun(all, all.map(({ extent }) => extent), "to", size), starts.every((at, i) => at === i * size));
    }),
    2000,
  );
});

test("a box is a run where both sides have the same order, and else equally wide along both axes", () => {
  const plan = (to: readonly number[], from: readonly number[]) =>
    planConversion([100, 200].map((extent, i) => ({ extent, to: to[i] ?? 0, from: from[i] ?? 0 })), {
      ...{ to: 4, from: 1 },
    }, 1024);
  assertEquals(plan([800, 4], [200, 1]).box, [1024]);
  assertEquals(plan([800, 4], [1, 100]).box, [32, 32]);
  assertEquals(plan([4, 400], [1, 100]).box, [1024]);
  assertEquals(plan([1000, 4], [200, 1]).box, [5, 200]);
  assertEquals(plan([800, 4], [0, 1]).box, [5, 200]);
});
