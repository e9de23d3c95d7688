/**
 * Importing tensors: round trips of our own, tensors written by hand, and refusals.
 */
import { assert, assertEquals, assertStrictEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { Cuda, ExchangeError } from "../../mod.ts";
import type { ImportOptions } from "../../src/public/dlpack.ts";
import { CudaStream } from "../../src/device/stream.ts";
import { DlpackTensor, type ToDlpackOptions } from "../../src/dlpack/tensor.ts";
import { liveExports } from "../../src/order/reclaim.ts";
import { DType, StridedLayout } from "../../src/layout/mod.ts";
import { HostMemoryResource } from "../../src/memory/host_memory_resource.ts";
import { StridedMemoryView } from "../../src/view/strided_memory_view.ts";
import { gridOf, layouts, shapes } from "../support/strided_oracle.ts";
import { check, fc } from "../support/property.ts";
import { pattern } from "../support/arrays.ts";
import { laidOut } from "../support/laid_out.ts";
import { CountingDeleter, foreignTensor, type ForeignTensorOptions, type Kind } from "../support/raw_dlpack.ts";
import { recordingDevice } from "../support/recording_driver.ts";

const resource = new HostMemoryResource();
const maxVersion: { readonly [K in Kind]: readonly [number, number] } = { versioned: [1, 3], legacy: [0, 8] };

/** A foreign tensor to import. */
function tensorAt(ptr: bigint, kind: Kind): DlpackTensor {
  return new DlpackTensor(ptr, kind === "versioned" ? [1, 3] : null, { isReleased: () => false });
}

/** Asserts that a foreign tensor is refused with this message, and still belongs to the caller. */
function assertRefused(ptr: bigint, kind: Kind, options: ImportOptions, message: string): void {
  const tensor = tensorAt(ptr, kind);
  assertThrows(() => StridedMemoryView.fromDlpack(tensor, options), ExchangeError, message);
  assertEquals(tensor.take(), ptr); // so that it is not released later
}

/** Every element type of DLPack, one lane and several, packed ones included. */
const dtypes = DType.all().flatMap((dtype) => {
  if (dtype.isPacked) return [dtype];
  const lanes = dtype.bits < 8 ? [2, 4, 8] : [2, 3, 16];
  return [dtype, ...lanes.map((count) => DType.from(`${dtype.name}x${count}`))];
});

/** Layouts for an element type; for packed elements only dense ones, as others may begin inside a byte. */
function layoutsFor(dtype: DType): fc.Arbitrary<StridedLayout> {
  if (!dtype.isPacked) return layouts([dtype.itemsize]);
  return shapes().map((shape) => StridedLayout.dense(shape, dtype.itemsize));
}

test("an exported view is imported as it was: address, layout, type, bytes and whether it may be written", () => {
  const cases = fc.constantFrom(...dtypes).chain((dtype) =>
    fc.record({
      dtype: fc.constant(dtype),
      layout: layoutsFor(dtype),
      slack: fc.nat(30),
      kind: fc.constantFrom<Kind>("versioned", "versioned", "legacy"),
      readonly: fc.boolean(),
    })
  );
  const seen = new Set<string>();
  check(
    fc.property(cases, ({ dtype, layout, slack, kind, readonly }) => {
      const { values } = gridOf(layout);
      const offset = slack - Math.floor(Math.min(0, ...values) * layout.itemsize);
      const size = Math.ceil(offset + (Math.max(-1, ...values) + 1) * layout.itemsize) + slack;
      using buffer = resource.allocate(size);
      buffer.bytes().set(pattern(size, slack));
      const view = laidOut(buffer, { offset, layout, dtype, readonly });
      if (kind === "legacy" && (readonly || dtype.dlpack.padded)) return; // refused: see the export tests
      const tensor = view.toDlpack({ maxVersion: maxVersion[kind] });
      using back = StridedMemoryView.fromDlpack(tensor);
      assertEquals(back.ptr, view.ptr);
      assertEquals(back.shape, view.shape);
      assertEquals(back.strides, view.strides);
      assertEquals(back.dtype.name, dtype.name);
      assertEquals(back.readonly, readonly);
      assertEquals([back.device, back.stream], [null, null]);
      assertStrictEquals(back.owner, tensor);
      assertEquals(liveExports(), 1);
      if (values.length > 0) {
        // Exactly the bytes from the first element to the last.
        const start = Math.floor(offset + Math.min(...values) * layout.itemsize);
        const end = Math.ceil(offset + (Math.max(...values) + 1) * layout.itemsize);
        assertEquals(back.buffer.ptr, buffer.ptr + BigInt(start));
        assertEquals([...back.buffer.bytes()], [...buffer.bytes().subarray(start, end)]);
      } else assertEquals([back.buffer.ptr, back.buffer.size], [0n, 0]);
      seen.add(`${dtype} ${kind}`);
      back.close();
      back.close();
      assertEquals(liveExports(), 0);
      assertThrows(() => back.ptr, TypeError, "Cannot use a closed MemoryBuffer");
    }),
    12_000,
  );
  for (const dtype of dtypes) assert(seen.has(`${dtype} versioned`), `${dtype} was never tried`);
});

test("a tensor's deleter is called once, with the tensor, when the import is closed", () => {
  using deleter = new CountingDeleter();
  for (const kind of ["versioned", "legacy"] as const) {
    using memory = resource.allocate(64);
    const foreign = foreignTensor(kind, { shape: [4], strides: [1], data: memory.ptr, deleter: deleter.address });
    const view = StridedMemoryView.fromDlpack(tensorAt(foreign.ptr, kind));
    const part = view.sliced(2);
    assertEquals(deleter.callsFor(foreign.ptr), 0);
    part.close(); // a part of an import releases nothing
    assertEquals(deleter.callsFor(foreign.ptr), 0);
    view.close();
    assertEquals(deleter.callsFor(foreign.ptr), 1);
    view.close();
    view.buffer.close();
    assertEquals(deleter.callsFor(foreign.ptr), 1);
    assertEquals(view.owner, undefined);
    foreign.free();
  }
  assertEquals(deleter.calls.size, 2);
});

const bothKinds: readonly Kind[] = ["versioned", "legacy"];

/** Valid tensors written by hand, and the view that each must become. */
const rightTensors: readonly {
  readonly what: string;
  readonly kinds?: readonly Kind[];
  readonly tensor: ForeignTensorOptions;
  /** Bytes from the tensor's data pointer to the view's first element. */
  readonly at: number;
  readonly expected: Partial<Pick<StridedMemoryView, "shape" | "strides" | "readonly">> & { readonly dtype?: string };
}[] = [
  { what: "a byte offset", tensor: { shape: [4], strides: [1], byteOffset: 8n }, at: 8, expected: { shape: [4] } },
  {
    what: "NULL strides, which meant C order before DLPack 1.2",
    tensor: { shape: [2, 3], strides: null },
    at: 0,
    expected: { shape: [2, 3], strides: [3, 1] },
  },
  {
    what: "negative strides: data points to the first element, which is not the lowest",
    tensor: { shape: [2, 3], strides: [-3, -1], byteOffset: 20n },
    at: 20,
    expected: { strides: [-3, -1] },
  },
  { what: "repeated elements", tensor: { shape: [5], strides: [0] }, at: 0, expected: { strides: [0] } },
  { what: "a scalar", tensor: { shape: [], strides: [] }, at: 0, expected: { shape: [], strides: [] } },
  { what: "pinned host memory", tensor: { shape: [2], strides: [1], deviceType: 3, deviceId: 5 }, at: 0, expected: {} },
  {
    what: "a newer minor version, with an unknown flag",
    kinds: ["versioned"],
    tensor: { shape: [2], strides: [1], minor: 99, flags: 1n << 40n },
    at: 0,
    expected: { readonly: false },
  },
  {
    what: "memory that must not be written",
    kinds: ["versioned"],
    tensor: { shape: [2], strides: [1], flags: 1n },
    at: 0,
    expected: { readonly: true },
  },
  {
    what: "a copy",
    kinds: ["versioned"],
    tensor: { shape: [2], strides: [1], flags: 2n },
    at: 0,
    expected: { readonly: false },
  },
  {
    what: "padded elements of four bits",
    kinds: ["versioned"],
    tensor: { shape: [2], strides: [1], code: 17, bits: 4, flags: 4n },
    at: 0,
    expected: { dtype: "float4_e2m1fn" },
  },
  {
    what: "packed elements of four bits",
    tensor: { shape: [8], strides: [1], code: 17, bits: 4 },
    at: 0,
    expected: { dtype: "float4_e2m1fn_packed" },
  },
  {
    what: "elements of two lanes",
    tensor: { shape: [2], strides: [1], code: 5, bits: 64, lanes: 2 },
    at: 0,
    expected: { dtype: "complex64x2" },
  },
];

test("foreign tensors are imported as they are: offsets, NULL strides, scalars, flags and newer minor versions", () => {
  using deleter = new CountingDeleter();
  using memory = resource.allocate(128);
  for (const { what, kinds = bothKinds, tensor, at, expected } of rightTensors) {
    for (const kind of kinds) {
      const foreign = foreignTensor(kind, { data: memory.ptr, deleter: deleter.address, ...tensor });
      const view = StridedMemoryView.fromDlpack(tensorAt(foreign.ptr, kind));
      assertEquals(view.ptr, memory.ptr + BigInt(at), what);
      assertEquals(view.dtype.name, expected.dtype ?? view.dtype.name, what);
      assertEquals(view.shape, expected.shape ?? view.shape, what);
      assertEquals(view.strides, expected.strides ?? view.strides, what);
      assertEquals(view.readonly, expected.readonly ?? false, what);
      assertEquals([view.device, view.stream], [null, null], what);
      view.close();
      assertEquals(deleter.callsFor(foreign.ptr), 1, what);
      deleter.calls.clear();
      foreign.free();
    }
  }
});

test("a tensor without elements is imported whatever its data pointer", () => {
  using deleter = new CountingDeleter();
  for (const data of [0n, 0xdead_0000n]) {
    const foreign = foreignTensor("versioned", { shape: [3, 0], strides: [7, -2], data, deleter: deleter.address });
    const view = StridedMemoryView.fromDlpack(tensorAt(foreign.ptr, "versioned"));
    assertEquals([view.ptr, view.shape, view.nbytes, view.buffer.size], [0n, [3, 0], 0, 0]);
    view.close();
    assertEquals(deleter.callsFor(foreign.ptr), 1);
    deleter.calls.clear();
    foreign.free();
  }
});

test("packed elements take as many bytes as their bits need, however many they are", () => {
  // A fraction of 2^52 6-bit elements has more bits than a double holds: rounding claimed a byte too few.
  using deleter = new CountingDeleter();
  const packed = DType.all().filter(({ isPacked }) => isPacked);
  const reach = fc.record({
    dtype: fc.constantFrom(...packed),
    missing: fc.bigInt({ min: 1n, max: 100n }),
    stride: fc.constantFrom(1n, -1n),
  });
  check(fc.property(reach, ({ dtype: { bits, dlpack: { code } }, missing, stride }) => {
    const count = (1n << 52n) - missing;
    const data = 1n << 60n;
    const foreign = foreignTensor("versioned", {
      shape: [count],
      strides: [stride],
      data,
      code,
      bits,
      deleter: deleter.address,
    });
    const view = StridedMemoryView.fromDlpack(tensorAt(foreign.ptr, "versioned"));
    const { ptr, size } = view.buffer;
    view.close();
    foreign.free();
    const first = data * 8n + (stride < 0n ? (1n - count) * BigInt(bits) : 0n);
    const end = first + count * BigInt(bits);
    assertEquals([ptr, BigInt(size)], [first >> 3n, ((end + 7n) >> 3n) - (first >> 3n)]);
  }));
});

test("a tensor without a deleter is not released", () => {
  using memory = resource.allocate(16);
  const foreign = foreignTensor("legacy", { shape: [4], strides: [1], data: memory.ptr });
  StridedMemoryView.fromDlpack(tensorAt(foreign.ptr, "legacy")).close();
  tensorAt(foreign.ptr, "legacy").close(); // a tensor that was not taken
  foreign.free();
});

test("a source is asked for the newest version, for no order of host memory, and its tensor is taken", () => {
  const asked: (ToDlpackOptions | undefined)[] = [];
  const view = StridedMemoryView.fromTypedArray(new Int32Array([1, 2, 3]));
  const source = {
    __dlpack__(options?: ToDlpackOptions) {
      asked.push(options);
      return view.toDlpack(options);
    },
  };
  for (const take of [StridedMemoryView.from, StridedMemoryView.fromDlpack]) {
    using back = take(source);
    assertEquals([back.ptr, back.shape], [view.ptr, [3]]);
  }
  assertEquals(asked, [{ maxVersion: [1, 3] }, { maxVersion: [1, 3] }]);
  assertEquals(liveExports(), 0);
});

test("the error of a source is passed on, and the tensor it made for a failed import is released", () => {
  using deleter = new CountingDeleter();
  const failing = {
    __dlpack__(): DlpackTensor {
      throw new EvalError("the source's own words");
    },
  };
  assertThrows(() => StridedMemoryView.from(failing), EvalError, "the source's own words");
  const wrong = { __dlpack__: () => ({ ptr: 1n }) };
  assertThrows(() => StridedMemoryView.from(wrong), ExchangeError, "returned neither a DlpackTensor nor");
  for (const address of [0n, 12n]) {
    const nowhere = { __dlpack__: () => ({ managedTensor: address }) };
    assertThrows(() => StridedMemoryView.from(nowhere), ExchangeError, "address is");
  }
  for (const source of [{}, null, 5, "tensor", new Uint8Array(1)]) {
    assertThrows(
      () => StridedMemoryView.fromDlpack(source),
      ExchangeError,
      "expected an object with a method __dlpack__",
    );
  }
  const foreign = foreignTensor("versioned", { shape: [-1], strides: [1], data: 64n, deleter: deleter.address });
  const bad = { __dlpack__: () => tensorAt(foreign.ptr, "versioned") };
  assertThrows(() => StridedMemoryView.from(bad), ExchangeError);
  assertEquals(deleter.callsFor(foreign.ptr), 1);
  foreign.free();
});

test("a source may return the address of a struct of its own, in either form, which is released once", () => {
  using deleter = new CountingDeleter();
  for (const kind of ["versioned", "legacy"] as const) {
    const address = (ptr: bigint) => kind === "versioned" ? { managedTensorVersioned: ptr } : { managedTensor: ptr };
    const good = foreignTensor(kind, { shape: [2], strides: [1], data: 64n, deleter: deleter.address });
    const view = StridedMemoryView.from({ __dlpack__: () => address(good.ptr) });
    assertEquals([view.ptr, view.shape, deleter.callsFor(good.ptr)], [64n, [2], 0]);
    view.close();
    view.close();
    assertEquals(deleter.callsFor(good.ptr), 1);
    const bad = foreignTensor(kind, { shape: [-1], strides: [1], data: 64n, deleter: deleter.address });
    assertThrows(() => StridedMemoryView.from({ __dlpack__: () => address(bad.ptr) }), ExchangeError, "extent");
    assertEquals(deleter.callsFor(bad.ptr), 1, "it was made for this import alone");
    bad.free();
    good.free(); // not earlier: the other struct must have another address
  }
});

test("a refused tensor still belongs to the caller, and a taken one does not", () => {
  using deleter = new CountingDeleter();
  const foreign = foreignTensor("versioned", { shape: [2], strides: [1], data: 0n, deleter: deleter.address });
  const tensor = tensorAt(foreign.ptr, "versioned");
  assertThrows(() => StridedMemoryView.fromDlpack(tensor), ExchangeError, "its data pointer is NULL");
  assertEquals([tensor.ptr, deleter.calls.size], [foreign.ptr, 0]);
  tensor.close();
  assertEquals(deleter.callsFor(foreign.ptr), 1);

  const cuda = Cuda.simulate();
  const device = cuda.device(0);
  cuda.close(); // nothing new can be created there
  const place = { data: 0x7000n, deviceType: 2, deleter: deleter.address };
  const late = foreignTensor("versioned", { shape: [2], strides: [1], ...place });
  const refused = tensorAt(late.ptr, "versioned");
  assertThrows(() => StridedMemoryView.fromDlpack(refused, { device, stream: null }), TypeError, "closed");
  assertEquals([refused.ptr, deleter.callsFor(late.ptr)], [late.ptr, 0]);
  refused.close();
  assertEquals(deleter.callsFor(late.ptr), 1);
  for (const one of [foreign, late]) one.free(); // not earlier: calls are identified by address

  const ours = StridedMemoryView.fromTypedArray(new Uint8Array(3)).toDlpack();
  using view = StridedMemoryView.fromDlpack(ours);
  assertThrows(() => StridedMemoryView.fromDlpack(ours), ExchangeError, "taken it over");
  assertEquals(view.shape, [3]);
});

test("memory of a device is imported for that device only, which must be given", () => {
  using deleter = new CountingDeleter();
  const { device, log } = recordingDevice();
  const stream = CudaStream.fromHandle(device, 0x99n);
  for (const deviceType of [2, 13]) { // CUDA, CUDA managed
    const options = { shape: [4], strides: [1], data: 0x7000n, deviceType, deleter: deleter.address };
    const foreign = foreignTensor("versioned", options);
    assertRefused(foreign.ptr, "versioned", {}, "memory of CUDA device 0: pass { stream }");
    const elsewhere = foreignTensor("versioned", { ...options, deviceId: 3 });
    assertRefused(elsewhere.ptr, "versioned", { device }, "Cannot import memory of CUDA device 3 for device 0");
    log.length = 0;
    for (const given of [{ stream }, { device }, { device, stream }, { device, stream: null }]) {
      const view = StridedMemoryView.fromDlpack(tensorAt(foreign.ptr, "versioned"), given);
      assertStrictEquals(view.device, device);
      const home = given.stream === undefined ? device.defaultStream : given.stream;
      assertStrictEquals(view.stream, home);
      deleter.onCall = () => log.push("deleter");
      view.close();
      const record = home === stream ? /^cuEventRecord\(\d+, 153\)$/ : /^cuEventRecord\(\d+, 1\)$/;
      const waits = [record, /^cuEventSynchronize\(\d+\)$/, /^deleter$/];
      const expected = home === null ? waits.slice(2) : waits;
      assert(log.length === expected.length && log.every((line, i) => expected[i]?.test(line)), `${log.join("\n")}`);
      log.length = 0;
    }
    for (const { free } of [foreign, elsewhere]) free();
  }
});

test("host memory has no stream, even if one is given in case it is a device's", () => {
  const { device, log } = recordingDevice();
  using memory = resource.allocate(16);
  const foreign = foreignTensor("legacy", { shape: [4], strides: [1], data: memory.ptr });
  const stream = CudaStream.fromHandle(device, 0x99n);
  log.length = 0;
  const view = StridedMemoryView.fromDlpack(tensorAt(foreign.ptr, "legacy"), { stream });
  assertEquals([view.device, view.stream], [null, null]);
  view.close();
  assertEquals(log, []);
  foreign.free();
});

test("a tensor at no address is refused", () => {
  for (const kind of ["versioned", "legacy"] as const) assertRefused(0n, kind, {}, "its address is NULL");
});

test("a struct is taken by its address, in either form, and still belongs to the caller if it is refused", () => {
  using deleter = new CountingDeleter();
  for (const kind of bothKinds) {
    using memory = resource.allocate(64);
    const data = memory.ptr;
    const pointer = (ptr: bigint) => kind === "versioned" ? { managedTensorVersioned: ptr } : { managedTensor: ptr };
    const good = foreignTensor(kind, { shape: [4, 2], strides: [1, 4], data, deleter: deleter.address });
    const view = StridedMemoryView.fromDlpack(pointer(good.ptr));
    assertEquals([view.ptr, view.shape, view.strides], [memory.ptr, [4, 2], [1, 4]]);
    view.close();
    view.close();
    assertEquals(deleter.callsFor(good.ptr), 1);
    const bad = foreignTensor(kind, { shape: [-4], strides: [1], data, deleter: deleter.address });
    assertThrows(() => StridedMemoryView.fromDlpack(pointer(bad.ptr)), ExchangeError);
    assertEquals(deleter.callsFor(bad.ptr), 0);
    assertThrows(() => StridedMemoryView.fromDlpack(pointer(0n)), ExchangeError, "its address is NULL");
    for (const foreign of [good, bad]) foreign.free();
  }
  for (const nothing of [{}, { managedTensor: 5 }, 5n, null, undefined, "tensor"]) {
    assertThrows(() => StridedMemoryView.fromDlpack(nothing), ExchangeError, "the address of a tensor as a bigint");
  }
});

test("a source on a device of another kind, whose streams mean something else, is not asked", () => {
  let asked = 0;
  for (const type of [4, 7, 8, 10, 11, 14, 18, 99]) {
    const source = {
      __dlpack__: () => (asked++, StridedMemoryView.fromTypedArray(new Uint8Array(1)).toDlpack()),
      __dlpack_device__: (): [number, number] => [type, 0],
    };
    assertThrows(() => StridedMemoryView.fromDlpack(source), ExchangeError, `DLPack device type ${type}`);
  }
  assertEquals(asked, 0);
});

test("a producer on the host is asked for no order, which it would have to refuse, and one on a device is", () => {
  using cuda = Cuda.simulate();
  const device = cuda.device(0);
  using stream = device.createStream();
  using buffer = device.memory.allocate(4, { stream });
  const views = {
    host: StridedMemoryView.fromTypedArray(new Uint8Array(4)),
    device: StridedMemoryView.fromBuffer(buffer, { shape: [4], dtype: "uint8" }),
  };
  for (const [where, view] of Object.entries(views)) {
    const asked: unknown[] = [];
    const source = {
      __dlpack_device__: () => view.__dlpack_device__(),
      __dlpack__: (options: Readonly<Record<string, unknown>>) => {
        asked.push("stream" in options ? options["stream"] : "none");
        return view.toDlpack(where === "host" ? {} : { stream });
      },
    };
    StridedMemoryView.from(source, { stream }).close();
    StridedMemoryView.from(source, { device }).close();
    assertEquals(asked, where === "host" ? ["none", "none"] : [stream, "none"]);
  }
});
