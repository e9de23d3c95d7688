/** Bad input gives a typed error with the rule and the value, never a wrong layout. */
import { assert, assertEquals, assertInstanceOf, assertThrows } from "@std/assert";
import { test } from "node:test";
import { MAX_SPAN_IN_BYTES, slice, StridedLayout } from "../../src/layout/mod.ts";
import { check, fc } from "../support/property.ts";
import { gridOf } from "../support/strided_oracle.ts";

const layout = StridedLayout.dense([3, 4], 4);

/** What a caller without a type checker may pass. */
function untyped<T>(value: unknown): T {
  return value as T;
}

/** What the error says of a whole number that is none of the exact ones. */
const limit = (bad: number) => bad === 2 ** 53 ? " of at most 53 bits" : "";

test("extents are integers from 0 on", () => {
  const calls: ((shape: number[]) => StridedLayout)[] = [
    (shape) => new StridedLayout(shape, null, 4),
    (shape) => new StridedLayout(shape, shape.map(() => 1), 4),
    (shape) => StridedLayout.dense(shape, 4),
    (shape) => StridedLayout.dense([1, 1], 4).broadcastTo(shape),
    (shape) => layout.reshaped(shape),
  ];
  for (const call of calls) {
    for (const bad of [1.5, -2, NaN, Infinity, 2 ** 53]) {
      assertThrows(
        () => call([2, bad]),
        RangeError,
        `extent of axis 1 to be a non-negative integer${limit(bad)}, got ${bad}`,
      );
    }
    for (const bad of ["3", 3n, null, undefined, {}, [1], true]) {
      assertThrows(() => call([untyped(bad), 4]), TypeError, "extent of axis 0 to be a non-negative integer, got ");
    }
    for (const bad of [undefined, null, 12, "34", { length: 1 }, new Int32Array(2)]) {
      assertThrows(() => call(untyped(bad)), TypeError);
    }
  }
  // deno-lint-ignore no-sparse-arrays -- a hole is no extent
  assertThrows(() => new StridedLayout([1, , 3] as number[], null, 4), TypeError, "extent of axis 1");
  assertThrows(() => layout.reshaped([-1, -1]), RangeError, "at most one extent may be -1");
});

test("strides are integers, one per axis", () => {
  for (const bad of [1.5, NaN, Infinity, 2 ** 53]) {
    assertThrows(
      () => new StridedLayout([2, 3], [bad, 1], 4),
      RangeError,
      `stride of axis 0 to be an integer${limit(bad)}, got ${bad}`,
    );
  }
  assertThrows(() => new StridedLayout([2], [untyped("1")], 4), TypeError, 'got "1"');
  assertThrows(() => new StridedLayout([2, 3], [1], 4), RangeError, "one stride per axis of (2, 3), got 1: (1,)");
  assertThrows(() => new StridedLayout([2], untyped(undefined), 4), TypeError, "strides to be an array");
  assertThrows(() => new StridedLayout([2], untyped(1), 4), TypeError, "strides to be an array");
  const inBytes = { divideStrides: true };
  assertThrows(() => new StridedLayout([2, 3], [12, 6], 4, inBytes), RangeError, "got 6 for axis 1");
  assertEquals(new StridedLayout([2, 3], [-12, 4], 4, inBytes).strides, [-3, 1]);
  assertEquals(new StridedLayout([2, 3], null, 4, inBytes).strides, [3, 1]);
});

test("minus zero is zero, wherever it comes from", () => {
  const inBytes = { divideStrides: true };
  const layouts = [
    new StridedLayout([-0, 2], [-0, 1], 4),
    new StridedLayout([2], [-0], 4),
    new StridedLayout([2], [-0], 4, inBytes),
    new StridedLayout([-0], null, 4),
    StridedLayout.dense([-0, 3], 4),
    StridedLayout.dense([1], 4).broadcastTo([-0]),
    StridedLayout.dense([0], 4).reshaped([-0, 2]),
    StridedLayout.dense([3], 4).sliced(-0),
    StridedLayout.dense([1], 4).broadcastTo([3]).sliced(slice(null, null, -1)),
    new StridedLayout([2, 0], [-3, -1], 4).unsqueezed(1),
  ];
  for (const one of layouts) {
    const numbers = [...one.shape, ...one.strides, one.sliceOffset, one.volume, ...one.offsetBounds];
    assert(numbers.every((number) => !Object.is(number, -0)), String(one));
  }
});

test("a layout cannot be broadcast to fewer axes", () => {
  for (const shape of [[4], [], [3]]) {
    assertThrows(() => layout.broadcastTo(shape), RangeError, "Cannot broadcast (3, 4)");
    assertThrows(() => layout.broadcastTo(shape), RangeError, "it has 2 axes, too many");
  }
});

test("an itemsize is a positive number of bytes, or of eighths of one", () => {
  for (const bad of [0, -1, 1.5, NaN, Infinity, 0.3, 1 / 16, 2 ** 53]) {
    assertThrows(() => new StridedLayout([2], null, bad), RangeError, `itemsize to be a positive integer`);
    assertThrows(() => StridedLayout.dense([2], bad), RangeError, `got ${bad}`);
    assertThrows(() => layout.repacked(bad), RangeError, `got ${bad}`);
    assertThrows(() => layout.maxCompatibleItemsize({ max: bad }), RangeError, `got ${bad}`);
  }
  assertThrows(() => new StridedLayout([2], null, untyped("4")), TypeError, 'got "4"');
  for (const odd of [3, 7, 12, 0.125, 0.75]) assertEquals(new StridedLayout([2], null, odd).itemsize, odd);
  assertThrows(() => layout.maxCompatibleItemsize({ max: 2 }), RangeError, "at least the itemsize 4, got 2");
});

test("there are at most 64 axes", () => {
  const many = Array.from({ length: 65 }, () => 1);
  const most = StridedLayout.dense(many.slice(1), 4);
  assertEquals(most.ndim, 64);
  assertEquals(most.permuted(most.shape.map((_, axis) => 63 - axis)).ndim, 64);
  assertEquals(most.flattenedAxisMask(), 0xfffffffffffffffen);
  assertEquals(most.flattened({ mask: 1n << 63n }).ndim, 63);
  for (
    const call of [
      () => StridedLayout.dense(many, 4),
      () => new StridedLayout(many, null, 4),
      () => new StridedLayout(many, many, 4),
      () => layout.broadcastTo([...many, 3, 4]),
      () => StridedLayout.dense([1], 4).reshaped(many),
      () => most.unsqueezed(0),
      () => most.unsqueezed([0]),
      () => most.sliced(null),
    ]
  ) assertThrows(call, RangeError, "at most 64 dimensions, got 6");
});

test("axes are in range, and named once", () => {
  for (const bad of [2, -3, 100]) {
    assertThrows(() => layout.permuted([0, bad]), RangeError, `an axis from -2 to 1, got ${bad}`);
    assertThrows(() => layout.repacked(8, { axis: bad }), RangeError, `got ${bad}`);
    assertThrows(() => layout.flattened({ start: bad }), RangeError, `got ${bad}`);
    assertThrows(() => layout.flattened({ end: bad }), RangeError, `got ${bad}`);
    assertThrows(() => layout.maxCompatibleItemsize({ axis: bad }), RangeError, `got ${bad}`);
  }
  for (const bad of [3, -4]) assertThrows(() => layout.unsqueezed(bad), RangeError, `an axis from -3 to 2, got ${bad}`);
  for (const bad of [0.5, NaN]) assertThrows(() => layout.permuted([bad, 0]), RangeError, `axis to be an integer`);
  assertThrows(() => layout.permuted(untyped([0, "1"])), TypeError, 'got "1"');
  assertThrows(() => layout.permuted(untyped("CF")), TypeError, "axes to be an array");
  assertThrows(() => layout.permuted([0, 0]), RangeError, "axis 0 twice in (0, 0)");
  assertThrows(() => layout.permuted([1, -1]), RangeError, "axis 1 twice in (1, -1)");
  assertThrows(() => layout.permuted([0]), RangeError, "a permutation of 2 axes, got 1: (0,)");
  assertThrows(() => layout.unsqueezed([0, -4]), RangeError, "axis 0 twice in (0, -4)");
  const wide = StridedLayout.dense(Array.from({ length: 40 }, () => 1), 4);
  const axes = wide.shape.map((_, axis) => axis);
  assertThrows(() => wide.permuted(axes.with(0, 35)), RangeError, "axis 35 twice");
  assertThrows(() => wide.unsqueezed([38, 38]), RangeError, "axis 38 twice");
  // The bits of axes 3 and 35 must not be confused.
  assertEquals(wide.unsqueezed([3, 35]).ndim, 42);
  assertThrows(() => StridedLayout.dense([2, 3], 4, untyped("K")), TypeError, 'order to be "C", "F" or a permutation');
  assertThrows(() => StridedLayout.dense([2, 3], 4, [0, 0]), RangeError, "axis 0 twice");
  assertThrows(() => layout.toDense(untyped("c")), TypeError, 'got "c"');
  assertThrows(() => StridedLayout.dense([], 4).repacked(8), RangeError, "it has no axes");
});

test("indices are in range of their axes", () => {
  for (const bad of [3, -4, 42]) {
    assertThrows(() => layout.sliced(bad), RangeError, `Index ${bad} is out of range for axis 0 with extent 3`);
    assertThrows(() => layout.offsetOf(bad, 0), RangeError, `Index ${bad} is out of range for axis 0 with extent 3`);
  }
  assertThrows(() => layout.sliced(0, 4), RangeError, "Index 4 is out of range for axis 1 with extent 4");
  assertThrows(() => StridedLayout.dense([0], 4).sliced(0), RangeError, "Index 0 is out of range for axis 0");
  assertThrows(() => layout.sliced(0.5), RangeError, "index of axis 0 to be an integer, got 0.5");
  assertThrows(() => layout.sliced(NaN), RangeError, "got NaN");
  assertThrows(() => layout.sliced(untyped(true)), TypeError, "got true at position 0");
  assertThrows(() => layout.sliced(slice(), untyped("abc")), TypeError, 'got "abc" at position 1');
  assertThrows(() => layout.sliced(untyped({ start: 0, stop: 1, step: 1 })), TypeError, "an instance of Object");
  assertThrows(() => layout.sliced(untyped(undefined)), TypeError, "got undefined");
  assertThrows(() => layout.sliced(0, 0, 0), RangeError, "at most 2 indices for shape (3, 4), got 3");
  assertThrows(() => layout.sliced("...", "..."), RangeError, 'at most one "...", got 2');
  assertThrows(() => layout.offsetOf(0), RangeError, "2 indices for shape (3, 4), got 1");
});

test("a slice has integers or nothing, and a step", () => {
  assertThrows(() => slice(0, 1, 0), RangeError, "a non-zero integer, got 0");
  assertThrows(() => slice(0.5), RangeError, "start of a slice to be an integer or null, got 0.5");
  assertThrows(() => slice(0, NaN), RangeError, "stop of a slice");
  assertThrows(() => slice(0, 1, Infinity), RangeError, "step of a slice");
  assertThrows(() => slice(untyped("1")), TypeError, 'got "1"');
  assertThrows(() => slice(0, untyped(2n)), TypeError, "got 2n");
});

test("a mask names joins that can be made", () => {
  assertThrows(() => layout.flattened({ mask: 1n }), RangeError, "bits from 1 to 1 only, got 0x1 for 2 axes");
  assertThrows(() => layout.flattened({ mask: 4n }), RangeError, "got 0x4");
  assertThrows(() => layout.flattened({ mask: -2n }), RangeError, "got 0x-2");
  assertThrows(() => layout.flattened({ mask: untyped(2) }), TypeError, "mask to be a bigint, got 2");
  assertThrows(() => layout.transposed().flattened({ mask: 2n }), RangeError, "Cannot join axis 1 of (4, 3)");
  assertThrows(() => StridedLayout.dense([], 4).flattened({ mask: 2n }), RangeError, "got 0x2 for 0 axes");
});

test("a data pointer is an address", () => {
  assertThrows(() => layout.repacked(8, { dataPtr: untyped(4096) }), TypeError, "dataPtr to be a bigint, got 4096");
  assertThrows(() => layout.maxCompatibleItemsize({ dataPtr: -8n }), RangeError, "an address, got -8n");
});

test("layouts too large to count are refused, whichever extent is the large one", () => {
  const big = 2 ** 40;
  for (const shape of [[big, big, 0], [0, big, big], [big, 0, big]]) {
    assertEquals(new StridedLayout(shape, null, 4).volume, 0);
    assertEquals(StridedLayout.dense(shape, 4, "F").volume, 0);
    assertEquals(new StridedLayout(shape, [1, 1, 1], 4).volume, 0);
  }
  const widest = Array.from({ length: 63 }, () => 2 ** 52);
  assertEquals(new StridedLayout([...widest, 0], null, 1).volume, 0);
  assertEquals(StridedLayout.dense([1], 1).broadcastTo([...widest, 0]).volume, 0);
  assertEquals(StridedLayout.dense([0], 1).reshaped([...widest, 0]).volume, 0);
  assertThrows(() => new StridedLayout([big, big], null, 4), RangeError, "2^53 - 1 elements");
  assertThrows(() => StridedLayout.dense([1], 4).broadcastTo([big, big]), RangeError, "2^53 - 1 elements");
  assertThrows(
    () => StridedLayout.dense([1], 8).broadcastTo([2 ** 52, 1]).repacked(1),
    RangeError,
    "2^53 - 1 elements",
  );

  const atLimit = MAX_SPAN_IN_BYTES / 4;
  assertEquals(new StridedLayout([atLimit], null, 4).requiredSizeInBytes(), MAX_SPAN_IN_BYTES);
  assertThrows(() => new StridedLayout([atLimit + 1], null, 4), RangeError, "at most 2^52 bytes");
  assertThrows(() => StridedLayout.dense([atLimit + 1], 4), RangeError, "at most 2^52 bytes");
  assertThrows(() => new StridedLayout([2, 2], [atLimit - 1, -1], 4), RangeError, "at most 2^52 bytes");
  assertThrows(() => new StridedLayout([1], [atLimit + 1], 4), RangeError, "at most 2^52 bytes");
  assertEquals(new StridedLayout([2, 2], [atLimit - 2, -1], 4).offsetBounds, [-1, atLimit - 2]);
  assertThrows(
    () => StridedLayout.dense([1], 4).broadcastTo([atLimit + 1]).toDense(),
    RangeError,
    "at most 2^52 bytes",
  );
  // Counted in bits, these bytes exceed the limit.
  assertThrows(() => StridedLayout.dense([3 * 2 ** 48], 1).repacked(0.125), RangeError, "at most 2^52 bytes");
  // Steps beyond the end leave one element, whose stride is irrelevant.
  const one = StridedLayout.dense([5, 7], 4).sliced(slice(null, null, Number.MAX_SAFE_INTEGER));
  assertEquals([...one.shape], [1, 7]);
  assert(one.strides.every(Number.isSafeInteger));
});

test("the arrays that a layout was made of can change, and the layout does not", () => {
  const shape = [2, 3];
  const strides = [3, 1];
  const made = new StridedLayout(shape, strides, 4);
  const implicit = new StridedLayout(shape, null, 4);
  const dense = StridedLayout.dense(shape, 4);
  const wide = new StridedLayout([1, 3], null, 4).broadcastTo(shape);
  const reshaped = made.reshaped(shape);
  shape[0] = 99;
  strides[0] = 99;
  for (const one of [made, implicit, dense, reshaped]) {
    assertEquals(String(one), "StridedLayout(shape=(2, 3), strides=(3, 1), itemsize=4)");
  }
  assertEquals(wide.shape, [2, 3]);
});

test("whatever is passed, the result is a valid layout or a typed error", () => {
  const number = fc.oneof(
    { weight: 6, arbitrary: fc.integer({ min: -4, max: 6 }) },
    { weight: 1, arbitrary: fc.constantFrom(-0, 0.5, NaN, Infinity, 2 ** 31, 2 ** 40, 2 ** 52, 2 ** 53, -(2 ** 40)) },
    { weight: 1, arbitrary: fc.constantFrom<unknown>("1", 1n, null, undefined, true, {}, [], "...", slice(1)) },
  );
  const numbers = fc.oneof({ weight: 9, arbitrary: fc.array(number, { maxLength: 4 }) }, number);
  const operation = fc.oneof(
    fc.tuple(
      fc.constantFrom("permuted", "reshaped", "unsqueezed", "broadcastTo", "toDense", "repacked", "flattened"),
      numbers.map((argument) => [argument]),
    ),
    fc.tuple(fc.constant("repacked"), fc.tuple(number, fc.record({ axis: number, dataPtr: number, keepDim: number }))),
    fc.tuple(fc.constant("flattened"), fc.record({ start: number, end: number, mask: number }).map((one) => [one])),
    fc.tuple(fc.constantFrom("sliced"), fc.array(number, { maxLength: 4 })),
  );
  const start = fc.tuple(
    numbers,
    fc.oneof(numbers, fc.constant(null)),
    number,
    fc.constantFrom(undefined, {}, { divideStrides: true }),
  );
  check(
    fc.property(start, fc.array(operation, { maxLength: 3 }), ([shape, strides, itemsize, options], operations) => {
      let made: StridedLayout;
      try {
        made = new StridedLayout(untyped(shape), untyped(strides), untyped(itemsize), options);
        for (const [name, args] of operations) {
          const method: unknown = Reflect.get(made, name);
          assert(typeof method === "function");
          made = method.apply(made, args);
        }
      } catch (error) {
        assert(error instanceof RangeError || error instanceof TypeError, String(error));
        assert(/^(Expected|Cannot|Index|Unknown option) /.test(error.message), error.message);
        return;
      }
      assertInstanceOf(made, StridedLayout);
      for (const value of [...made.shape, ...made.strides, made.sliceOffset]) {
        assert(Number.isSafeInteger(value) && !Object.is(value, -0), String(made));
      }
      assert(made.shape.every((extent) => extent >= 0) && made.strides.length === made.shape.length);
      assert(made.itemsize > 0 && made.ndim <= 64);
      assertEquals(made.volume === 0, made.shape.includes(0));
      if (made.volume === 0) assertEquals(made.offsetBounds, [0, -1]);
      if (made.volume === 0 || made.volume > 5000) return;
      const { values } = gridOf(made);
      assertEquals(made.volume, values.length);
      assertEquals(made.offsetBounds, [Math.min(...values), Math.max(...values)]);
    }),
    12_000,
  );
});
