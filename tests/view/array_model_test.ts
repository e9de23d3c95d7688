/**
 * Views against a model: an array of values by index, with selecting and reshaping spelled out. Elements are read one
 * by one and compared.
 */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { DType, slice } from "../../src/layout/mod.ts";
import { StridedMemoryView } from "../../mod.ts";
import { MemoryBuffer } from "../../src/memory/memory_buffer.ts";
import { apart, pattern, positionsOf } from "../support/arrays.ts";
import { check, fc } from "../support/property.ts";
import { laidOut } from "../support/laid_out.ts";
import { permutations } from "../support/strided_oracle.ts";

/** An array as a function of its index. */
interface Model {
  readonly shape: readonly number[];
  readonly at: (index: readonly number[]) => number;
}

/** All indices of a shape, in C order. */
function indices(shape: readonly number[]): number[][] {
  return shape.reduce<number[][]>(
    (all, extent) => all.flatMap((index) => Array.from({ length: extent }, (_, place) => [...index, place])),
    [[]],
  );
}

/** The view of a placed layout with random numbers, and its model. */
const cases = fc.array(fc.integer({ min: 1, max: 4 }), { maxLength: 4 }).chain((shape) =>
  fc.record({ placed: apart(shape, 1), seed: fc.nat(1000), order: permutations(shape.length) })
).map(({ placed, seed, order }) => {
  const bytes = pattern(placed.size, seed);
  const buffer = MemoryBuffer.fromArrayBuffer(bytes.buffer, 0, bytes.length);
  const view = laidOut(buffer, { offset: placed.offset, layout: placed.layout, dtype: DType.from("uint8") });
  const { shape } = placed.layout;
  const positions = positionsOf(placed);
  const places = new Map(indices(shape).map((index, at) => [index.join(), bytes[positions[at] ?? NaN] ?? NaN]));
  const model: Model = { shape, at: (index) => places.get(index.join()) ?? NaN };
  return { view, model, order };
});

function assertIs(view: StridedMemoryView, { shape, at }: Model): void {
  assertEquals(view.shape, shape);
  assertEquals([view.ndim, view.size], [shape.length, indices(shape).length]);
  for (const index of indices(shape)) assertEquals(view.get(...index), at(index), `at ${index}`);
}

test("every other view of the same memory has the elements that it should", () => {
  check(
    fc.property(cases, ({ view, model, order }) => {
      const { shape, at } = model;
      assertIs(view, model);
      const reversed: Model = { shape: shape.toReversed(), at: (index) => at(index.toReversed()) };
      assertIs(view.T, reversed);
      assertIs(view.transposed(), reversed);
      assertIs(view.permuted(order), {
        shape: order.map((axis) => shape[axis] ?? NaN),
        at: (index) => at(shape.map((_, axis) => index[order.indexOf(axis)] ?? NaN)),
      });
      assertIs(view.unsqueezed(0), { shape: [1, ...shape], at: ([, ...rest]) => at(rest) });
      assertIs(view.broadcastTo([2, ...shape]), { shape: [2, ...shape], at: ([, ...rest]) => at(rest) });
      const long = shape.map((extent, axis) => [extent, axis] as const).filter(([extent]) => extent !== 1);
      assertIs(view.squeezed(), {
        shape: long.map(([extent]) => extent),
        at: (index) => at(shape.map((_, axis) => index[long.findIndex(([, place]) => place === axis)] ?? 0)),
      });
      const flat = indices(shape);
      assertIs(view.copy().flattened(), { shape: [flat.length], at: ([place]) => at(flat[place ?? NaN] ?? []) });
    }),
    400,
  );
});

test("iteration yields the views along the first axis, and reads nothing", () => {
  check(
    fc.property(cases, ({ view, model: { shape, at } }) => {
      if (shape.length === 0) {
        assertThrows(() => [...view], TypeError, "item() reads its element, and a.equals(b) compares views");
        return;
      }
      const rows = [...view];
      assertEquals(rows.length, shape[0]);
      rows.forEach((row, place) => assertIs(row, { shape: shape.slice(1), at: (index) => at([place, ...index]) }));
    }),
    200,
  );
});

test("a flattened view of elements that are not evenly spaced is refused with a way out", () => {
  const view = StridedMemoryView.arange(12).reshaped([3, 4]).sliced(slice(), slice(0, 3));
  assertThrows(() => view.flattened(), RangeError);
  assertEquals(view.copy().flattened().toArray(), [0, 1, 2, 4, 5, 6, 8, 9, 10]);
});

test("neighbours on the last axis are joined and split by types of other sizes, as their bytes say", () => {
  const sizes = ["uint8", "uint16", "float32", "float64"] as const;
  const args = fc.record({ rows: fc.nat(3), columns: fc.integer({ min: 1, max: 4 }), seed: fc.nat(1000) });
  check(
    fc.property(args, fc.constantFrom(...sizes), fc.constantFrom(...sizes), ({ rows, columns, seed }, from, to) => {
      const bytes = pattern(rows * columns * 8, seed);
      const whole = StridedMemoryView.fromTypedArray(bytes, { shape: [rows, columns * 8] });
      if (rows === 0) return;
      const seen = whole.view(from).view(to);
      assertEquals(seen.shape, [rows, columns * 8 / DType.from(to).itemsize]);
      assertEquals(seen.dtype.name, to);
      const memory = new DataView(bytes.buffer);
      for (const index of indices(seen.shape)) {
        const [row = 0, column = 0] = index;
        const expected = DType.from(to).read(memory, row * columns * 8 + column * seen.itemsize);
        assertEquals(seen.get(...index), expected as number);
      }
    }),
    300,
  );
  const odd = StridedMemoryView.fromTypedArray(new Uint8Array(9)).sliced(slice(1));
  assertThrows(() => odd.view("uint16"), RangeError, "is not aligned to 2 bytes. copy() first");
  assertEquals(odd.copy().view("uint16").size, 4);
  const apartFrom = StridedMemoryView.fromTypedArray(new Uint8Array(16), { shape: [4, 4] }).T;
  assertThrows(() => apartFrom.view("uint16"), RangeError, "its stride must be 1");
  const { buffer } = StridedMemoryView.zeros([9], "uint8");
  const askew = StridedMemoryView.fromBuffer(buffer, { shape: [8], dtype: "uint8", offset: 1 });
  assertThrows(() => askew.view("uint16"), RangeError, "is not aligned to 2 bytes");
  const packed = StridedMemoryView.zeros([6], "float4_e2m1fn_packed");
  packed.fill(1.5);
  assertEquals(packed.view("uint8").toArray(), [0x33, 0x33, 0x33]);
});

// Whether it succeeded depended on the address, and on where a slice began.
test("elements with lanes, and parts of arrays, are viewed wherever their numbers are aligned", () => {
  const pairs = fc.constantFrom(
    ["uint8", "uint8x3", 3] as const,
    ["uint16", "uint16x3", 3] as const,
    ["float32", "float32x3", 3] as const,
    ["float64", "complex128", 2] as const,
    ["float32", "complex64", 2] as const,
  );
  check(
    fc.property(pairs, fc.nat(7), fc.integer({ min: 1, max: 5 }), fc.nat(5), ([from, to, ratio], skip, count, row) => {
      const columns = ratio * count;
      const whole = StridedMemoryView.arange(skip + 6 * columns, { dtype: from });
      const part = whole.sliced(slice(skip)).reshaped([6, columns]).sliced(slice(row, null), slice());
      const seen = part.view(to);
      assertEquals(seen.shape, [6 - row, count]);
      assertEquals(
        numbersIn(seen.toArray()),
        Array.from({ length: (6 - row) * columns }, (_, i) => skip + row * columns + i),
      );
      assertEquals(seen.view(from).toArray(), part.toArray());
    }),
    200,
  );
});

/** The numbers in nested values: of lanes, and of both parts of complex numbers. */
function numbersIn(value: unknown): number[] {
  if (typeof value === "number") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(numbersIn) : [];
}

// The strides and the address of no elements were in the way.
test("no elements are viewed with another type as one row of them would be, and stay none", () => {
  const dtypes = fc.constantFrom("uint8", "int16", "float32", "float64", "complex128", "uint4_packed");
  const ofRows = fc.array(fc.nat(4), { minLength: 1, maxLength: 4 });
  check(
    fc.property(ofRows, fc.nat(3), dtypes, dtypes, fc.boolean(), (extents, none, from, to, isApart) => {
      const shape = extents.with(none % extents.length, 0);
      const row = StridedMemoryView.zeros([shape.at(-1) ?? 0], from);
      const empty = StridedMemoryView.zeros(shape, from).sliced("...", slice(null, null, isApart ? -1 : 1));
      let expected: number[] | null = null;
      try {
        expected = [...shape.slice(0, -1), row.size === 0 ? 0 : row.view(to).shape[0] ?? 0];
      } catch (error) {
        assert(error instanceof RangeError);
      }
      if (expected === null) assertThrows(() => empty.view(to), RangeError, "the last axis");
      else assertEquals([empty.view(to).shape, empty.view(to).dtype.name], [expected, to]);
    }),
    300,
  );
});

test("a view reports its sizes", () => {
  const view = StridedMemoryView.zeros([2, 3], "float32");
  assertEquals([view.ndim, view.size, view.itemsize, view.nbytes], [2, 6, 4, 24]);
  assert(view.isContiguous && !view.T.isContiguous && view.T.T.isContiguous);
});
