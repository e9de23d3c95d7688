/** What remains of a layout and a dtype after `structuredClone`, as in messages to Workers, or JSON. */
import { assert, assertEquals, assertStrictEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { DType, slice, StridedLayout } from "../../src/layout/mod.ts";
import { check, fc } from "../support/property.ts";
import { layouts } from "../support/strided_oracle.ts";

const ways = {
  structuredClone: (value: unknown) => structuredClone(value),
  JSON: (value: unknown) => JSON.parse(JSON.stringify(value)),
};

test("a layout that was cloned is made again from its fields, whatever properties were cached", async () => {
  await check(fc.property(layouts(), fc.boolean(), (layout, isAsked) => {
    if (isAsked) assertEquals(typeof layout.isUnique, "boolean"); // what was computed is cached
    for (const [way, cloned] of Object.entries(ways)) {
      const left = cloned(layout);
      assert(!(left instanceof StridedLayout), way);
      const again = StridedLayout.from(left);
      assert(again instanceof StridedLayout, way);
      assertEquals(`${again}`, `${layout}`, way);
      assert(again.equals(layout), way);
      assertEquals([again.volume, again.minOffset, again.maxOffset], [
        layout.volume,
        layout.minOffset,
        layout.maxOffset,
      ]);
      left.shape.fill(1);
      left.strides.fill(7);
      assertEquals(`${again}`, `${layout}`, "what was given is copied");
    }
  }));
  const layout = StridedLayout.dense([2, 3], 4);
  assertStrictEquals(StridedLayout.from(layout), layout);
  assertEquals(
    `${StridedLayout.from({ shape: [2], strides: [-0], itemsize: 1, sliceOffset: -0 })}`,
    `${new StridedLayout([2], [0], 1)}`,
  );
  assertEquals(StridedLayout.from({ shape: [2], strides: [3], itemsize: 0.5, sliceOffset: 4 }).sliceOffsetInBytes, 2);
});

test("a slice with a step beyond the end of the axis is a layout that can be cloned, whatever the step", () => {
  const step = fc.oneof(fc.integer({ min: 1, max: 2 ** 33 }), fc.maxSafeNat().filter((far) => far > 0));
  check(fc.property(step, fc.boolean(), fc.constantFrom(1, 3, 8, 2 ** 20), (far, isBackwards, itemsize) => {
    const part = StridedLayout.dense([4, 6], itemsize).sliced("...", slice(null, null, isBackwards ? -far : far));
    const offset = part.sliceOffset * itemsize;
    assert([...part.stridesInBytes.map((stride) => 2 * stride), offset].every(Number.isSafeInteger), `${part}`);
    assert(StridedLayout.from(structuredClone(part)).equals(part), `${part}`);
  }));
});

// What was computed was a field as well: equal layouts were different once one of them had been asked for more.
test("to what compares field by field, and in a message, a layout is its fields, whatever has been asked of it", () => {
  check(fc.property(layouts(), (layout) => {
    const { shape, strides, itemsize, sliceOffset, volume } = layout;
    const same = StridedLayout.from({ shape, strides, itemsize, sliceOffset });
    const { isUnique, isContiguousC, isContiguousF, isContiguousAny, offsetBounds, strideOrder, stridesInBytes } = same;
    assertEquals([isUnique, isContiguousC, isContiguousF, isContiguousAny].length, 4);
    assertEquals([offsetBounds.length, strideOrder.length, stridesInBytes.length], [2, shape.length, shape.length]);
    assertEquals(same, layout);
    for (const cloned of Object.values(ways)) {
      assertEquals(cloned(same), { shape, strides, itemsize, sliceOffset, volume });
    }
  }));
});

test("invalid fields of a layout are refused in a clone, too", () => {
  const fields = { shape: [2, 3], strides: [3, 1], itemsize: 4, sliceOffset: 0 };
  const wrong: readonly (readonly [unknown, string])[] = [
    [null, "Expected the fields of a layout (shape, strides, itemsize, sliceOffset), got null"],
    ["(2, 3)", 'got "(2, 3)"'],
    [{}, "Expected itemsize"],
    [{ ...fields, shape: [2, -3] }, "got -3"],
    [{ ...fields, strides: [1] }, "one stride per axis"],
    [{ ...fields, strides: undefined }, "Expected strides to be an array"],
    [{ ...fields, sliceOffset: undefined }, "Expected sliceOffset to be an integer, got undefined"],
    [{ ...fields, sliceOffset: 0.5 }, "Expected sliceOffset to be an integer, got 0.5"],
    [{ ...fields, sliceOffset: "3" }, "Expected sliceOffset to be an integer"],
    [{ ...fields, sliceOffset: 2 ** 51 }, "at most 2^52 bytes"],
    [{ ...fields, itemsize: 0.5, sliceOffset: 3 }, "it lies inside a byte"],
  ];
  for (const [given, message] of wrong) {
    const error = assertThrows(() => StridedLayout.from(given as StridedLayout));
    assert(error instanceof TypeError || error instanceof RangeError, `${error}`);
    assert(error.message.includes(message), error.message);
  }
});

test("a dtype that was cloned still has its name, which the error says to use", () => {
  for (const dtype of DType.all()) {
    const left = ways.JSON(dtype);
    assertThrows(() => DType.from(left), TypeError, `A copy of a DType is not one: use DType.from("${dtype.name}")`);
    assertStrictEquals(DType.from(left.name).name, dtype.name);
  }
  assertThrows(() => DType.from({} as never), TypeError, "Expected a dtype as a string or { code, bits, lanes }");
});
