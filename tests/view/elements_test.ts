/** Elements that the host reads and writes through a view, against the bytes where they must lie. */
import { assert, assertEquals, assertRejects, assertStrictEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { Cuda, HostMemoryResource, slice, StridedMemoryView, type TypedArray } from "../../mod.ts";
import { DType, type DTypeName, type ElementValue } from "../../src/layout/mod.ts";
import { MemoryBuffer } from "../../src/memory/memory_buffer.ts";
import { apart, pattern, type Placed, positionsOf } from "../support/arrays.ts";
import { check, fc } from "../support/property.ts";
import { laidOut } from "../support/laid_out.ts";
import { gridOf } from "../support/strided_oracle.ts";

/** Every dtype of whole bytes, and some with several lanes. */
const dtypes = [...DType.all().filter(({ isPacked }) => !isPacked), DType.from("float32x2"), DType.from("int64x2")];

interface Case {
  readonly dtype: DType;
  readonly placed: Placed;
  readonly seed: number;
}

const cases: fc.Arbitrary<Case> = fc.constantFrom(...dtypes).chain((dtype) =>
  fc.record({
    dtype: fc.constant(dtype),
    placed: fc.array(fc.integer({ min: 1, max: 3 }), { maxLength: 3 }).chain((shape) => apart(shape, dtype.itemsize)),
    seed: fc.nat(1000),
  })
);

function made({ dtype, placed: { layout, offset, size }, seed }: Case) {
  const bytes = pattern(size, seed);
  const buffer = MemoryBuffer.fromArrayBuffer(bytes.buffer, 0, size);
  return { bytes, view: laidOut(buffer, { offset, layout, dtype }) };
}

/** The index of each element in C order, and the same index in negative numbers. */
function indices(shape: readonly number[], volume: number): (readonly [number[], number[]])[] {
  return Array.from({ length: volume }, (_, place) => {
    let rest = place;
    const index = shape.toReversed().map((extent) => {
      const at = rest % extent;
      rest = Math.floor(rest / extent);
      return at;
    }).toReversed();
    return [index, index.map((at, axis) => at - (shape[axis] ?? 0))] as const;
  });
}

test("an element is read from its bytes, wherever it lies, and an index may count from the end", () => {
  check(
    fc.property(cases, (one) => {
      const { bytes, view } = made(one);
      const memory = new DataView(bytes.buffer);
      const expected = positionsOf(one.placed).map((at) => one.dtype.read(memory, at));
      indices(view.shape, view.size).forEach(([index, negative], place) => {
        assertEquals(view.get(...index), expected[place]);
        assertEquals(view.get(...negative), expected[place]);
      });
      if (view.ndim > 0) assertEquals(view.toArray().flat(view.ndim - 1), expected);
      if (view.size === 1) assertEquals(view.item(), expected[0]);
    }),
    1500,
  );
});

test("a set element has its value, and all other bytes are as they were", () => {
  check(
    fc.property(cases, fc.nat(), (one, any) => {
      const { bytes, view } = made(one);
      const before = bytes.slice();
      const place = any % view.size;
      const at = positionsOf(one.placed)[place] ?? NaN;
      const [index = []] = indices(view.shape, view.size)[place] ?? [];
      // A value that the type can represent: one of the view's own.
      const value = view.get(...index);
      if (isNan(value)) return;
      const expected = before.slice();
      one.dtype.write(new DataView(expected.buffer), at, value);
      bytes.fill(0, at, at + one.dtype.itemsize);
      view.set(value, ...index);
      assertEquals(bytes, expected);
    }),
    1500,
  );
});

function isNan(value: ElementValue): boolean {
  const parts = Array.isArray(value)
    ? value
    : typeof value === "object" && "re" in value
    ? [value.re, value.im]
    : [value];
  return parts.some((part) => Number.isNaN(part));
}

test("packed elements are read and written between their neighbours", () => {
  const view = StridedMemoryView.fromArray([1, 2, 3, 4, 5], "uint3_packed");
  assertEquals([view.get(1), view.get(-1)], [2, 5]);
  view.set(7, 2);
  assertEquals(view.toArray(), [1, 2, 7, 4, 5]);
  assertThrows(() => view.set(8, 0), RangeError, "Expected an integer from 0 to 7");
  assertThrows(() => view.asTypedArray(), TypeError);
});

test("the error for an invalid index says what was expected", () => {
  const view = StridedMemoryView.fromArray([[1, 2, 3], [4, 5, 6]]);
  assertThrows(() => view.get(1), RangeError, "Expected 2 indices for shape (2, 3), got 1");
  assertThrows(() => view.get(0, 0, 0), RangeError, "Expected 2 indices for shape (2, 3), got 3");
  for (const wrong of [2, -3]) {
    assertThrows(() => view.get(wrong, 0), RangeError, `Index ${wrong} is out of range for axis 0`);
  }
  assertThrows(() => view.get(0, 0.5), RangeError, "got 0.5");
  for (const wrong of ["0", 0n, null, undefined]) {
    const index = wrong as unknown as number;
    assertThrows(() => view.get(0, index), TypeError, "integer");
    assertThrows(() => view.set(1, 0, index), TypeError, "integer");
  }
  assertThrows(() => view.item(), RangeError, "expected 1 element, got 6");
});

test("a value of another type is refused, and so is writing through a read-only view", () => {
  const view = StridedMemoryView.zeros([2], "int64");
  view.set(5, 0);
  view.set(-6n, 1);
  assertEquals(view.toArray(), [5n, -6n]);
  assertThrows(() => view.set("5" as unknown as bigint, 0), TypeError, "Expected a bigint for int64");
  assertThrows(() => view.set(2n ** 63n, 0), RangeError, "Expected an integer from");
  // @ts-expect-error -- the compiler knows that elements of float32 are numbers
  assertThrows(() => StridedMemoryView.zeros([1], "float32").set(1n, 0), TypeError, "Expected a number for float32");
  const lasting = StridedMemoryView.fromBuffer(view.buffer, { shape: [2], dtype: "int64", readonly: true });
  assertThrows(() => lasting.set(1n, 0), TypeError, "Cannot write an element of a read-only view");
  assertThrows(() => lasting.fill(1n), TypeError, "Cannot fill a read-only view");
  assertEquals(lasting.get(0), 5n);
});

test("a value whose parts are code is read before the memory is: it may close it", () => {
  for (
    const [dtype, value] of [["complex64", (re: number) => ({ re, im: 2 })], [
      "float32x2",
      (x: number) => [x, 2],
    ]] as const
  ) {
    const view: StridedMemoryView = StridedMemoryView.zeros([2], dtype);
    const closing = value(1);
    Object.defineProperty(closing, Array.isArray(closing) ? 0 : "re", {
      get() {
        view.buffer.close();
        return 1;
      },
    });
    assertThrows(() => view.set(closing, 0), TypeError, "a closed MemoryBuffer of 16 bytes");
    const other: StridedMemoryView = StridedMemoryView.zeros([2], dtype);
    const own = new RangeError("it throws");
    const throwing = value(1);
    Object.defineProperty(throwing, Array.isArray(throwing) ? 1 : "im", {
      get() {
        throw own;
      },
    });
    assertEquals(assertThrows(() => other.set(throwing, 0)), own);
    assert(other.equals(StridedMemoryView.zeros([2], dtype)));
    other.set(value(1), 1);
    assertEquals(other.get(1), value(1));
  }
});

test("a view as a typed array shares its memory, of any class, and closing the buffer empties it", () => {
  const arrays: TypedArray[] = [
    ...[new Int8Array(6), new Uint8Array(6), new Int16Array(6), new Uint16Array(6), new Int32Array(6)],
    ...[new Uint32Array(6), new BigInt64Array(6), new BigUint64Array(6), new Float16Array(6), new Float32Array(6)],
    new Float64Array(6),
  ];
  for (const array of arrays) {
    const view = StridedMemoryView.fromTypedArray(array, { shape: [2, 3] }).sliced(1);
    const seen = view.asTypedArray();
    assertEquals(seen.constructor, array.constructor);
    view.set(typeof array[0] === "bigint" ? 7n : 7, 2);
    assertEquals([Number(seen[2]), seen.length], [7, 3]);
    StridedMemoryView.fromTypedArray(seen).fill(typeof array[0] === "bigint" ? 3n : 3);
    assertEquals(Number(array[3]), 3);
  }
  const buffer = new HostMemoryResource().allocate(16);
  const view = StridedMemoryView.fromBuffer(buffer, { shape: [4], dtype: "float32" });
  const seen = view.asTypedArray();
  buffer.close();
  assertEquals(seen.length, 0);
  assertThrows(() => view.asTypedArray(), TypeError, "closed");
  assertThrows(() => view.get(0), TypeError, "closed");
});

test("the memory of a read-only view is a typed array for callers that declare that they only read", () => {
  const own = Uint8Array.of(1, 2, 3);
  const view = StridedMemoryView.fromTypedArray(own);
  const lasting = StridedMemoryView.fromBuffer(view.buffer, { shape: [3], dtype: "uint8", readonly: true });
  for (const given of [[], [{}], [{ readonly: false }]] as const) {
    assertThrows(() => lasting.asTypedArray(...given), TypeError, "expected { readonly: true }");
  }
  assertThrows(() => lasting.sliced(1).asTypedArray(), TypeError, "read-only view");
  // @ts-expect-error -- no option
  assertThrows(() => lasting.asTypedArray({ readOnly: true }), TypeError, "did you mean readonly?");
  const [seen, same] = [lasting, view].map((one) => one.asTypedArray({ readonly: true }));
  view.set(2, 0);
  assertEquals([seen?.[0], same?.[0]], [2, 2]);
  const copy = lasting.copy().asTypedArray();
  copy[0] = 9;
  assertEquals([own[0], lasting.get(0), lasting.equals(view)], [2, 2, true]);
});

test("arithmetic with views is refused, naming libraries for it, and a view without axes is its element", () => {
  const view = StridedMemoryView.arange(3, "int32");
  const untyped: number = view as unknown as number;
  for (const ask of [() => untyped * 2, () => untyped + 1, () => +untyped, () => "x: " + untyped, () => untyped > 1]) {
    assertThrows(ask, TypeError, "views have no arithmetic. torch or NumPy");
  }
  assertThrows(
    () => Number(StridedMemoryView.zeros([1])),
    TypeError,
    "Cannot use a view of float64 (1,) as a number",
  );
  assertEquals([`${view}`, String(view), [view].join(), { "[0 1 2]": 5 }[view as unknown as "[0 1 2]"]], [
    ...["[0 1 2]", "[0 1 2]", "[0 1 2]"],
    5,
  ]);
  const one = (at: number) => view.sliced(at) as unknown as number;
  assertEquals([one(2) * 2, one(1) + 1, Number(one(2)), one(2) > one(1)], [4, 2, 2, true]);
  assertEquals(StridedMemoryView.full([], 5n) as unknown as bigint + 1n, 6n);
  const complex = StridedMemoryView.full([], { re: 1, im: 2 });
  assertThrows(() => Number(complex), TypeError, "Cannot use a view of complex128 () as a number");
  using cuda = Cuda.simulate();
  using there = view.sliced(1).to(cuda.device(0));
  assertThrows(() => Number(there), TypeError, "Cannot read an element of device memory from the host");
});

test("a view that is no typed array without a copy says why, and how to get one", () => {
  const view = StridedMemoryView.arange(6, "int32").reshaped([2, 3]);
  assertThrows(() => view.T.asTypedArray(), TypeError, "expected contiguous elements in C order");
  assertEquals(view.T.contiguous().asTypedArray(), Int32Array.of(0, 3, 1, 4, 2, 5));
  assertStrictEquals(view.contiguous().ptr, view.ptr);
  const odd = StridedMemoryView.fromTypedArray(new Uint8Array(9));
  const askew = StridedMemoryView.fromBuffer(odd.buffer, { shape: [2], dtype: "float32", offset: 1 });
  assertThrows(() => askew.asTypedArray(), TypeError, "copy().asTypedArray() is aligned");
  assertEquals(askew.copy().asTypedArray(), new Float32Array(2));
  assertThrows(() => StridedMemoryView.zeros([1], "bfloat16").asTypedArray(), TypeError, "bfloat16");
  assertEquals(StridedMemoryView.zeros([0, 3]).T.copy().asTypedArray().length, 0);
  assertEquals(StridedMemoryView.full([2], { re: 1, im: -2 }).asTypedArray(), Float64Array.of(1, -2, 1, -2));
});

test("the host cannot use elements of device memory, and the error names the call that copies them", async () => {
  using cuda = Cuda.simulate();
  using view = StridedMemoryView.full([2, 2], 1.5, { dtype: "float32", device: cuda.device(0) });
  const asks = [
    () => view.get(0, 0),
    () => view.set(1, 0, 0),
    () => view.sliced(0, 0).item(),
    () => view.toArray(),
    () => view.asTypedArray(),
  ];
  for (const ask of asks) assertThrows(ask, TypeError, "`await view.toTypedArray()` copies");
  assertThrows(() => view.asTypedArray(), TypeError, "Cannot view device memory as a typed array from the host");
  assertEquals(await view.toTypedArray(), new Float32Array(4).fill(1.5));
  assertEquals([...view].map((row) => row.shape), [[2], [2]]);
});

test("views are equal if their shapes, types and elements are, wherever they are", () => {
  check(
    fc.property(cases, (one) => {
      const { view } = made(one);
      const values = (view.ndim === 0 ? [view.get()] : view.toArray().flat(view.ndim - 1)) as ElementValue[];
      const isEqual = !values.some(isNan);
      assertEquals(view.equals(view), isEqual);
      assertEquals(view.equals(view.copy({ order: "F" })), isEqual);
      assert(!view.equals(view.unsqueezed(0)) && !view.equals(values));
    }),
    500,
  );
  const numbers = StridedMemoryView.fromArray([0, 1, 2]);
  assert(numbers.equals(StridedMemoryView.fromArray([-0, 1, 2])));
  assert(!numbers.equals(StridedMemoryView.fromArray([0, 1, 3])));
  assert(!numbers.equals(StridedMemoryView.fromArray([0, 1, 2], "float32")));
  assert(
    StridedMemoryView.fromTypedArray(Uint8Array.of(1, 0)).view("bool").equals(
      StridedMemoryView.fromTypedArray(Uint8Array.of(2, 0)).view("bool"),
    ),
  );
  using cuda = Cuda.simulate();
  using there = numbers.to(cuda.device(0));
  assert(there.equals(numbers) && numbers.equals(there));
  there.sliced(slice(1, 2)).fill(9);
  assert(!there.equals(numbers));
});

test("the compiler knows the elements of a view by its dtype", async () => {
  const view = StridedMemoryView.fromTypedArray(Float32Array.of(1, 2, 3, 4), { shape: [2, 2] });
  const numbers: Float32Array = await view.T.toTypedArray();
  const first: number = view.get(0, 0);
  const bytes: Uint8Array = view.view("uint8").asTypedArray();
  const long: BigInt64Array = await view.copy({ dtype: "int64" }).toTypedArray();
  const same: StridedMemoryView<"float32"> = StridedMemoryView.from(view).to("host").contiguous().sliced("...");
  const any: StridedMemoryView = view;
  assertEquals([...numbers], [1, 3, 2, 4]);
  assertEquals([first, bytes.length, long[3], same.ptr], [1, 16, 4n, any.ptr]);
  // @ts-expect-error -- not known for an arbitrary view
  const wrong: Float32Array = await any.toTypedArray();
  assertEquals(wrong, Float32Array.of(1, 2, 3, 4));
  const name: DTypeName = any.dtype.name;
  assertEquals(name, "float32");
  await assertRejects(() => StridedMemoryView.zeros([1], "bfloat16").toTypedArray(), TypeError, "bfloat16");
  assertEquals(gridOf(view.layout).values, [0, 1, 2, 3]);
});
