/** Arrays filled with a value: every element, nothing else, in order, on the host and on a device. */
import { assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { Cuda, slice, StridedMemoryView } from "../../mod.ts";
import { DType } from "../../src/layout/mod.ts";
import { MemoryBuffer } from "../../src/memory/memory_buffer.ts";
import { apart, pattern, positionsOf } from "../support/arrays.ts";
import { check, fc } from "../support/property.ts";
import { laidOut } from "../support/laid_out.ts";

const dtypes = ["bool", "int8", "uint16", "float16", "bfloat16", "float32", "int64", "complex128", "uint8x3"] as const;

/** Values of a dtype: some repeat a shorter pattern, some do not. */
function valuesOf(name: (typeof dtypes)[number]) {
  switch (name) {
    case "bool":
      return [true, false];
    case "int64":
      return [0n, -1n, 0x0101010101010101n, 0x0102030401020304n, 5n];
    case "complex128":
      return [{ re: 0, im: 0 }, { re: 1.5, im: -2 }];
    case "uint8x3":
      return [[1, 1, 1], [1, 2, 3]];
    case "int8":
      return [0, -1, 7];
    default:
      return [0, 1, 3, 257 % 256];
  }
}

test("every element has the value, and all other bytes are as they were", () => {
  const cases = fc.constantFrom(...dtypes).chain((name) =>
    fc.record({
      dtype: fc.constant(DType.from(name)),
      value: fc.constantFrom(...valuesOf(name)),
      placed: fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 3 })
        .chain((shape) => apart(shape, DType.from(name).itemsize)),
      seed: fc.nat(1000),
      onDevice: fc.boolean(),
      isAligned: fc.boolean(),
    })
  );
  check(
    fc.property(cases, ({ dtype, value, placed, seed, onDevice, isAligned }) => {
      using cuda = Cuda.simulate({ seed, schedule: "latest", check: true });
      using stream = cuda.device(0).createStream();
      const { itemsize } = dtype;
      // Kernels need elements whose size divides their address.
      const unit = onDevice || isAligned ? Math.max(1, itemsize & -itemsize) : 1;
      const offset = Math.ceil(placed.offset / unit) * unit;
      const bytes = pattern(placed.size + unit, seed);
      const expected = bytes.slice();
      for (const at of positionsOf({ ...placed, offset })) dtype.write(new DataView(expected.buffer), at, value);
      const memory = MemoryBuffer.fromArrayBuffer(bytes.buffer, 0, bytes.length);
      const whole = StridedMemoryView.fromBuffer(memory, { shape: [bytes.length], dtype: "uint8" });
      using there = whole.copy({ device: onDevice ? cuda.device(0) : "host", ...(onDevice && { stream }) });
      laidOut(there.buffer, { offset, layout: placed.layout, dtype }).fill(value as never);
      assertEquals(there.to("host").asTypedArray(), expected);
      assertEquals(cuda.reports, []);
    }),
    300,
  );
});

test("a fill on another stream is ordered after the home stream's earlier work and before its later work", () => {
  check(
    fc.property(fc.nat(1000), fc.constantFrom(1, 2), (seed, step) => {
      using cuda = Cuda.simulate({ seed, schedule: "latest", check: true });
      const device = cuda.device(0);
      using home = device.createStream();
      using other = device.createStream();
      using view = StridedMemoryView.zeros([8], { dtype: "float32", device, stream: home });
      view.buffer.fill(255, { stream: home });
      view.sliced(slice(null, null, step)).fill(1, { stream: other });
      using copy = view.copy({ stream: home });
      view.buffer.fill(0, { stream: home });
      assertEquals(copy.to("host").toArray().filter((value) => value === 1).length, 8 / step);
      assertEquals(cuda.reports, []);
    }),
    30,
  );
});

test("a contiguous fill of a device is one call of the driver, and a kernel does any other", () => {
  using cuda = Cuda.simulate();
  const device = cuda.device(0);
  using view = StridedMemoryView.zeros([4, 4], { dtype: "complex128", device });
  view.sliced(slice(1, 3)).fill({ re: 0, im: 0 });
  view.sliced(slice(), 1).fill({ re: 1, im: 2 });
  const zero = { re: 0, im: 0 };
  assertEquals(view.to("host").sliced(2).toArray(), [zero, { re: 1, im: 2 }, zero, zero]);
});

test("an impossible fill is an error that says why", () => {
  using cuda = Cuda.simulate();
  const view = StridedMemoryView.zeros([2], "int8");
  assertThrows(() => view.fill(128), RangeError, "Expected an integer from -128 to 127");
  assertThrows(() => view.fill("1" as unknown as number), TypeError, "Expected a number for int8");
  const gone = cuda.device(0).createStream();
  gone.close();
  assertThrows(() => view.fill(1, { stream: gone }), TypeError, "closed CudaStream");
  const there = StridedMemoryView.zeros([2], { dtype: "int8", device: cuda.device(0) });
  assertThrows(() => there.fill(1, { stream: gone }), TypeError, "closed CudaStream");
  there.close();
  assertThrows(() => there.fill(1), TypeError, "closed MemoryBuffer");
  assertEquals(view.toArray(), [0, 0]);
});
