/** Views print what NumPy prints for the same memory. */
import { assert, assertEquals, assertNotEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { CUresult } from "../../bindings/cuda_types.ts";
import {
  Cuda,
  CudaError,
  DeviceMemoryResource,
  DType,
  HostMemoryResource,
  type PyObject,
  Python,
  slice,
  StridedLayout,
  StridedMemoryView,
  type TypedArray,
} from "../../mod.ts";
import { internals } from "../../src/device/stream_internals.ts";
import { patiently } from "../support/child.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";
import { findPython } from "../support/python.ts";
import { apart, pattern } from "../support/arrays.ts";
import { intercept } from "../support/intercept.ts";
import { simulatorOf } from "../support/simulator_of.ts";
import { mlDtypes } from "../support/ml_dtypes.ts";

const found = findPython("numpy", "ml_dtypes");
/** NumPy 2.3 was the first to print float16 from 1e3 and float32 from 1e6 on with an exponent. */
const isOld = typeof found !== "string" && /^(1\.|2\.[0-2]\.)/.test(found.packages["numpy"] ?? "");
const missing = typeof found === "string" ? found : isOld ? "NumPy is older than 2.3: pip install -U numpy" : null;

function patient(
  [name, options]: ReturnType<typeof needs>,
): [name: string, options: { skip: boolean; timeout: number }] {
  return [name, { ...options, ...patiently }];
}

function text(): (view: StridedMemoryView) => string {
  const python = Python.open({ home: typeof found === "string" ? "" : found.executable });
  const asarray = python.import("numpy").$get("asarray");
  return (view) => {
    using array: PyObject = asarray.$call(view);
    return String(array);
  };
}

const plain = DType.all().filter(({ typestr }) => typestr !== null).map(({ name }) => name);
const floats = ["float16", "float32", "float64", "complex64", "complex128"];
const shape = fc.oneof(
  fc.array(fc.integer({ min: 0, max: 5 }), { maxLength: 4 }),
  fc.array(fc.integer({ min: 1, max: 3 }), { maxLength: 6 }),
  fc.constantFrom([30], [7, 9], [1000], [1001], [40, 26], [3, 400], [400, 3], [7, 7, 7, 7], [2, 2, 300], [6, 167], [
    11,
    10,
    10,
  ]),
);

test(...patient(needs(missing, "of any bytes, of every type, in every layout")), () => {
  const print = text();
  const arrays = fc.record({
    shape,
    name: fc.constantFrom(...plain, ...floats, ...floats, ...mlDtypes),
    seed: fc.nat(),
  });
  const placed = arrays.chain(({ shape, name, seed }) => {
    const dtype = DType.from(name);
    return apart(shape, dtype.itemsize).map((place) => ({ ...place, dtype, seed }));
  });
  check(
    fc.property(placed, ({ layout, offset, size, dtype, seed }) => {
      const buffer = new HostMemoryResource().allocate(size);
      const mask = dtype.bits < 8 ? 2 ** dtype.bits - 1 : 255; // unused bits carry no value
      buffer.bytes().set(pattern(size, seed).map((byte) => byte & mask));
      const view = StridedMemoryView.fromBuffer(buffer, { shape: [0], dtype, offset }).view({ layout });
      assertEquals(view.toString(), print(view));
    }),
    200,
  );
});

/** Everyday numbers, and numbers at which the format changes. */
const number = fc.oneof(
  fc.integer({ min: -20, max: 20 }),
  fc.integer({ min: -2000, max: 2000 }).map((value) => value / 100),
  fc.integer({ min: -100_000, max: 100_000 }).map((value) => value / 1000),
  fc.tuple(fc.integer({ min: -2000, max: 2000 }), fc.integer({ min: -12, max: 12 })).map(([a, b]) => a * 10 ** b),
  fc.tuple(fc.integer({ min: 1, max: 9 }), fc.integer({ min: -130, max: 130 })).map(([a, b]) => a * 2 ** b),
  fc.double({ min: -1, max: 1 }),
  fc.double({ min: -1e6, max: 1e6 }),
  fc.constantFrom(0, -0, NaN, Infinity, -Infinity, 1e-4, 9.9999e-5, 999.5, 1e3, 1e6, 1e8, 99999999, 1e16, 0.1, 1 / 3),
  fc.constantFrom(5e-324, 2 ** -24, 2 ** -149, 65504, 3.4028234663852886e38, 2 ** -44, 0.000244140625, 0.5, 1.5e-9),
);
/** Several of a kind, so that the format of an array is not always decided by an outlier. */
const numbers = fc.oneof(
  fc.array(number, { maxLength: 20 }),
  fc.array(fc.integer({ min: 1, max: 99_999 }).map((value) => value / 128), { maxLength: 20 }),
  fc.tuple(number, fc.array(fc.double({ min: 0.01, max: 10 }), { maxLength: 20 })).map(([base, factors]) =>
    factors.map((factor) => base * factor)
  ),
  fc.array(fc.constantFrom(0, -0, 1, NaN, Infinity, -Infinity, 0.5, -12.25), { maxLength: 20 }),
);

test(...patient(needs(missing, "of everyday numbers, in arrays and alone")), () => {
  const print = text();
  check(
    fc.property(numbers, fc.constantFrom(...floats, "bfloat16"), (values, name) => {
      const dtype = DType.from(name);
      const isComplex = name.startsWith("complex");
      const parts = isComplex ? values.slice(0, values.length - values.length % 2) : values;
      const bytes = new Uint8Array(parts.length * dtype.itemsize / (isComplex ? 2 : 1));
      const memory = new DataView(bytes.buffer);
      const part = isComplex ? DType.from(`float${dtype.bits / 2}`) : dtype;
      parts.forEach((value, i) => part.write(memory, i * part.itemsize, value));
      const buffer = StridedMemoryView.fromTypedArray(bytes).buffer;
      const count = bytes.length / dtype.itemsize;
      const view = StridedMemoryView.fromBuffer(buffer, { shape: [count], dtype });
      assertEquals(view.toString(), print(view));
      for (let i = 0; i < Math.min(count, 3); i++) assertEquals(view.sliced(i).toString(), print(view.sliced(i)));
    }),
    1000,
  );
});

function printed(array: TypedArray, shape?: readonly number[]): string {
  return StridedMemoryView.fromTypedArray(array, shape === undefined ? {} : { shape }).toString();
}

test("a matrix, a scalar, an empty array, signs, NaN and infinity, as written out here", () => {
  assertEquals(printed(Float32Array.of(1, 2, 3, 4), [2, 2]), "[[1. 2.]\n [3. 4.]]");
  assertEquals(printed(Float64Array.of(-0, NaN, -Infinity, 0.5)), "[-0.   nan -inf  0.5]");
  assertEquals(printed(Float64Array.of(1 / 3, 12345.678)), "[3.33333333e-01 1.23456780e+04]");
  assertEquals(printed(Int16Array.of(-1, 10, 200)), "[ -1  10 200]");
  assertEquals(printed(new BigUint64Array([2n ** 64n - 1n])), "[18446744073709551615]");
  assertEquals(printed(new Float32Array(0), [0, 3]), "[]");
  assertEquals(printed(Float32Array.of(2), []), "2.0");
  const bools = StridedMemoryView.fromTypedArray(Uint8Array.of(1, 0)).view({ dtype: "bool" });
  assertEquals(bools.toString(), "[ True False]");
  assertEquals(bools.sliced(0).toString(), "True");
  const complex = StridedMemoryView.fromTypedArray(Float32Array.of(1, -2)).view({
    dtype: "complex64",
    layout: StridedLayout.dense([1], 8),
  });
  assertEquals(complex.toString(), "[1.-2.j]");
});

test("of many elements only the corners are printed", () => {
  const many = Int32Array.from({ length: 1001 }, (_, i) => i);
  assertEquals(printed(many), "[   0    1    2 ...  998  999 1000]");
  assertEquals(printed(many.subarray(0, 1000)).includes("..."), false);
  const table = printed(Int32Array.from({ length: 1100 }, (_, i) => i), [11, 100]).split("\n");
  assertEquals(table.length, 7);
  assertEquals(table[3], " ...");
});

// Their widths were the arguments of one call of Math.max(): a RangeError.
test("of short axes, however many, every element is printed", () => {
  for (const [value, dtype] of [[1, "float64"], [1, "int32"], [{ re: 1, im: 0 }, "complex64"]] as const) {
    const text = `${StridedMemoryView.full(new Array<number>(17).fill(2), value, dtype)}`;
    assertEquals(text.match(/1/g)?.length, 2 ** 17, dtype);
  }
});

test("elements that NumPy does not have are printed, too: packed ones, and lanes as an axis", () => {
  const bytes = StridedMemoryView.fromTypedArray(Uint8Array.of(0x21, 0x43)).buffer;
  const packed = StridedMemoryView.fromBuffer(bytes, { shape: [4], dtype: "uint4_packed" });
  assertEquals(packed.toString(), "[1 2 3 4]");
  const pairs = StridedMemoryView.fromBuffer(bytes, { shape: [2], dtype: "uint4x2" });
  assertEquals(pairs.toString(), "[[1 2]\n [3 4]]");
});

test("device memory is printed as host memory is, in order, and little of it is read when little is printed", () => {
  using cuda = Cuda.simulate({ seed: 3 });
  const device = cuda.device(0);
  using stream = device.createStream();
  using buffer = new DeviceMemoryResource(device).allocate(4 * 10_000, { stream });
  using host = new HostMemoryResource().allocate(4 * 10_000);
  new Int32Array(host.bytes().buffer).forEach((_, i, all) => all[i] = i);
  buffer.fill(255, { stream });
  buffer.copyFrom(host, { stream });
  const options = { shape: [100, 100], dtype: "int32" } as const;
  const [ours, theirs] = [StridedMemoryView.fromBuffer(host, options), StridedMemoryView.fromBuffer(buffer, options)];
  let copied = 0;
  intercept(cuda.driver, "copy", ({ cuMemcpyDtoHAsync_v2 }) => ({
    cuMemcpyDtoHAsync_v2: (to, from, bytes, on) => {
      copied += Number(bytes);
      return cuMemcpyDtoHAsync_v2(to, from, bytes, on);
    },
  }));
  for (const part of [[], [slice(null, null, -1)], [3], [slice(2, 5), slice(null, null, 7)], [7, 7], [slice(0, 0)]]) {
    copied = 0;
    assertEquals(theirs.sliced(...part).toString(), ours.sliced(...part).toString());
    assert(copied <= 4 * 700, `${copied} bytes were read to print [${part.join(", ")}]`);
  }
  assertEquals(theirs.permuted([1, 0]).toString(), ours.permuted([1, 0]).toString());
});

test("if a part of it cannot be read, nothing is written afterwards to memory that was freed", () => {
  using cuda = Cuda.simulate({ schedule: "latest" });
  const simulated = simulatorOf(cuda);
  const device = cuda.device(0);
  using stream = device.createStream();
  using buffer = device.memory.allocate(4 * 10_000, { stream });
  const view = StridedMemoryView.fromBuffer(buffer, { shape: [100, 100], dtype: "int32" });
  buffer.fill(7, { stream });
  simulated.failNth("cuMemcpyDtoHAsync_v2", 2, CUresult.CUDA_ERROR_INVALID_VALUE);
  assertThrows(() => view.toString(), CudaError, "CUDA_ERROR_INVALID_VALUE");
  assertNotEquals(stream[internals].watcher, null, "the memory is kept until the stream has passed the first copy");
  stream.synchronize();
  assertEquals(stream[internals].watcher, null);
});

test("a closed buffer cannot be printed", () => {
  const buffer = new HostMemoryResource().allocate(4);
  const view = StridedMemoryView.fromBuffer(buffer, { shape: [4], dtype: "int8" });
  buffer.close();
  assertThrows(() => view.toString(), TypeError, "closed");
});
