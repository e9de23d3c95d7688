/** Copies that convert: every pair of types, on the host and by kernels, against converting element by element. */
import { assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { Cuda, DeviceMemoryResource, HostMemoryResource, type MemoryBuffer, StridedMemoryView } from "../../mod.ts";
import { DType, type DTypeName, type Scalar, StridedLayout } from "../../src/layout/mod.ts";
import { bytesOf, conversionOf, type NumberType } from "../../src/copy/conversion.ts";
import { convertHost } from "../../src/copy/host_conversion.ts";
import { check, fc } from "../support/property.ts";
import { apart, meeting, pattern, type Placed, positionsOf } from "../support/arrays.ts";
import { room, type Where } from "../support/buffers.ts";
import { convertedByHand, elements, pairsOfTypes, shown, stored } from "../support/numbers.ts";

interface Case {
  readonly from: NumberType;
  readonly to: NumberType;
  readonly source: Placed;
  readonly destination: Placed;
  /** Values of the elements, repeated as needed. */
  readonly values: readonly Scalar[];
  readonly seed: number;
}

function cases(from: NumberType, to: NumberType, shapes: fc.Arbitrary<readonly number[]>): fc.Arbitrary<Case> {
  return shapes.chain((shape) => {
    const sources = fc.oneof(
      { weight: 3, arbitrary: apart(shape, bytesOf(from)) },
      { weight: 1, arbitrary: meeting(shape, bytesOf(from)) },
    );
    return fc.record({
      from: fc.constant(from),
      to: fc.constant(to),
      source: sources,
      destination: apart(shape, bytesOf(to)),
      values: fc.array(elements(from), { minLength: 1, maxLength: 60 }),
      seed: fc.nat(),
    });
  });
}

const small = fc.array(fc.integer({ min: 0, max: 5 }), { maxLength: 3 });
/** With rows long enough to be moved at once. */
const rows = fc.oneof(small, fc.tuple(fc.nat(2), fc.integer({ min: 30, max: 70 })));
const large: fc.Arbitrary<readonly number[]> = fc.oneof(
  { weight: 2, arbitrary: small },
  { weight: 1, arbitrary: fc.tuple(fc.integer({ min: 8, max: 40 }), fc.integer({ min: 8, max: 40 })) },
);

/** Memory with values where the elements are, and other bytes everywhere else. */
function filled({ from, source, values, seed }: Case): Uint8Array<ArrayBuffer> {
  const bytes = pattern(source.size, seed);
  const dtype = DType.from(from.name);
  positionsOf(source).forEach((at, i) => {
    const value = values[i % values.length] ?? 0;
    if (value === true) bytes[at] = 1 + i % 255; // any nonzero byte is true
    else dtype.write(new DataView(bytes.buffer), at, value);
  });
  return bytes;
}

/** Lists the elements that are wrong, and whether any other byte has changed. */
function problems({ from, to, source, destination }: Case, before: Uint8Array, old: Uint8Array, now: Uint8Array) {
  const [read, written] = [DType.from(from.name), DType.from(to.name)];
  const view = (bytes: Uint8Array) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const sources = positionsOf(source);
  const rest = new Set(old.keys());
  const wrong: string[] = [];
  positionsOf(destination).forEach((at, i) => {
    const value = read.read(view(before), sources[i] ?? NaN) as Scalar; // one lane
    const expected = stored(written, convertedByHand(value, from, to));
    const got = shown(written.read(view(now), at));
    if (got !== expected) wrong.push(`${from.name} ${shown(value)} became ${to.name} ${got}, not ${expected}`);
    for (let byte = 0; byte < bytesOf(to); byte++) rest.delete(at + byte);
  });
  for (const byte of rest) if (now[byte] !== old[byte]) wrong.push(`byte ${byte} changed`);
  return wrong;
}

test("the host converts every element of every type by its value, and touches nothing else", () => {
  for (const { from, to } of pairsOfTypes) {
    if (conversionOf(DType.from(from.name), DType.from(to.name)) === null) continue; // a plain copy, no conversion
    check(
      fc.property(cases(from, to, rows), (drawn) => {
        const one = alignedCase(drawn);
        const before = filled(one);
        const old = pattern(one.destination.size, one.seed + 1);
        const now = old.slice();
        convertHost({ bytes: before, ...one.source }, { bytes: now, ...one.destination }, { from, to });
        assertEquals(problems(one, before, old, now), []);
      }),
      15,
    );
  }
});

function view(buffer: MemoryBuffer, { layout, offset }: Placed, { name }: NumberType): StridedMemoryView {
  const { shape, strides } = layout;
  const start = layout.volume === 0 ? 0 : offset + layout.sliceOffsetInBytes;
  return StridedMemoryView.fromBuffer(buffer, { shape, strides, dtype: DType.from(name), offset: start });
}

/** Aligns the start to an element, as memory usually is, except for some sizes. */
function aligned(placed: Placed, itemsize: number): Placed {
  const { layout, offset, size } = placed;
  if (size % 5 === 0) return placed;
  const moved = (itemsize - (offset + layout.sliceOffsetInBytes) % itemsize) % itemsize;
  return { layout, offset: offset + moved, size: size + moved };
}

function alignedCase(one: Case): Case {
  const { from, to, source, destination } = one;
  return { ...one, source: aligned(source, bytesOf(from)), destination: aligned(destination, bytesOf(to)) };
}

const places = fc.constantFrom<Where>("device", "device", "device", "pinned", "host");

test("kernels convert every element as the host does, wherever the two arrays are, in any layout", () => {
  const any = fc.constantFrom(...pairsOfTypes).chain(({ from, to }) => cases(from, to, large));
  check(
    fc.property(any, places, places, (drawn, here, there) => {
      const one = alignedCase(drawn);
      const { from, to } = one;
      using cuda = Cuda.simulate({ seed: one.seed });
      const { device, allocate, read } = room(cuda);
      const [before, old] = [filled(one), pattern(one.destination.size, one.seed + 1)];
      using source = allocate(here, before);
      using destination = allocate(there, old);
      const [src, dst] = [view(source, one.source, from), view(destination, one.destination, to)];
      using stream = device.createStream();
      dst.copyFrom(src, { stream, convert: true });
      stream.synchronize();
      assertEquals(problems(one, before, old, read(destination)), [], dst.explainCopyFrom(src, { convert: true }));
      assertEquals(read(source), before);
    }),
    100,
  );
});

test("kernels and the host convert every value of every type alike", () => {
  using cuda = Cuda.simulate();
  const { device, allocate, read } = room(cuda);
  for (const { from, to } of pairsOfTypes) {
    check(
      fc.property(fc.array(elements(from), { minLength: 100, maxLength: 200 }), (values) => {
        const dense = ({ name }: NumberType, offset = 0): Placed => {
          const layout = StridedLayout.dense([values.length], DType.from(name).itemsize);
          return { layout, offset, size: offset + layout.requiredSizeInBytes() };
        };
        const one: Case = { from, to, values, seed: 1, source: dense(from), destination: dense(to) };
        const conversion = conversionOf(DType.from(from.name), DType.from(to.name));
        for (const offset of conversion === null ? [] : [0, 1]) {
          const moved = { ...one, source: dense(from, offset), destination: dense(to, offset) };
          const [bytes, result] = [filled(moved), pattern(moved.destination.size, 2)];
          const was = result.slice();
          convertHost({ bytes, ...moved.source }, { bytes: result, ...moved.destination }, { from, to });
          assertEquals(problems(moved, bytes, was, result), []);
        }
        const [before, old] = [filled(one), pattern(one.destination.size, 2)];
        using source = allocate("device", before);
        using destination = allocate("device", old);
        view(destination, one.destination, to).copyFrom(view(source, one.source, from), { convert: true });
        device.synchronize();
        assertEquals(problems(one, before, old, read(destination)), []);
      }),
      1,
    );
  }
});

test("tiles convert where the order of the axes changes, whichever side has the larger elements", () => {
  using cuda = Cuda.simulate();
  const { device, allocate, read } = room(cuda);
  for (const { from, to } of pairsOfTypes) {
    const layout = StridedLayout.dense([2, 9, 11], bytesOf(from)).permuted([0, 2, 1]);
    const source: Placed = { layout, offset: 0, size: layout.requiredSizeInBytes() };
    const dense = StridedLayout.dense(layout.shape, bytesOf(to));
    const destination: Placed = { layout: dense, offset: 0, size: dense.requiredSizeInBytes() };
    const [values = []] = fc.sample(fc.array(elements(from), { minLength: 60, maxLength: 60 }), {
      numRuns: 1,
      seed: 5,
    });
    const one: Case = { from, to, source, destination, values, seed: 3 };
    const [before, old] = [filled(one), pattern(destination.size, 2)];
    using here = allocate("device", before);
    using there = allocate("device", old);
    view(there, destination, to).copyFrom(view(here, source, from), { convert: true });
    device.synchronize();
    assertEquals(problems(one, before, old, read(there)), []);
  }
});

test("one layout may hold elements of several types: each is converted separately", () => {
  using cuda = Cuda.simulate();
  const { device, allocate, read } = room(cuda);
  using source = allocate("device", new Uint8Array(Float32Array.of(1, 2, 3, 4).buffer));
  using destination = allocate("device", new Uint8Array(32));
  const floats = StridedMemoryView.fromBuffer(source, { shape: [4], dtype: "float32" });
  const doubles = StridedMemoryView.fromBuffer(destination, { shape: [4], dtype: "float64" });
  const results = [floats, floats.view({ dtype: "uint32" }), floats].map((one) => {
    doubles.copyFrom(one, { convert: true });
    device.synchronize();
    return [...new Float64Array(read(destination).buffer)];
  });
  assertEquals(results, [[1, 2, 3, 4], [0x3f800000, 0x40000000, 0x40400000, 0x40800000], [1, 2, 3, 4]]);
});

test("elements that are moved side by side and elements that are moved one by one do not share a kernel", () => {
  using cuda = Cuda.simulate();
  const { device, allocate, read } = room(cuda);
  const numbers = Float32Array.from({ length: 100 }, (_, i) => i);
  using source = allocate("device", new Uint8Array(numbers.buffer));
  for (const [shape, offset] of [[[25], 1], [[100], 0], [[25], 1]] as const) {
    using destination = allocate("device", new Uint8Array(200));
    const from = StridedMemoryView.fromBuffer(source, { shape, dtype: "float32", offset: 4 * offset });
    const to = StridedMemoryView.fromBuffer(destination, { shape, dtype: "float16", offset: 2 * offset });
    to.copyFrom(from, { convert: true });
    device.synchronize();
    const result = new Float16Array(read(destination).buffer).subarray(offset, offset + shape[0]);
    assertEquals(
      [...result],
      [...numbers.subarray(offset, offset + shape[0])],
      to.explainCopyFrom(from, { convert: true }),
    );
  }
});

test("a conversion within one memory takes the elements from before it", () => {
  for (const where of ["device", "host"] as const) {
    using cuda = Cuda.simulate();
    const { device, allocate, read } = room(cuda);
    using buffer = allocate(where, new Uint8Array(Int16Array.of(1, -2, 300, -400, 5, 6, 7, 8).buffer));
    const from = StridedMemoryView.fromBuffer(buffer, { shape: [4], dtype: "int16" });
    const to = StridedMemoryView.fromBuffer(buffer, { shape: [4], dtype: "float32" });
    to.copyFrom(from, { convert: true });
    device.synchronize();
    assertEquals([...new Float32Array(read(buffer).buffer)], [1, -2, 300, -400]);
  }
});

test("elements of another type are an error that names the way out, and unconvertible types are named", () => {
  const to = StridedMemoryView.fromTypedArray(new Float32Array(2));
  assertThrows(() => to.copyFrom(Float64Array.of(1, 2)), TypeError, "Pass { convert: true }");
  using buffer = new HostMemoryResource().allocate(2);
  const minifloats = StridedMemoryView.fromBuffer(buffer, { shape: [2], dtype: "float8_e4m3fn" });
  assertThrows(
    () => to.copyFrom(minifloats, { convert: true }),
    TypeError,
    "elements of float8_e4m3fn cannot be converted. Expected one of bool, int8",
  );
});

test("integers of one size are copied as they are, and every other conversion is reported", () => {
  using cuda = Cuda.simulate();
  const device = cuda.device(0);
  const allocate = () => new DeviceMemoryResource(device).allocate(64, { stream: device.defaultStream });
  using buffer = allocate();
  using other = allocate();
  const convert = { convert: true };
  const view = (dtype: DTypeName, memory = buffer) => StridedMemoryView.fromBuffer(memory, { shape: [2, 4], dtype });
  using host = new HostMemoryResource().allocate(64);
  const onHost = view("float64", host);
  const copied = "one copy of 32 bytes by the driver";
  assertEquals(view("uint32").explainCopyFrom(view("int32", other), convert), copied);
  assertEquals(
    view("uint32").explainCopyFrom(view("int32"), convert),
    `${copied}, by way of a copy, because the two may share memory`,
  );
  assertEquals(
    view("float32").explainCopyFrom(view("float64", other), convert),
    "a kernel over 8 elements, float64 to float32, 2 at a time, as 8, in the order of the destination",
  );
  assertEquals(
    view("float32").explainCopyFrom(onHost, convert),
    "brought to dense memory of the device, converted from float64 to float32 on the device",
  );
  assertEquals(
    onHost.explainCopyFrom(view("float32"), convert),
    "converted from float32 to float64 on the device, and copied from there",
  );
  using more = new HostMemoryResource().allocate(64);
  const longs = view("int64", more);
  assertEquals(onHost.explainCopyFrom(longs, convert), "8 elements from int64 to float64 by the host, by vectors");
});
