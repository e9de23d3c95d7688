import { assert, assertEquals, assertRejects, assertStrictEquals, assertThrows } from "@std/assert";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { ffiPort } from "../../src/ffi/port.ts";
import { DType, slice, StridedLayout, type TypedArray } from "../../src/layout/mod.ts";
import { HostMemoryResource } from "../../src/memory/host_memory_resource.ts";
import { SimulatedDriver } from "../../src/public/sim.ts";
import { Cuda, DeviceMemoryResource } from "../../mod.ts";
import { MemoryBuffer } from "../../src/memory/memory_buffer.ts";
import { StridedMemoryView } from "../../src/view/strided_memory_view.ts";
import { gridOf, layouts, permutations, shapes, sliceItems } from "../support/strided_oracle.ts";
import { check, fc, scaled } from "../support/property.ts";
import { apart, copiedByHand, meeting, pattern, type Placed, positionsOf } from "../support/arrays.ts";
import { laidOut } from "../support/laid_out.ts";

const resource = new HostMemoryResource();

/** A JavaScript-owned buffer with a byte pattern, and the view of a placed layout in it. */
function viewOf({ layout, offset, size }: Placed, seed: number): { view: StridedMemoryView; bytes: Uint8Array } {
  const bytes = pattern(size, seed);
  const ptr = ffiPort().addressOf(bytes.buffer);
  const buffer = MemoryBuffer.fromPointer(ptr, size, { owner: bytes });
  const dtype = DType.from(`uint8x${layout.itemsize}`);
  const whole = StridedMemoryView.fromBuffer(buffer, { shape: [size], dtype: "uint8" });
  assertEquals(whole.ptr, ptr);
  return { view: laidOut(buffer, { offset, layout, dtype }), bytes };
}

test("a view is accepted exactly when every byte of every element lies inside the buffer", () => {
  const cases = fc.tuple(layouts([1, 2, 3, 4, 8, 16]), fc.nat(300), fc.integer({ min: -3, max: 3 }), fc.boolean());
  let accepted = 0;
  let refused = 0;
  check(
    fc.property(cases, ([layout, anyOffset, nudge, isTight]) => {
      // Near the limits, where a wrong comparison shows: offsets around the smallest valid one.
      const { values } = gridOf(layout);
      const least = -Math.min(0, ...values) * layout.itemsize;
      const offset = Math.max(0, isTight ? least + nudge : anyOffset);
      const end = offset + (Math.max(-1, ...values) + 1) * layout.itemsize;
      const size = Math.max(1, isTight ? end : end + nudge);
      const inside = positionsOf({ layout, offset, size })
        .every((start) => start >= 0 && start + layout.itemsize <= size);
      const buffer = MemoryBuffer.fromPointer(4096n, size);
      const dtype = DType.from(`uint8x${layout.itemsize}`);
      const make = () => laidOut(buffer, { offset, layout, dtype });
      if (inside) {
        const view = make();
        const expected = values.length === 0 ? 0n : 4096n + BigInt(offset + layout.sliceOffset * layout.itemsize);
        assertEquals(view.ptr, expected);
        accepted++;
      } else {
        assertThrows(make, RangeError, `of a buffer of ${size}: the layout reaches outside it`);
        refused++;
      }
    }),
    6000,
  );
  assert(
    Math.min(accepted, refused) > scaled(500),
    `the cases must be on both sides: ${accepted} accepted, ${refused} refused`,
  );
});

test("the refusal of a layout says what would be accepted", () => {
  using buffer = resource.allocate(16);
  const options = { shape: [3, 2], dtype: "float32" } as const;
  const error = assertThrows(() => StridedMemoryView.fromBuffer(buffer, options), RangeError);
  assertEquals(
    error.message,
    "Cannot view bytes 0 to 24 of a buffer of 16: the layout reaches outside it. Expected at least 24 bytes.",
  );
  const backwards = () =>
    StridedMemoryView.fromBuffer(buffer, { shape: [3], strides: [-1], dtype: "float32", offset: 4 });
  assertThrows(backwards, RangeError, "Expected at least 8 bytes and an offset of at least 8");
  for (const offset of [-1, 0.5, NaN]) {
    const make = () => StridedMemoryView.fromBuffer(buffer, { shape: [1], dtype: "uint8", offset });
    assertThrows(make, RangeError, `Cannot start ${offset} bytes into a buffer`);
  }
  const other = new StridedLayout([2], null, 8);
  const view = StridedMemoryView.fromBuffer(buffer, { shape: [4], dtype: "float32" });
  assertThrows(() => view.view({ layout: other }), RangeError, "expected an itemsize of 4");
  assertEquals(view.view({ layout: other, dtype: "int64" }).shape, [2]);
});

test("packed elements lie inside the buffer when their last bit does", () => {
  const buffer = MemoryBuffer.fromPointer(4096n, 2);
  for (const [count, isInside] of [[3, true], [4, true], [5, false]] as const) {
    const make = () => StridedMemoryView.fromBuffer(buffer, { shape: [count], dtype: "uint4_packed" });
    if (isInside) assertEquals(make().nbytes, 2);
    else assertThrows(make, RangeError, "Expected at least 3 bytes");
  }
});

test("slices, permutations and reshapes of a view have the same memory, where the oracle says", () => {
  const cases = layouts([1, 2, 4, 8]).filter(({ ndim }) => ndim > 0)
    .chain((layout) => fc.tuple(fc.constant(layout), sliceItems(layout.shape), permutations(layout.ndim)));
  check(
    fc.property(cases, ([layout, items, axes]) => {
      const { values } = gridOf(layout);
      const offset = -Math.min(0, ...values) * layout.itemsize;
      const size = offset + (Math.max(-1, ...values) + 1) * layout.itemsize;
      const buffer = MemoryBuffer.fromPointer(4096n, size);
      const dtype = DType.from(`uint8x${layout.itemsize}`);
      const view = laidOut(buffer, { offset, layout, dtype, readonly: true });
      const derived = [
        [view.sliced(...items), layout.sliced(...items)],
        [view.permuted(axes), layout.permuted(axes)],
        [view.sliced(...items).reshaped(view.sliced(...items).shape), layout.sliced(...items)],
        [view.view({ layout: layout.squeezed() }), layout.squeezed()],
      ] as const;
      for (const [part, expected] of derived) {
        assertEquals(gridOf(part.layout), gridOf(expected));
        assertStrictEquals(part.buffer, buffer);
        assertEquals(part.offset, offset);
        assert(part.readonly, "a part of a read-only view is read-only");
        assertEquals(part.nbytes, expected.volume * expected.itemsize);
      }
    }),
    1000,
  );
});

/** The element type of a view of each typed array class. */
const classes: readonly (readonly [string, string])[] = [
  ["Int8Array", "int8"],
  ["Uint8Array", "uint8"],
  ["Uint8ClampedArray", "uint8"],
  ["Int16Array", "int16"],
  ["Uint16Array", "uint16"],
  ["Int32Array", "int32"],
  ["Uint32Array", "uint32"],
  ["BigInt64Array", "int64"],
  ["BigUint64Array", "uint64"],
  ["Float16Array", "float16"],
  ["Float32Array", "float32"],
  ["Float64Array", "float64"],
];

type Constructor = new (buffer: ArrayBuffer, byteOffset?: number, length?: number) => TypedArray;

test("every class of typed array is viewed in place, whole or in part, at its own address", () => {
  for (const [className, dtype] of classes) {
    const arrayClass: Constructor = Reflect.get(globalThis, className);
    const memory = pattern(4096, 5);
    const start = ffiPort().addressOf(memory.buffer);
    check(
      fc.property(fc.nat(100), fc.nat(100), (skip, length) => {
        const { itemsize } = DType.from(dtype);
        const array = new arrayClass(memory.buffer, skip * itemsize, length);
        const view = StridedMemoryView.from(array);
        assertEquals(view.dtype.name, dtype);
        assertEquals(view.shape, [length]);
        assertEquals(view.strides, [length === 0 ? 0 : 1]);
        assertEquals(view.nbytes, array.byteLength);
        assertEquals(view.readonly, false);
        assertEquals(view.ptr, length === 0 ? 0n : start + BigInt(array.byteOffset));
        assertStrictEquals(view.owner, memory.buffer);
        assertEquals(view.device, null);
        assertEquals(view.stream, null);
        assertEquals([...view.buffer.bytes()], [...new Uint8Array(memory.buffer, array.byteOffset, array.byteLength)]);
      }),
      20,
    );
  }
});

test("small typed arrays are viewed at a stable address, and writes are seen from both sides", () => {
  // Bun keeps arrays of up to some tens of bytes in memory that moves when their buffer is first accessed.
  for (let length = 1; length <= 16; length++) {
    const arrays = [
      new Uint8Array(length),
      new Uint8Array(length).map((_, i) => i),
      Buffer.from(new Uint8Array(length)),
    ];
    for (const array of arrays) {
      const view = StridedMemoryView.fromTypedArray(array);
      const bytes = view.buffer.bytes();
      array[0] = 200;
      assertEquals(bytes[0], 200);
      bytes[length - 1] = 99;
      assertEquals(array[length - 1], 99);
      assert(array.buffer.byteLength >= length && array.subarray(0, 1).length === 1);
      bytes[0] = 7;
      assertEquals(array[0], 7);
      assertEquals(StridedMemoryView.fromTypedArray(array).ptr, view.ptr);
    }
  }
});

test("a typed array takes any shape with as many elements", () => {
  const array = new Float32Array(12);
  assertEquals(StridedMemoryView.fromTypedArray(array, { shape: [3, 4] }).strides, [4, 1]);
  assertEquals(StridedMemoryView.fromTypedArray(array, { shape: [2, 1, 6] }).shape, [2, 1, 6]);
  assertEquals(StridedMemoryView.fromTypedArray(array.subarray(3, 4), { shape: [] }).shape, []);
  assertEquals(StridedMemoryView.fromTypedArray(new Float32Array(), { shape: [0, 5] }).ptr, 0n);
  for (const shape of [[3, 5], [11], [], [0]]) {
    const error = assertThrows(() => StridedMemoryView.fromTypedArray(array, { shape }), RangeError);
    const expected = shape.reduce((product, extent) => product * extent, 1);
    assertEquals(error.message, `Cannot view 12 elements as shape (${shape.join(", ")}): expected ${expected}`);
  }
});

test("memory that may move or that threads share is refused, and so is anything but an array", () => {
  const shared = new Uint8Array(new SharedArrayBuffer(8)) as unknown as TypedArray; // its type excludes it
  assertThrows(() => StridedMemoryView.from(shared), TypeError, "shared memory");
  for (const length of [8, 0]) {
    const resizable = new ArrayBuffer(length, { maxByteLength: 64 });
    assertThrows(() => StridedMemoryView.from(new Uint8Array(resizable)), TypeError, "resizable");
  }
  for (const source of [new DataView(new ArrayBuffer(8)), new ArrayBuffer(8), {}, null, undefined, 3, "array", []]) {
    assertThrows(
      () => StridedMemoryView.from(source),
      TypeError,
      "expected a typed array or an object with one of",
    );
  }
});

test("a view of a view is the view itself", () => {
  const view = StridedMemoryView.fromTypedArray(new Int8Array(3));
  assertStrictEquals(StridedMemoryView.from(view), view);
  using cuda = Cuda.simulate();
  const device = cuda.device(0);
  using stream = device.createStream();
  assertStrictEquals(StridedMemoryView.from(view, { stream }), view, "memory of the host needs no order");
  using buffer = device.memory.allocate(8, { stream });
  const there = StridedMemoryView.fromBuffer(buffer, { shape: [8], dtype: "int8", readonly: true });
  for (const options of [{}, { stream }, { stream: null }, { device }]) {
    assertStrictEquals(StridedMemoryView.from(there, options), there);
  }
  using other = device.createStream();
  using ordered = StridedMemoryView.from(there, { stream: other });
  assertEquals([ordered.ptr, ordered.stream, ordered.readonly], [there.ptr, other, true]);
});

test("closing a view that is not an import leaves its buffer alone", () => {
  using buffer = resource.allocate(8);
  const view = StridedMemoryView.fromBuffer(buffer, { shape: [8], dtype: "uint8" });
  view.close();
  view[Symbol.dispose]();
  assertEquals(view.ptr, buffer.ptr);
});

test("a view of a closed buffer has neither an address nor elements", async () => {
  const buffer = resource.allocate(8);
  const view = StridedMemoryView.fromBuffer(buffer, { shape: [2], dtype: "float32" });
  buffer.close();
  assertThrows(() => view.ptr, TypeError, "a closed MemoryBuffer");
  assertThrows(() => view.copyFrom(new Float32Array(2)), TypeError, "a closed MemoryBuffer");
  assertThrows(() => view.toDlpack(), TypeError, "a closed MemoryBuffer");
  await assertRejects(() => view.toTypedArray(), TypeError, "a closed MemoryBuffer");
});

/** The part of WebAssembly used here, which both runtimes' types lack. */
const wasm = Reflect.get(globalThis, "WebAssembly") as {
  readonly Memory: new (size: { readonly initial: number }) => {
    readonly buffer: ArrayBuffer;
    grow(pages: number): number;
  };
};

test("a view of an ArrayBuffer that was transferred has no elements: its memory belongs to the receiver", async () => {
  const transfers: ((buffer: ArrayBuffer) => unknown)[] = [
    (buffer) => buffer.transfer(),
    (buffer) => structuredClone(buffer, { transfer: [buffer] }),
  ];
  for (const transfer of transfers) {
    const array = new Float32Array(1024);
    const view = StridedMemoryView.from(array);
    const part = view.sliced(slice(8, 16));
    const taken = transfer(array.buffer);
    for (const one of [view, part]) {
      assertThrows(() => one.ptr, TypeError, "Cannot use 4096 bytes of an ArrayBuffer that was transferred");
      assertThrows(() => `${one}`, TypeError, "transferred");
      assertThrows(() => one.buffer.bytes(), TypeError, "transferred");
      assertThrows(() => one.toDlpack(), TypeError, "transferred");
      assertThrows(() => one.toArrowDevice(), TypeError, "transferred");
      assertThrows(() => one.__array_interface__, TypeError, "transferred");
      assertThrows(() => one.copyTo(new Float32Array(one.shape[0] ?? 0)), TypeError, "transferred");
      await assertRejects(() => one.toTypedArray(), TypeError, "transferred");
    }
    assert(taken instanceof ArrayBuffer && taken.byteLength === 4096);
    assertEquals(StridedMemoryView.from(array).shape, [0], "the detached array is empty");
  }
  const memory = new wasm.Memory({ initial: 1 });
  const view = StridedMemoryView.from(new Uint8Array(memory.buffer));
  memory.grow(1);
  assertThrows(() => view.ptr, TypeError, "or of WebAssembly memory that grew: they may be gone");
  assertEquals(StridedMemoryView.from(new Uint8Array(memory.buffer)).shape, [2 ** 17], "the new ArrayBuffer");
});

/** Two arrays of one shape and itemsize; only elements of the source may share memory. */
const pairs = fc.tuple(shapes(), fc.constantFrom(1, 2, 4, 8, 16)).chain(([shape, itemsize]) =>
  fc.record({ source: meeting(shape, itemsize), destination: apart(shape, itemsize) })
);

test("copyFrom and copyTo move every element to the same index, whatever the layouts", () => {
  check(
    fc.property(pairs, fc.boolean(), ({ source, destination }, isTo) => {
      const { view: from, bytes } = viewOf(source, 3);
      const { view: to, bytes: target } = viewOf(destination, 4);
      const expected = copiedByHand(source, bytes, destination, target);
      if (isTo) from.copyTo(to);
      else to.copyFrom(from);
      assertEquals(target, expected);
    }),
    1000,
  );
});

test("a copy within one buffer has the elements from before it, however the two overlap", () => {
  check(
    fc.property(pairs, fc.nat(40), fc.nat(40), ({ source, destination }, first, second) => {
      const size = Math.max(first + source.size, second + destination.size);
      const memory = pattern(size, 6);
      const buffer = MemoryBuffer.fromPointer(ffiPort().addressOf(memory.buffer), size, { owner: memory });
      const at = (placed: Placed, by: number) => ({ layout: placed.layout, offset: placed.offset + by, size });
      const [from, to] = [at(source, first), at(destination, second)];
      const dtype = DType.from(`uint8x${source.layout.itemsize}`);
      const expected = copiedByHand(from, memory.slice(), to, memory);
      const view = (placed: Placed) => laidOut(buffer, { offset: placed.offset, layout: placed.layout, dtype });
      view(to).copyFrom(view(from));
      assertEquals(memory, expected);
    }),
    2000,
  );
});

test("moving an array by one element within its buffer duplicates none", () => {
  for (const length of [5, 500]) { // by a loop over bytes, and by a single copy
    const array = Uint8Array.from({ length }, (_, i) => i);
    const view = StridedMemoryView.fromTypedArray(array);
    view.sliced(slice(1)).copyFrom(view.sliced(slice(0, -1)));
    assertEquals([...array], [0, ...Array.from({ length: length - 1 }, (_, i) => i & 255)]);
  }
});

test("typed arrays are copied from and into as views of one axis", () => {
  const view = StridedMemoryView.fromTypedArray(new Int16Array([1, 2, 3, 4, 5, 6]), { shape: [2, 3] });
  const column = view.sliced(slice(), 1);
  const out = new Int16Array(2);
  column.copyTo(out);
  assertEquals([...out], [2, 5]);
  column.copyFrom(new Int16Array([-2, -5]));
  assertEquals([...view.buffer.bytes()], [...new Uint8Array(new Int16Array([1, -2, 3, 4, -5, 6]).buffer)]);
});

test("copies between different types or shapes, and into read-only views, are refused", () => {
  using buffer = resource.allocate(24);
  const view = StridedMemoryView.fromBuffer(buffer, { shape: [2, 3], dtype: "float32" });
  const readonly = StridedMemoryView.fromBuffer(buffer, { shape: [2, 3], dtype: "float32", readonly: true });
  assertThrows(() => readonly.copyFrom(view), TypeError, "read-only");
  assertThrows(() => readonly.sliced(0).copyFrom(new Float32Array(3)), TypeError, "read-only");
  assertThrows(() => view.copyTo(readonly.permuted([0, 1])), TypeError, "read-only");
  assertThrows(() => view.copyFrom(new Float32Array(6)), RangeError, "Cannot copy shape (6) into (2, 3)");
  assertThrows(() => view.copyFrom(view.permuted([1, 0])), RangeError, "Cannot copy shape (3, 2) into (2, 3)");
  assertThrows(() => view.copyFrom(new Float32Array(2)), RangeError, "Cannot copy shape (2) into (2, 3)");
  assertThrows(() => view.sliced(slice(), 0).copyFrom(view), RangeError, "Cannot copy shape (2, 3) into (2)");
  assertThrows(() => view.sliced(0).copyFrom(new Int32Array(3)), TypeError, "Cannot copy int32 into float32");
  readonly.copyTo(view); // reading is allowed
});

test("toTypedArray gives the elements in C order, in an array of their type that is the caller's own", async () => {
  const dtypes = DType.all().filter(({ typedArray }) => typedArray !== null);
  const cases = fc.constantFrom(...dtypes)
    .chain((dtype) => fc.tuple(fc.constant(dtype), shapes(3).chain((shape) => meeting(shape, dtype.itemsize))));
  await check(
    fc.asyncProperty(cases, async ([dtype, placed]) => {
      const { view: raw, bytes } = viewOf(placed, 8);
      const view = raw.view({ dtype });
      const array = await view.toTypedArray();
      assert(dtype.typedArray !== null && array instanceof dtype.typedArray);
      const dense = { layout: StridedLayout.dense(placed.layout.shape, dtype.itemsize), offset: 0, size: view.nbytes };
      const expected = copiedByHand(placed, bytes, dense, new Uint8Array(view.nbytes));
      assertEquals(new Uint8Array(array.buffer, array.byteOffset, array.byteLength), expected);
      bytes.fill(0);
      assertEquals(new Uint8Array(array.buffer, array.byteOffset, array.byteLength), expected, "a copy, not a view");
    }),
    1000,
  );
});

test("element types without a typed array are refused by name", async () => {
  for (const dtype of DType.all().filter(({ typedArray }) => typedArray === null)) {
    const buffer = MemoryBuffer.fromPointer(4096n, 64);
    const view = StridedMemoryView.fromBuffer(buffer, { shape: [4], dtype });
    await assertRejects(() => view.toTypedArray(), TypeError, `Cannot make a typed array of ${dtype.name}`);
  }
});

test("device memory is read after its home stream's work, in C order, without blocking", async () => {
  using cuda = Cuda.simulate({ schedule: "latest" });
  const device = cuda.device(0);
  using stream = device.createStream();
  using buffer = new DeviceMemoryResource(device).allocate(32, { stream });
  const view = StridedMemoryView.fromBuffer(buffer, { shape: [2, 2], dtype: "float64" });
  view.copyFrom(StridedMemoryView.fromTypedArray(new Float64Array([1, 2, 3, 4]), { shape: [2, 2] }));
  const simulated = SimulatedDriver.of(cuda.driver);
  assertEquals([...await view.permuted([1, 0]).toTypedArray()], [1, 3, 2, 4]);
  assertEquals(simulated?.calls("cuStreamSynchronize"), 0);
});
