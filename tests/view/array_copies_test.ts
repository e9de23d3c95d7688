/** Copies of arrays into new memory: any layout, order, type and place, in stream order, under the checker. */
import { assert, assertEquals, assertStrictEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { Cuda, HostMemoryResource, slice, StridedMemoryView } from "../../mod.ts";
import { DType } from "../../src/layout/mod.ts";
import { MemoryBuffer } from "../../src/memory/memory_buffer.ts";
import { liveExports } from "../../src/order/reclaim.ts";
import { apart, pattern, positionsOf } from "../support/arrays.ts";
import { check, fc } from "../support/property.ts";
import { laidOut } from "../support/laid_out.ts";
import { permutations } from "../support/strided_oracle.ts";

const places = fc.constantFrom("host" as const, 0, 1);

test("a copy has the elements of the array in the order that was asked for, wherever the two are", () => {
  const cases = fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 3 }).chain((shape) =>
    fc.record({
      placed: apart(shape, 2),
      seed: fc.nat(1000),
      order: fc.oneof(fc.constantFrom("C", "F", "K" as const), permutations(shape.length)),
      from: places,
      to: places,
      lazy: fc.boolean(),
      stream: fc.boolean(),
    })
  );
  check(
    fc.property(cases, ({ placed, seed, order, from, to, lazy, stream }) => {
      using cuda = Cuda.simulate({ devices: 2, seed, schedule: lazy ? "latest" : "random", check: true });
      const bytes = pattern(placed.size, seed);
      const memory = new DataView(bytes.buffer);
      const expected = positionsOf(placed).map((at) => memory.getInt16(at, true));
      const buffer = MemoryBuffer.fromArrayBuffer(bytes.buffer, 0, bytes.length);
      const view = laidOut(buffer, { offset: placed.offset, layout: placed.layout, dtype: DType.from("int16") });
      const placeOf = (place: "host" | number) => place === "host" ? place : cuda.device(place);
      using start = view.copy({ order: "K", device: placeOf(from) });
      bytes.fill(0); // the copy has finished reading this memory
      const device = placeOf(to);
      using given = stream && device !== "host" ? device.createStream() : null;
      using copy = start.copy({ order, device, ...(given && { stream: given }) });
      assertEquals(copy.device, device === "host" ? null : device);
      if (copy.size > 0 && order === "C") assert(copy.layout.isContiguousC);
      if (copy.size > 0 && order === "F") assert(copy.layout.isContiguousF);
      assert(copy.layout.isDense);
      if (given !== null) assertEquals(copy.stream, given);
      const back = copy.to("host");
      assertEquals([...back.contiguous().asTypedArray()], expected);
      assertEquals(cuda.reports, []);
    }),
    150,
  );
});

test("a copy of another type has the values of the array", () => {
  using cuda = Cuda.simulate({ check: true });
  const view = StridedMemoryView.fromArray([[1, -2.5], [3, 1e6]], "float64");
  for (const device of ["host", cuda.device(0)] as const) {
    using copy = view.T.copy({ dtype: "float32", device });
    assertEquals(copy.dtype.name, "float32");
    assertEquals(copy.to("host").toArray(), [[1, 3], [-2.5, 1e6]]);
    using long = view.copy({ dtype: "int64", device });
    assertEquals(long.to("host").toArray(), [[1n, -2n], [3n, 1000000n]]);
  }
});

test("closing a copy frees its memory, and closing a view of memory that is in place already frees nothing", () => {
  using cuda = Cuda.simulate({ check: true });
  const device = cuda.device(0);
  const copy = StridedMemoryView.zeros([1000], { device });
  const before = device.memory.pool.use.used;
  const same = copy.to(device);
  assertStrictEquals(same.buffer, copy.buffer);
  same.close();
  copy.contiguous().close();
  assert(!copy.buffer.isClosed);
  copy.close();
  assert(copy.buffer.isClosed);
  device.synchronize();
  assert(device.memory.pool.use.used < before);
});

test("on another stream an array of the same device is ordered on both sides until the view is closed", () => {
  check(
    fc.property(fc.nat(1000), (seed) => {
      using cuda = Cuda.simulate({ seed, schedule: "latest", check: true });
      const device = cuda.device(0);
      using home = device.createStream();
      using other = device.createStream();
      using view = StridedMemoryView.full([4], 1, { dtype: "uint8", device, stream: home });
      {
        using seen = view.to(device, { stream: other });
        seen.buffer.fill(2, { stream: other });
      }
      assertEquals(view.to("host").toArray(), [2, 2, 2, 2]);
      assertEquals(cuda.reports, []);
    }),
    20,
  );
});

test("an invalid place, an unknown option and a stream of the wrong device are refused", () => {
  using cuda = Cuda.simulate({ devices: 2 });
  const view = StridedMemoryView.zeros([2]);
  for (const wrong of ["gpu", 0, null]) {
    assertThrows(() => view.to(wrong as unknown as "host"), TypeError, 'expected a CudaDevice, or "host"');
    assertThrows(() => view.copy({ device: wrong as unknown as "host" }), TypeError, "expected a CudaDevice");
  }
  assertThrows(() => view.copy({ dtype: "float8_e4m3fn" }), TypeError);
  const stream = cuda.device(0).createStream({ name: "gone" });
  stream.close();
  assertThrows(() => view.to(cuda.device(0), { stream }), TypeError, 'a closed CudaStream "gone"');
  assertThrows(() => view.copy({ order: [0, 0] }), RangeError);
  const used = cuda.devices.map((device) => device.memory.pool.use.used);
  assertEquals(used, [0, 0]);
});

test("a copy that fails leaves no memory behind", () => {
  using cuda = Cuda.simulate({ check: true });
  using view = StridedMemoryView.zeros([4], { dtype: "float8_e4m3fn", device: cuda.device(0) });
  const used = cuda.device(0).memory.pool.use.used;
  assertThrows(() => view.copy({ dtype: "float32" }), TypeError);
  cuda.device(0).synchronize();
  assertEquals(cuda.device(0).memory.pool.use.used, used);
});

test("an array of the host stays where it is", () => {
  using buffer = new HostMemoryResource().allocate(16, { name: "here" });
  const view = StridedMemoryView.fromBuffer(buffer, { shape: [4, 2], dtype: "int16" });
  assertEquals(view.to("host").ptr, view.ptr);
  assertEquals(view.sliced(slice(), 1).contiguous().strides, [1]);
});

// The import stayed until it was collected.
test("a copy from a foreign array returns it, and one from a view leaves it open", () => {
  const source = StridedMemoryView.fromArray([1, 2, 3]).copy();
  const foreign = { __dlpack__: () => source.toDlpack() } as unknown as StridedMemoryView; // as untyped code may pass
  const copied = StridedMemoryView.zeros([3]);
  copied.copyFrom(foreign);
  assertEquals([copied.toArray(), liveExports()], [[1, 2, 3], 0]);
  copied.copyFrom(source);
  assertEquals(copied.explainCopyFrom(foreign), copied.explainCopyFrom(source));
  const other = StridedMemoryView.zeros([3]);
  copied.copyTo(other);
  copied.copyTo({ __dlpack__: () => other.toDlpack() } as unknown as StridedMemoryView);
  assertEquals([other.toArray(), source.buffer.isClosed, liveExports()], [[1, 2, 3], false, 0]);
});
