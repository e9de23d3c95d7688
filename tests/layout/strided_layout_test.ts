/** Where Causeway's layout deliberately differs from cuda.core's, one test per difference in docs/layout.md. */
import { assert, assertEquals, assertFalse, assertStrictEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { slice, StridedLayout } from "../../src/layout/mod.ts";
import { check, fc } from "../support/property.ts";

test("repacking never changes the number of bytes", () => {
  const layout = StridedLayout.dense([6], 4);
  for (const itemsize of [6, 10, 3, 5]) {
    assertThrows(() => layout.repacked(itemsize), RangeError, "the number of bytes would change");
  }
  assertThrows(() => StridedLayout.dense([6], 6).repacked(4), RangeError, "the number of bytes would change");
  for (const itemsize of [1, 2, 8, 12, 24]) {
    const repacked = layout.repacked(itemsize);
    assertEquals(repacked.volume * repacked.itemsize, 24);
  }
});

test("repacking needs the first element where a larger one can begin", () => {
  const pairs = StridedLayout.dense([4, 8], 2).sliced(slice(), slice(2, 6));
  assertEquals([pairs.sliceOffset, pairs.maxCompatibleItemsize()], [2, 4]);
  assertEquals(pairs.repacked(4).sliceOffset, 1);
  assertThrows(() => pairs.repacked(8), RangeError, "the slice offset 2 is not a multiple of 4");
  assertThrows(() => pairs.repacked(4, { dataPtr: 0x1002n }), RangeError, "is not aligned to 4 bytes");
});

test("the largest compatible itemsize is one that can be used", () => {
  assertEquals(StridedLayout.dense([8], 3).maxCompatibleItemsize(), 3);
  assertEquals(StridedLayout.dense([8], 12).maxCompatibleItemsize(), 12);
  assertEquals(StridedLayout.dense([8], 4).maxCompatibleItemsize({ dataPtr: 0x1002n }), 4);
  assertEquals(StridedLayout.dense([8], 3).maxCompatibleItemsize({ max: 12 }), 12);
});

test("implicit and explicit C order are equal", () => {
  assert(new StridedLayout([2, 3], null, 4).equals(new StridedLayout([2, 3], [3, 1], 4)));
  assert(new StridedLayout([], null, 4).equals(new StridedLayout([], [], 4)));
  assertEquals(new StridedLayout([2, 3], null, 4).strides, [3, 1]);
});

test("an index out of range is a RangeError that names index, axis and extent", () => {
  const error = assertThrows(() => StridedLayout.dense([3, 4], 4).sliced(0, 7), RangeError);
  assertEquals(error.message, "Index 7 is out of range for axis 1 with extent 4");
});

test("slicing knows the ellipsis and new axes", () => {
  const layout = StridedLayout.dense([3, 4, 5], 4);
  assertEquals(layout.sliced("...", 0).shape, [3, 4]);
  assertEquals(layout.sliced(null, 1, "...", null).shape, [1, 4, 5, 1]);
});

test("axes of extent 1 are free in flattening, reshaping and contiguity", () => {
  const odd = new StridedLayout([4, 1, 3], [3, 77, 1], 4);
  assert(odd.isContiguousC);
  assertEquals(odd.flattened().shape, [12]);
  assertEquals(odd.flattenedAxisMask(), 0b110n);
  assertEquals(odd.reshaped([12]).strides, [1]);
  assertEquals(new StridedLayout([1, 5], [99, 1], 4).flattened().shape, [5]);
  assertEquals(new StridedLayout([1, 4], [5, 1], 2).repacked(4).shape, [1, 2]);
});

test("a mask that asks for a join that cannot be made is an error, and axes that it keeps apart stay apart", () => {
  const layout = StridedLayout.dense([2, 3, 4], 4);
  assertThrows(() => layout.permuted([1, 0, 2]).flattened({ mask: 2n }), RangeError, "AND the mask");
  assertEquals(layout.flattened({ mask: 0n }).shape, [2, 3, 4]);
  assertEquals(layout.flattened({ mask: 0b110n, end: 1 }).shape, [6, 4]);
});

test("uniqueness is exact for interleaved axes", () => {
  assert(new StridedLayout([3, 2], [2, 3], 4).isUnique);
  assertFalse(new StridedLayout([4, 3], [2, 3], 4).isUnique);
  assert(new StridedLayout([2, 2, 2], [6, 10, 15], 4).isUnique);
  assertFalse(new StridedLayout([3, 2, 2], [5, 4, 6], 4).isUnique);
  assertFalse(new StridedLayout([2, 3], [0, 1], 4).isUnique);
});

test("uniqueness of two axes is exact, however long they are", () => {
  // They first meet at the least common multiple of their strides, which is beyond both ends; a search would take ages.
  assert(new StridedLayout([60_000, 50_000], [99_999, 100_000], 1).isUnique);
  assertFalse(new StridedLayout([100_001, 100_000], [99_999, 100_000], 1).isUnique);
  assertFalse(new StridedLayout([3], [0], 1).isUnique);
});

test("uniqueness gives up in time, and then on the safe side", () => {
  // Sixteen interleaved axes with large, unrelated strides: far too many differences to try.
  const primes = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53];
  const strides = primes.map((prime) => 10 ** 13 + Math.floor((Math.sqrt(prime) % 1) * 9e13));
  const start = performance.now();
  assertFalse(new StridedLayout(strides.map(() => 3), strides, 1).isUnique);
  // Here some do meet: the first two steps add up to the last two.
  const [one = 0, two = 0] = strides;
  const meeting = [...strides.slice(0, 14), one + 123_456_789, two - 123_456_789];
  assertFalse(new StridedLayout(meeting.map(() => 3), meeting, 1).isUnique);
  assert(performance.now() - start < 1000);
});

test("layouts without elements are unique, contiguous and take any shape", () => {
  const empty = new StridedLayout([3, 0, 5], [1, 2, 3], 4);
  assertEquals(empty.strides, [1, 2, 3]);
  assert(empty.isUnique && empty.isContiguousC && empty.isContiguousF && empty.isContiguousAny && empty.isDense);
  assertEquals(empty.requiredSizeInBytes(), 0);
  assertEquals(empty.reshaped([0, 7]).strides, [0, 0]);
  assertEquals(empty.flattened().shape, [0]);
  assertEquals(empty.flattened({ start: 1 }).shape, [3, 0]);
  assertEquals(empty.flattened({ start: 1 }).strides, [0, 0]);
  assertEquals(new StridedLayout([3, 0], null, 4).strides, [0, 0]);
  assertThrows(() => empty.reshaped([0, -1]), RangeError, "-1 is ambiguous");
});

test("an operation that changes nothing returns the same layout", () => {
  const layout = StridedLayout.dense([2, 3], 4);
  assertStrictEquals(layout.toDense(), layout);
  assertStrictEquals(layout.toDense("C"), layout);
  assertStrictEquals(layout.toDense([0, 1]), layout);
  assertStrictEquals(layout.repacked(4), layout);
  assertStrictEquals(layout.squeezed(), layout);
  assertStrictEquals(layout.unsqueezed([]), layout);
  const transposed = layout.transposed();
  assertStrictEquals(transposed.flattened(), transposed);
  assertStrictEquals(StridedLayout.denseLike(layout, "C"), layout);
});

test("properties are worked out once", () => {
  const layout = StridedLayout.dense([2, 3], 4).permuted([1, 0]);
  assertStrictEquals(layout.strideOrder, layout.strideOrder);
  assertStrictEquals(layout.stridesInBytes, layout.stridesInBytes);
  assertStrictEquals(layout.offsetBounds, layout.offsetBounds);
});

test("a layout is equal to no other kind of value", () => {
  const layout = StridedLayout.dense([2, 3], 4);
  for (const other of [null, undefined, 0, "", {}, [2, 3], { ...layout }]) assertFalse(layout.equals(other));
  assertFalse(layout.equals(StridedLayout.dense([2, 3], 8)));
  assertFalse(layout.equals(StridedLayout.dense([2, 3], 4, "F")));
  assertFalse(layout.equals(StridedLayout.dense([3, 3], 4).sliced(slice(1))));
});

test("a layout prints as what it is", () => {
  assertEquals(String(StridedLayout.dense([4], 4)), "StridedLayout(shape=(4,), strides=(1,), itemsize=4)");
  assertEquals(
    String(StridedLayout.dense([4, 5], 0.5).sliced(slice(2))),
    "StridedLayout(shape=(2, 5), strides=(5, 1), itemsize=0.5, sliceOffset=10)",
  );
  assertEquals(String(slice(1, null, -2)), "1::-2");
  assertEquals(String(slice()), ":");
});

test("whatever is joined, no stride is -0", () => {
  const extents = fc.array(fc.constantFrom(1, 1, 4, 8), { minLength: 1, maxLength: 4 });
  check(
    fc.property(extents, fc.array(fc.integer({ min: -9, max: 9 }), { minLength: 4, maxLength: 4 }), (shape, steps) => {
      const strides = shape.map((extent, axis) =>
        axis === 0 ? 1 : extent === 1 ? steps[axis] ?? 0 : 8 * (steps[axis] ?? 0)
      );
      const layout = new StridedLayout(shape, strides, 1);
      if (shape[0] === 1) return;
      for (const stride of layout.repacked(4, { axis: 0 }).strides) assert(!Object.is(stride, -0), String(layout));
    }),
    300,
  );
});
