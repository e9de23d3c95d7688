/** Objects mistaken for arrays, and other mistakes of the first hour with views. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import * as arrow from "apache-arrow";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { createContext, runInContext } from "node:vm";
import { ArrowArray, Cuda, HostMemoryResource, slice, StridedLayout, StridedMemoryView } from "../../mod.ts";
import { check, fc } from "../support/property.ts";

test("a value that is nearly an array is refused, and the error names what makes an array of it", () => {
  const cases: readonly (readonly [unknown, string])[] = [
    [[1, 2], "StridedMemoryView.fromArray() copies nested arrays of numbers"],
    ["text", "new TextEncoder().encode(text)"],
    [new ArrayBuffer(2), "new Uint8Array(buffer)"],
    [{ data: Float32Array.of(1, 2), shape: [2], stride: [1], offset: 0 }, "StridedMemoryView.from(it.data)"],
    [arrow.vectorFromArray([1, 2]), "fromApacheArrow()"],
    [arrow.tableFromArrays({ x: [1, 2] }), "fromApacheArrow()"],
  ];
  for (const [source, wayOut] of cases) {
    assertThrows(() => StridedMemoryView.from(source), TypeError, wayOut);
    assertThrows(() => StridedMemoryView.fromTypedArray(source as Uint8Array), TypeError, wayOut);
  }
  const bytes = new DataView(new ArrayBuffer(2));
  assertThrows(() => StridedMemoryView.from(bytes), TypeError, "new Uint8Array(it.buffer, it.byteOffset, it.byteL");
  const others: readonly (readonly [unknown, string])[] = [
    [new Date(), "Date"],
    [(function* () {})(), "an instance of Generator"],
    [Object.create(null), "an object"],
    [undefined, "undefined"],
    [null, "null"],
    [5, "5"],
    ["hello", '"hello"'],
    ["a".repeat(41), "a string of 41 characters"],
    [() => 1, "a function"],
  ];
  for (const [source, word] of others) {
    assertThrows(() => StridedMemoryView.from(source), TypeError, `Cannot view ${word}: expected a typed array or an`);
    assertThrows(() => StridedMemoryView.fromArray(source as []), TypeError, `nested arrays, got ${word}`);
    assertThrows(() => StridedMemoryView.fromTypedArray(source as Uint8Array), TypeError, `array, got ${word}`);
  }
});

// Arrays of other contexts were said to lie in shared memory.
test("an array of another JavaScript context is refused as such, and its copy in this one is viewed", () => {
  const context = createContext({});
  for (const kind of ["Int32Array", "Float64Array", "BigInt64Array"] as const) {
    const make = () => {
      const there = runInContext(`new ${kind}(3)`, context) as Int32Array<ArrayBuffer>;
      assert(!(there.buffer instanceof ArrayBuffer));
      return there;
    };
    const message = "an array of another JavaScript context";
    assertThrows(() => StridedMemoryView.from(make()), TypeError, `Cannot view ${message}`);
    assertThrows(() => StridedMemoryView.fromTypedArray(make()), TypeError, `Cannot view ${message}`);
    using buffer = new HostMemoryResource().allocate(make().byteLength);
    assertThrows(() => buffer.copyFrom(make()), TypeError, `Cannot copy ${message}`);
    const here = new globalThis[kind](make() as never) as Int32Array<ArrayBuffer>;
    assertEquals(StridedMemoryView.from(here).shape, [3]);
  }
  const shared = new Int32Array(new SharedArrayBuffer(8)) as never;
  assertThrows(() => StridedMemoryView.from(shared), TypeError, "in shared memory, which has no address");
  using buffer = new HostMemoryResource().allocate(8);
  assertThrows(() => buffer.copyFrom(shared), TypeError, "Cannot copy a SharedArrayBuffer");
});

test("anything but a buffer is refused at once: bytes, an address, and the clone of a buffer", () => {
  const own = new HostMemoryResource().allocate(16);
  const view = { shape: [2], dtype: "int8" } as const;
  const cases: readonly (readonly [unknown, string])[] = [
    [new Uint8Array(2), "fromTypedArray() views a typed array"],
    [new ArrayBuffer(2), "MemoryBuffer.fromArrayBuffer()"],
    [own.ptr, "fromPointer()"],
    [structuredClone(own), "expected a MemoryBuffer"],
    [undefined, "Cannot view undefined as a buffer"],
  ];
  for (const [buffer, message] of cases) {
    assertThrows(() => StridedMemoryView.fromBuffer(buffer as never, view), TypeError, message);
  }
  assertEquals(StridedMemoryView.fromBuffer(own, view).shape, [2]);
});

test("extents that are given one by one are not mistaken for options: a shape is an array", () => {
  const zeros = StridedMemoryView.zeros as (...args: readonly unknown[]) => unknown;
  assertThrows(() => zeros(2, 3), TypeError, "Expected shape to be an array, got 2: write [2, 3]");
  assertThrows(() => zeros(2), TypeError, "Expected shape to be an array, got 2: write [2]");
});

test("a cloned layout, as for a Worker, is refused, and the call that the error names makes an equal one", () => {
  check(
    fc.property(fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 3 }), (shape) => {
      const size = shape.reduce((product, extent) => product * extent, 1);
      const view = StridedMemoryView.arange(size, "int32").reshaped(shape).T;
      const sent = structuredClone(view.layout);
      assertThrows(() => view.view({ layout: sent }), TypeError, "StridedLayout.from(layout)");
      const layout = StridedLayout.from(sent);
      assertEquals(view.view({ layout }).toArray(), view.toArray());
    }),
    50,
  );
  const view = StridedMemoryView.arange(3);
  const sent = structuredClone(slice(1, 2));
  assertThrows(() => view.sliced(sent), TypeError, "Expected an index to be an integer, slice()");
  assertEquals(view.sliced(slice(sent.start, sent.stop, sent.step)).toArray(), [1]);
});

test("JSON of a view is that of its elements, nested, at any depth and through a transpose", async () => {
  await check(fc.property(fc.array(fc.nat(3), { maxLength: 3 }), (shape) => {
    const size = shape.reduce((product, extent) => product * extent, 1);
    const values = Float64Array.from({ length: size }, (_, i) => i / 2);
    const view = StridedMemoryView.fromTypedArray(values, { shape });
    const nested = (axis: number, at: number): unknown => {
      const inner = shape.slice(axis + 1).reduce((product, extent) => product * extent, 1);
      const extent = shape[axis];
      if (extent === undefined) return values[at];
      return Array.from({ length: extent }, (_, i) => nested(axis + 1, at + i * inner));
    };
    assertEquals(JSON.parse(JSON.stringify({ view })), { view: nested(0, 0) });
  }));
  const table = StridedMemoryView.fromArray([[1, 2], [3, 4]]);
  assertEquals(JSON.stringify(table.T), "[[1,3],[2,4]]");
});

test("JSON of 64-bit integers has numbers that are exactly those, or is an error", () => {
  check(
    fc.property(fc.array(fc.bigInt(-(2n ** 54n), 2n ** 54n), { minLength: 1 }), fc.boolean(), (values, isMatrix) => {
      const array = BigInt64Array.from(values);
      const view = StridedMemoryView.fromTypedArray(array, { shape: isMatrix ? [1, array.length] : [array.length] });
      if (values.every((value) => Number.isSafeInteger(Number(value)))) {
        const numbers = values.map(Number);
        assertEquals(JSON.stringify({ view }), JSON.stringify({ view: isMatrix ? [numbers] : numbers }));
      } else assertThrows(() => JSON.stringify(view), TypeError, "at most 53 bits");
    }),
  );
  assertEquals(JSON.stringify(StridedMemoryView.fromTypedArray(BigUint64Array.of(7n), { shape: [] })), "7");
});

test("JSON of device memory says that the host cannot read it", () => {
  using cuda = Cuda.simulate();
  const there = StridedMemoryView.zeros([2], { device: cuda.device(0) });
  assertThrows(() => JSON.stringify(there), TypeError, "device memory");
});

// Only fromDlpack() and fromArrowDevice() took them.
test("what an array exports is viewed by the same call as any array, at the same address, and is taken", () => {
  const view = StridedMemoryView.arange(6, "int16").reshaped([2, 3]);
  for (const made of [view.toDlpack(), view.toArrowDevice()]) {
    const seen = StridedMemoryView.from(made);
    assertEquals([seen.ptr, seen.dtype.name, seen.toArray()], [view.ptr, "int16", view.toArray()]);
    assertEquals(made.released, false);
    seen.close();
    assertEquals(made.released, true);
  }
});

test("a description of an array says that it is none, and what is", () => {
  using cuda = Cuda.simulate();
  const there = StridedMemoryView.zeros([2], { device: cuda.device(0) });
  const described = there.toCudaArrayInterface();
  assertThrows(() => StridedMemoryView.from(described), TypeError, "{ __cuda_array_interface__: it }");
  const seen = StridedMemoryView.from({ __cuda_array_interface__: described }, { device: cuda.device(0) });
  assertEquals(seen.ptr, there.ptr);
});

// Tests of users passed, whatever the elements were.
test("functions that compare objects field by field take no arrays in different memory for equal", () => {
  const values = fc.array(fc.integer(), { minLength: 1, maxLength: 3 });
  check(
    fc.property(values, values, (one, other) => {
      const [mine, others] = [one, other].map((array) => StridedMemoryView.fromArray(array, "int32"));
      const arrow = [mine, others].map((view) => ArrowArray.from(view));
      for (const [a, b] of [[mine, others], [mine?.buffer, others?.buffer], arrow] as const) {
        assertEquals([isDeepStrictEqual(a, b), isDeepStrictEqual(a, a)], [false, true]);
        assertThrows(() => assertEquals(a, b));
      }
    }),
    20,
  );
});
