/**
 * The array interfaces: a view matches its description, in stream order, and every field of a description is checked.
 */
import { assert, assertEquals, assertInstanceOf, assertThrows } from "@std/assert";
import { test } from "node:test";
import type { ArrayInterface } from "../../src/public/dlpack.ts";
import {
  Cuda,
  type CudaDevice,
  CudaStream,
  DeviceMemoryResource,
  DType,
  ExchangeError,
  HostMemoryResource,
  MemoryBuffer,
  StridedMemoryView,
} from "../../mod.ts";
import { fromCudaArrayInterface } from "../../src/dlpack/array_interface.ts";
import { makeView } from "../../src/view/strided_memory_view.ts";
import { check, fc, scaled } from "../support/property.ts";
import { apart, positionsOf } from "../support/arrays.ts";
import { recordingDevice } from "../support/recording_driver.ts";

const dtypes = DType.all().filter(({ typestr }) => typestr !== null);
const shapes = fc.array(fc.nat(4), { maxLength: 4 });
const placed = fc.tuple(shapes, fc.constantFrom(...dtypes), fc.boolean()).chain(([shape, dtype, readonly]) =>
  apart(shape, dtype.itemsize).map(({ layout, offset, size }) => ({ layout, offset, size, dtype, readonly }))
);

/** Where each element lies, in C order. */
function addresses({ buffer, layout, offset }: StridedMemoryView): bigint[] {
  return positionsOf({ layout, offset, size: buffer.size }).map((position) => buffer.ptr + BigInt(position));
}

function assertSame(back: StridedMemoryView, view: StridedMemoryView): void {
  assertEquals(back.ptr, view.ptr);
  assertEquals(back.shape, view.shape);
  assertEquals(addresses(back), addresses(view)); // not strides: they are meaningless for axes with one element
  assertEquals(back.dtype, view.dtype);
  assertEquals(back.readonly, view.readonly);
  assertEquals(back.device, view.device);
}

test("the description matches the view: host memory", () => {
  check(fc.property(placed, ({ layout, offset, size, dtype, readonly }) => {
    const buffer = new HostMemoryResource().allocate(size);
    const view = StridedMemoryView.fromBuffer(buffer, { shape: [0], dtype, readonly, offset }).view({ layout });
    const back = StridedMemoryView.fromArrayInterface(view);
    assertSame(back, view);
    assertEquals(back.owner, view);
    assertEquals(view.__cuda_array_interface__, undefined);
    buffer.close();
  }));
});

test("the description matches the view: device memory, with its stream", () => {
  using cuda = Cuda.simulate();
  const device = cuda.device(0);
  using stream = device.createStream();
  using buffer = new DeviceMemoryResource(device).allocate(2 ** 20, { stream });
  check(
    fc.property(placed, ({ layout, offset, dtype, readonly }) => {
      const view = StridedMemoryView.fromBuffer(buffer, { shape: [0], dtype, readonly, offset }).view({ layout });
      assertEquals(view.toCudaArrayInterface().stream, stream.handle);
      assertEquals(view.__array_interface__, undefined);
      using back = StridedMemoryView.fromCudaArrayInterface(view, { device });
      assertSame(back, view);
      assertEquals(
        back.stream?.handle,
        stream.handle,
        "without a stream of its own the consumer is where the producer is",
      );
      using elsewhere = StridedMemoryView.fromCudaArrayInterface(view, { stream });
      assertSame(elsewhere, view);
    }),
    300,
  );
});

test("the description is the protocol's: strides in bytes or none, NULL for no elements, version 3", () => {
  const view = StridedMemoryView.fromTypedArray(new Float32Array(6), { shape: [2, 3] });
  assertEquals<unknown>(view.__array_interface__, {
    shape: [2, 3],
    typestr: "<f4",
    data: [view.ptr, false],
    strides: null,
    version: 3,
  });
  assertEquals(view.permuted([1, 0]).__array_interface__?.strides, [4, 12]);
  const empty = StridedMemoryView.fromTypedArray(new Int8Array(0), { shape: [0, 3] });
  assertEquals(empty.__array_interface__?.data, [0n, false]);
  assertEquals(StridedMemoryView.fromArrayInterface(empty).shape, [0, 3]);
  assertThrows(() => view.toCudaArrayInterface(), ExchangeError, "host memory");
  const bits = StridedMemoryView.fromTypedArray(new Uint16Array(2)).view({ dtype: "bfloat16" });
  assertThrows(() => bits.__array_interface__, ExchangeError, "bfloat16");
});

test("the legacy default stream is 1 and never 0, which is refused", () => {
  using cuda = Cuda.simulate();
  const device = cuda.device(0);
  using buffer = new DeviceMemoryResource(device).allocate(8, { stream: device.defaultStream });
  const view = StridedMemoryView.fromBuffer(buffer, { shape: [8], dtype: "int8" });
  const described = view.toCudaArrayInterface();
  assertEquals(described.stream, 1n);
  buffer.setHomeStream(CudaStream.fromHandle(device, 0n)); // the same stream by its ambiguous name
  assertEquals(view.toCudaArrayInterface().stream, 1n);
  for (const stream of [1, 1n, 2, 2n, null, undefined]) {
    using seen = StridedMemoryView.from({ __cuda_array_interface__: { ...described, stream } }, { device });
    assertEquals(seen.stream?.handle, BigInt(stream ?? 1)); // without a stream, the default one is fine
  }
  for (const stream of [0, 0n]) {
    const zero = { __cuda_array_interface__: { ...described, stream } };
    assertThrows(() => StridedMemoryView.from(zero, { device }), ExchangeError, "stream is 0");
  }
  assertThrows(
    () => StridedMemoryView.from({ __cuda_array_interface__: described }),
    ExchangeError,
    "pass { stream }",
  );
});

/** How a consumer imports a view. */
type Take = (source: StridedMemoryView, consumer: CudaStream) => StridedMemoryView;

const takes = {
  described: (source, stream) => StridedMemoryView.fromCudaArrayInterface(source, { stream }),
  seen: (source, stream) => StridedMemoryView.from(source, { stream }), // once the view itself, ignoring the stream
  // As Python objects are imported, which must be released, not only dropped.
  released: (source, stream) => fromCudaArrayInterface(source, { stream }, StridedMemoryView[makeView], () => {}),
  unordered: (source, { device }) => StridedMemoryView.fromCudaArrayInterface(source, { stream: null, device }),
} as const satisfies Record<string, Take>;

/** A producer fills memory on its stream, a consumer copies it on its own stream, and the producer fills it again. */
function borrow(device: CudaDevice, take: Take): { first: boolean; untouched: boolean } {
  const bytes = 256;
  const resource = new DeviceMemoryResource(device);
  using producer = device.createStream();
  using consumer = device.createStream();
  using shared = resource.allocate(bytes, { stream: producer });
  using copy = resource.allocate(bytes, { stream: consumer });
  using result = new HostMemoryResource().allocate(bytes);
  shared.fill(1, { stream: producer });
  device.synchronize();
  shared.fill(2, { stream: producer });
  const source = StridedMemoryView.fromBuffer(shared, { shape: [bytes], dtype: "uint8" });
  {
    using view = take(source, consumer);
    copy.copyFrom(view.buffer, { stream: consumer });
  }
  shared.fill(3, { stream: producer });
  copy.copyTo(result, { stream: consumer });
  device.synchronize();
  const seen = result.bytes();
  return { first: !seen.includes(1), untouched: !seen.includes(3) };
}

test("a consumer is ordered after the producer's work, and the producer's next work after the consumer's", () => {
  check(
    fc.property(fc.nat(), fc.constantFrom(takes.described, takes.seen, takes.released), (seed, take) => {
      using cuda = Cuda.simulate({ seed });
      assertEquals(borrow(cuda.device(0), take), { first: true, untouched: true });
    }),
    300,
  );
});

test("control: with stream null there is no order, and both read wrong bytes", () => {
  const seen = { early: 0, late: 0 };
  for (let seed = 0; seed < 200; seed++) {
    using cuda = Cuda.simulate({ seed });
    const { first, untouched } = borrow(cuda.device(0), takes.unordered);
    if (!first) seen.early++;
    if (!untouched) seen.late++;
  }
  assert(seen.early > 0 && seen.late > 0, `of 200 seeds ${seen.early} read too early, ${seen.late} too late`);
});

// Found by random programs: a consumer records its event on the named stream, on the memory's own device.
test("memory that is ordered on another device's stream is not described: its consumer would take it for one of its own", () => {
  using cuda = Cuda.simulate({ devices: 2 });
  const [one, other] = [cuda.device(0), cuda.device(1)];
  using created = other.createStream();
  for (const stream of [other.defaultStream, created]) {
    using buffer = new DeviceMemoryResource(one).allocate(4, { stream });
    const view = StridedMemoryView.fromBuffer(buffer, { shape: [4], dtype: "uint8" });
    assertThrows(() => view.toCudaArrayInterface(), ExchangeError, "a stream of device 1");
    buffer.setHomeStream(one.defaultStream);
    assertEquals(view.toCudaArrayInterface().stream, 1n);
  }
});

test("one wait at the import and one at its end, none of the host; none at all on the same stream or for null", () => {
  const { device, log } = recordingDevice();
  const stream: CudaStream = device.createStream();
  const source = (producer: bigint | null) => ({
    __cuda_array_interface__: { version: 3, shape: [4], typestr: "|u1", data: [4096, false], stream: producer },
  });
  const calls = (producer: bigint | null, options: Parameters<typeof StridedMemoryView.from>[1]) => {
    log.length = 0;
    StridedMemoryView.from(source(producer), options).close();
    return log.map((line) => line.split("(")[0]);
  };
  const wait = ["cuEventRecord", "cuStreamWaitEvent"];
  assertEquals(calls(7n, { stream }), [...wait, ...wait]);
  assertEquals(calls(stream.handle, { stream }), []);
  assertEquals(calls(7n, { stream: null, device }), []);
  assertEquals(calls(7n, { device }), []);
  assertEquals(calls(null, { stream }), []);
});

test("using a closed import is an error, and its owner can be collected", () => {
  const { device } = recordingDevice();
  using stream = device.createStream();
  const owner = { __cuda_array_interface__: { version: 2, shape: [4], typestr: "|u1", data: [4096n, true] } };
  for (const options of [{ device }, { stream }, { stream: null, device }]) {
    const view = StridedMemoryView.from(owner, options);
    assertEquals(view.owner, owner);
    assertEquals(view.readonly, true);
    view.close();
    view.close();
    assertThrows(() => view.ptr, TypeError, "closed");
    assertEquals(view.owner, undefined);
  }
});

test("masked and structured arrays are refused, but not a description that names its only field", () => {
  const plain = { version: 3, shape: [2], typestr: "<f4", data: [4096, false] };
  const from = (more: object) => StridedMemoryView.from({ __array_interface__: { ...plain, ...more } });
  assertThrows(() => from({ mask: {} }), ExchangeError, "mask");
  assertThrows(() => from({ typestr: "|V8", descr: [["x", "<f4"], ["y", "<f4"]] }), ExchangeError, "structures");
  assertThrows(() => from({ typestr: "|V2", descr: [["", "|V2"]] }), ExchangeError, "raw bytes");
  assertThrows(() => from({ strides: [3] }), ExchangeError, "stride");
  assertThrows(() => from({ data: [0, false] }), ExchangeError, "NULL");
  for (const version of [-1, 4]) assertThrows(() => from({ version }), ExchangeError, "expected 3 or older");
  assertEquals(from({ descr: [["", "<f4"]] }).dtype.name, "float32");
  assertEquals(from({ version: 0, strides: [-4], data: [8192, 1] }).strides, [-1]);
});

test("no description makes a view outside its buffer: the memory is what the description spans", () => {
  const memory = MemoryBuffer.fromPointer(8192n, 64);
  const view = StridedMemoryView.fromBuffer(memory, { shape: [4, 2], dtype: "int64" });
  const back = StridedMemoryView.from({ __array_interface__: view.sliced(1, null).__array_interface__ });
  assertEquals([back.buffer.ptr, back.buffer.size], [8192n + 16n, 16]);
  assertThrows(() => back.view({ layout: view.layout }), RangeError, "outside");
});

/** Values that are wrong in any field. */
const wild: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom(undefined, null, NaN, Infinity, -1, -1n, 0, 2 ** 53, 2n ** 64n, 1e300, "", "x", true, {}, [], [[]]),
  fc.integer(),
  fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }),
  fc.array(fc.oneof(fc.integer(), fc.bigInt(), fc.constantFrom(null, 2 ** 60, -0, 0.5, "1")), { maxLength: 70 }),
  fc.constantFrom("<f4", ">f4", "|O", "<M8[ns]", "<U3", "|V16", "<f3", "=i8", "bfloat16", "c"),
);

test("whatever a description says, it is imported as it says or refused, and no memory is read", () => {
  const { device, log } = recordingDevice();
  const good: ArrayInterface = { version: 3, shape: [2, 3], typestr: "<f4", data: [4096n, false], strides: [12, 4] };
  const keys = ["version", "shape", "typestr", "data", "strides", "descr", "mask", "stream"];
  const changes = fc.array(fc.tuple(fc.constantFrom(...keys), wild), { minLength: 1, maxLength: 3 });
  let [seen, refused] = [0, 0];
  check(
    fc.property(changes, fc.boolean(), (changed, onDevice) => {
      const description = { ...good, ...Object.fromEntries(changed) };
      const name = onDevice ? "__cuda_array_interface__" : "__array_interface__";
      try {
        const view = StridedMemoryView.from({ [name]: description }, { device });
        seen++;
        assertEquals([...view.shape], Array.from(description.shape, (extent) => Number(extent) + 0));
        if (view.layout.volume > 0) assertEquals(view.ptr, BigInt(description.data[0]));
        assertEquals(view.dtype, DType.from(description.typestr));
      } catch (error) {
        refused++;
        // An interface that is undefined counts as absent, and an object without one is no array.
        assertInstanceOf(error, ExchangeError, `${error}`);
      }
    }),
    60_000,
  );
  assert(seen > scaled(1500) && refused > scaled(36_000), `${seen} seen, ${refused} refused`);
  assertEquals(log, [], "no order is needed where no stream is given");
});

test("arrays in host memory are imported without a call of the driver, whatever stream is passed, by every protocol", () => {
  const { device, log } = recordingDevice();
  const stream = device.createStream();
  const calls: string[] = [];
  for (const group of Object.values(device.driver)) {
    for (const [name, call] of Object.entries(group)) {
      if (call === null) continue;
      Object.defineProperty(group, name, {
        value: (...args: never[]) => {
          calls.push(name);
          return (call as (...args: never[]) => unknown)(...args);
        },
      });
    }
  }
  log.length = 0;
  const view = StridedMemoryView.fromTypedArray(Float32Array.of(1, 2, 3, 4, 5, 6), { shape: [2, 3] });
  const sources = [
    Float32Array.of(1),
    view,
    { __dlpack__: (options: object) => view.__dlpack__(options), __dlpack_device__: () => view.__dlpack_device__() },
    { __array_interface__: view.__array_interface__ },
  ];
  for (const source of sources) {
    using seen = StridedMemoryView.from(source, { stream });
    seen.reshaped([seen.layout.volume]).sliced(0).toString();
    assertEquals(seen.device, null);
  }
  assertEquals(calls, []);
  device.synchronize();
  assert(calls.includes("cuCtxSynchronize"), "the calls are counted");
});

test("without a stream a producer of device memory is asked for the legacy default one, and with null for none", () => {
  const { device } = recordingDevice();
  const asked: unknown[] = [];
  const buffer = MemoryBuffer.fromPointer(4096n, 16, { device });
  const view = StridedMemoryView.fromBuffer(buffer, { shape: [16], dtype: "uint8" });
  const source = {
    __dlpack_device__: () => view.__dlpack_device__(),
    __dlpack__(options: { stream?: unknown }) {
      asked.push("stream" in options ? options.stream : "default");
      return view.toDlpack({ stream: null });
    },
  };
  const stream = device.createStream();
  for (const options of [{ device }, { device, stream: null }, { stream }]) {
    StridedMemoryView.from(source, options).close();
  }
  assertEquals(asked, ["default", null, stream]);
});

test("elements before address 0 and beyond 2^64 are refused, whatever else is right", () => {
  const typestr = "<f8";
  check(
    fc.property(fc.integer({ min: 1, max: 2 ** 20 }), fc.integer({ min: 2, max: 2 ** 10 }), (eights, count) => {
      const describe = (address: bigint, stride: number) => ({
        __array_interface__: { data: [address, false], shape: [count], strides: [stride], typestr, version: 3 },
      });
      const [low, high] = [8n * BigInt(eights), (1n << 64n) - 8n * BigInt(eights)];
      // From `low` down every multiple of 8 but 0 has room for an element, from `high` up every one.
      for (const [source, room] of [[describe(low, -8), eights], [describe(high, 8), eights]] as const) {
        if (count > room) assertThrows(() => StridedMemoryView.from(source), ExchangeError, "outside of memory");
        else assertEquals(StridedMemoryView.from(source).shape, [count]);
      }
    }),
    300,
  );
});
