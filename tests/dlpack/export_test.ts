/**
 * The fields of an exported tensor, read by hand; refusals; and for devices, which stream waits for which.
 */
import { assert, assertEquals, assertNotEquals, assertStrictEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { CudaStream } from "../../src/device/stream.ts";
import { callDeleter, type DlpackTensor } from "../../src/dlpack/tensor.ts";
import { liveExports } from "../../src/order/reclaim.ts";
import type { ToDlpackOptions } from "../../src/public/dlpack.ts";
import { ExchangeError } from "../../mod.ts";
import { libc } from "../../src/ffi/libc.ts";
import { ffiPort } from "../../src/ffi/port.ts";
import { DType, slice } from "../../src/layout/mod.ts";
import { DeviceMemoryResource } from "../../src/memory/device_memory_resource.ts";
import { HostMemoryResource } from "../../src/memory/host_memory_resource.ts";
import { MemoryBuffer } from "../../src/memory/memory_buffer.ts";
import { StridedMemoryView } from "../../src/view/strided_memory_view.ts";
import { gridOf, layouts } from "../support/strided_oracle.ts";
import { check, fc } from "../support/property.ts";
import { pattern } from "../support/arrays.ts";
import { laidOut } from "../support/laid_out.ts";
import { type Kind, readInt64s, readRaw, structBytes } from "../support/raw_dlpack.ts";
import { recordingDevice } from "../support/recording_driver.ts";

const resource = new HostMemoryResource();
const maxVersion: { readonly [K in Kind]: readonly [number, number] } = { versioned: [1, 3], legacy: [0, 8] };

/** Every element type of whole bytes that DLPack has, one lane and several. */
const wholeTypes = DType.all().filter(({ bits }) => bits >= 8)
  .flatMap((dtype) => [dtype, DType.from(`${dtype.name}x2`), DType.from(`${dtype.name}x3`)]);

test("an exported tensor says where the elements are, what they are and who owns them, in both structs", () => {
  const cases = fc.constantFrom(...wholeTypes).chain((dtype) =>
    fc.record({
      dtype: fc.constant(dtype),
      layout: layouts([dtype.itemsize]),
      slack: fc.nat(30),
      kind: fc.constantFrom<Kind>("versioned", "legacy"),
      readonly: fc.boolean(),
    })
  );
  check(
    fc.property(cases, ({ dtype, layout, slack, kind, readonly }) => {
      const { values } = gridOf(layout);
      const offset = slack - Math.min(0, ...values) * layout.itemsize;
      const size = Math.max(1, offset + (Math.max(-1, ...values) + 1) * layout.itemsize);
      using buffer = resource.allocate(size);
      const view = laidOut(buffer, { offset, layout, dtype, readonly });
      if (readonly && kind === "legacy") {
        assertThrows(() => view.toDlpack({ maxVersion: maxVersion[kind] }), ExchangeError, "read-only");
        return;
      }
      using tensor = view.toDlpack({ maxVersion: maxVersion[kind] });
      assertEquals(tensor.version, kind === "versioned" ? [1, 3] : null);
      const raw = readRaw(tensor.ptr, kind);
      const first = values[0];
      const { ndim } = layout;
      assertEquals({ ...raw, managerContext: raw.managerContext !== 0n, deleter: raw.deleter !== 0n }, {
        major: kind === "versioned" ? 1 : 0,
        minor: kind === "versioned" ? 3 : 0,
        managerContext: true,
        deleter: true,
        flags: readonly ? 1n : 0n,
        data: first === undefined ? 0n : buffer.ptr + BigInt(offset + first * layout.itemsize),
        deviceType: 1,
        deviceId: 0,
        ndim,
        code: dtype.dlpack.code,
        bits: dtype.dlpack.bits,
        lanes: dtype.dlpack.lanes,
        shape: raw.shape,
        strides: raw.strides,
        byteOffset: 0n,
      });
      assertEquals([raw.shape === 0n, raw.strides === 0n], [ndim === 0, ndim === 0]);
      assertEquals([raw.shape % 8n, raw.strides % 8n], [0n, 0n]);
      assertEquals(readInt64s(raw.shape, ndim), [...layout.shape]);
      assertEquals(readInt64s(raw.strides, ndim), [...layout.strides]);
    }),
    3000,
  );
  assertEquals(liveExports(), 0);
});

test("elements of less than a byte are marked as padded or packed, which the old struct cannot express", () => {
  using buffer = resource.allocate(16);
  for (const dtype of DType.all().filter(({ bits }) => bits < 8)) {
    const view = StridedMemoryView.fromBuffer(buffer, { shape: [3], dtype });
    using tensor = view.toDlpack();
    const raw = readRaw(tensor.ptr, "versioned");
    assertEquals(raw.flags, dtype.isPacked ? 0n : 4n);
    assertEquals([raw.code, raw.bits, raw.lanes], [dtype.dlpack.code, dtype.bits, 1]);
    const readonly = StridedMemoryView.fromBuffer(buffer, { shape: [3], dtype, readonly: true });
    using both = readonly.toDlpack();
    assertEquals(readRaw(both.ptr, "versioned").flags, dtype.isPacked ? 1n : 5n);
    const old: ToDlpackOptions = { maxVersion: [0, 8] };
    if (dtype.isPacked) view.toDlpack(old).close();
    else {assertThrows(
        () => view.toDlpack(old),
        ExchangeError,
        `Cannot export ${dtype.name} to a consumer of DLPack 0.x`,
      );}
  }
});

test("a consumer gets the struct of the version that it understands", () => {
  const view = StridedMemoryView.fromTypedArray(new Uint8Array(4));
  for (const [version, expected] of [[[0, 0], null], [[0, 8], null], [[1, 0], [1, 3]], [[2, 5], [1, 3]]] as const) {
    using tensor = view.toDlpack({ maxVersion: version });
    assertEquals<readonly number[] | null>(tensor.version, expected);
  }
  using tensor = view.__dlpack__();
  assertEquals(tensor.version, [1, 3]);
  assertEquals(view.__dlpack_device__(), [1, 0]);
});

test("a copy belongs to the consumer: memory of its own, dense, writable, and marked", () => {
  const source = Float32Array.from({ length: 12 }, (_, i) => i);
  const view = StridedMemoryView.fromTypedArray(source, { shape: [3, 4] }).sliced(slice(null, null, -1), slice(1, 3));
  for (const kind of ["versioned", "legacy"] as const) {
    using buffer = resource.allocate(48);
    buffer.bytes().set(new Uint8Array(source.buffer));
    const readonly = StridedMemoryView.fromBuffer(buffer, { shape: [3, 4], dtype: "float32", readonly: true })
      .view({ layout: view.layout });
    const tensor = readonly.toDlpack({ copy: true, maxVersion: maxVersion[kind] });
    buffer.close(); // the copy no longer needs it
    const raw = readRaw(tensor.ptr, kind);
    assertEquals(raw.flags, kind === "versioned" ? 2n : 0n);
    assertEquals(readInt64s(raw.strides, 2), [2, 1]);
    const copied = new Float32Array(ffiPort().memory(raw.data, 24).slice(0));
    assertEquals([...copied], [9, 10, 5, 6, 1, 2]);
    assertEquals(liveExports(), 1);
    tensor.close();
    assertEquals(liveExports(), 0);
  }
  using shared = view.toDlpack({ copy: false });
  assertEquals(readRaw(shared.ptr, "versioned").data, view.ptr);
  using packed = resource.allocate(4);
  packed.bytes().set([0x21, 0x43, 0x65, 0x87]);
  const half = StridedMemoryView.fromBuffer(packed, { shape: [8], dtype: "uint4_packed" });
  {
    using copy = StridedMemoryView.fromDlpack(half.sliced(slice(2, 6)).toDlpack({ copy: true }));
    assertEquals([copy.dtype.name, `${copy}`], ["uint4_packed", "[3 4 5 6]"]);
    assertNotEquals(copy.ptr, half.sliced(slice(2, 6)).ptr);
    using none = StridedMemoryView.fromDlpack(half.sliced(slice(0, 0)).toDlpack({ copy: true }));
    assertEquals(none.shape, [0]);
  }
  {
    using copy = StridedMemoryView.fromDlpack(half.sliced(slice(4, null, -2)).toDlpack({ copy: true }));
    assertEquals([copy.nbytes, `${copy}`], [2, "[5 3 1]"]); // one and a half bytes
  }
  const closed = resource.allocate(4);
  const gone = StridedMemoryView.fromBuffer(closed, { shape: [4], dtype: "uint8" });
  closed.close();
  assertThrows(() => gone.toDlpack({ copy: true }), TypeError, "Cannot use a closed MemoryBuffer");
  assertThrows(() => gone.toDlpack({ copy: false }), TypeError, "Cannot use a closed MemoryBuffer");
});

test("host memory is ordered on no stream, copied or not", () => {
  const view = StridedMemoryView.fromTypedArray(new Uint8Array(4));
  const { device } = recordingDevice();
  for (const copy of [true, false, null]) {
    for (const stream of [undefined, null, -1n]) {
      view.toDlpack(stream === undefined ? { copy } : { copy, stream }).close();
    }
    for (const stream of [0n, 1n, 2n, 0x1234n, device.defaultStream]) {
      assertThrows(() => view.toDlpack({ copy, stream }), ExchangeError, "Cannot order host memory on a stream");
    }
  }
  assertEquals(liveExports(), 0);
});

/** A view of memory that a recording driver treats as device memory. */
function deviceView(options?: Parameters<typeof recordingDevice>[0]) {
  const { device, log } = recordingDevice(options);
  const stream = device.createStream();
  const buffer = new DeviceMemoryResource(device).allocate(64, { stream });
  const view = StridedMemoryView.fromBuffer(buffer, { shape: [16], dtype: "float32" });
  log.length = 0;
  return { device, log, stream, buffer, view };
}

test("a consumer's stream waits for the home stream, by DLPack's rules for CUDA", () => {
  const { device, log, stream, view, buffer } = deviceView();
  const other = CudaStream.fromHandle(device, 0x77n);
  const cases: readonly (readonly [ToDlpackOptions["stream"], bigint | null])[] = [
    [undefined, 1n], // the legacy default stream
    [1n, 1n],
    [2n, 2n], // the per-thread default stream
    [0x55n, 0x55n],
    [other, 0x77n],
    [stream, null], // its home stream: nothing to wait for
    [stream.handle, null],
    [null, null],
    [-1n, null],
  ];
  for (const [asked, waiting] of cases) {
    log.length = 0;
    using tensor = view.toDlpack(asked === undefined ? {} : { stream: asked });
    const raw = readRaw(tensor.ptr, "versioned");
    assertEquals([raw.deviceType, raw.deviceId, raw.data], [2, 0, view.ptr]);
    const event = /^cuEventRecord\((\d+), (\d+)\)$/.exec(log[0] ?? "");
    if (waiting === null) assertEquals(log, []);
    else {
      assertEquals(event?.[2], `${stream.handle}`);
      assertEquals(log.slice(1), [`cuStreamWaitEvent(${waiting}, ${event?.[1]}, 0)`]);
    }
  }
  log.length = 0;
  assertThrows(() => view.toDlpack({ stream: 0n }), ExchangeError, "Cannot use stream 0");
  for (const number of [0, 1, -1, NaN]) { // as another library may pass it, despite the types
    const stream = number as unknown as bigint;
    assertThrows(() => view.toDlpack({ stream }), TypeError, `the stream ${number}: expected a CudaStream, its handle`);
  }
  assertEquals(view.__dlpack_device__(), [2, 0]);
  assertEquals(log, []);
  assertEquals(liveExports(), 0);
  buffer.close();
});

test("device memory is freed after whatever its context holds when the consumer releases", () => {
  const { log, stream, buffer, view } = deviceView();
  const { ptr } = buffer;
  const tensor = view.toDlpack({ stream: -1n });
  buffer.close();
  assertEquals([liveExports(), log], [1, []], "an export keeps the memory");
  tensor.close();
  assertEquals(liveExports(), 0);
  const event = /^cuCtxRecordEvent\(\d+, (\d+)\)$/.exec(log[0] ?? "")?.[1];
  assertEquals(log.slice(1), [
    `cuStreamWaitEvent(${stream.handle}, ${event}, 0)`,
    `cuMemFreeAsync(${ptr}, ${stream.handle})`,
  ]);
});

test("a driver that cannot mark a whole context waits for it before the memory is freed", () => {
  const { log, stream, buffer, view } = deviceView({ without: ["cuCtxRecordEvent"] });
  const { ptr } = buffer;
  view.toDlpack({ stream: -1n }).close();
  buffer.close();
  assertEquals(liveExports(), 0);
  assertEquals(log, ["cuCtxSynchronize()", `cuMemFreeAsync(${ptr}, ${stream.handle})`]);
});

test("a tensor is taken once, and released by close only if it was not taken", () => {
  using buffer = resource.allocate(8);
  const view = StridedMemoryView.fromBuffer(buffer, { shape: [8], dtype: "uint8" });
  const kept = view.toDlpack();
  assertEquals(kept.released, false);
  kept.close();
  assertEquals(kept.released, true);
  kept.close();
  kept[Symbol.dispose]();
  assertThrows(() => kept.ptr, ExchangeError, "taken it over");
  assertThrows(() => kept.take(), ExchangeError, "taken it over");

  const given: DlpackTensor = view.toDlpack();
  const { ptr } = given;
  assertStrictEquals(given.take(), ptr);
  assertThrows(() => given.take(), ExchangeError, "taken it over");
  given.close(); // owned by its consumer now
  assertEquals([given.released, liveExports()], [false, 1]);
  const { deleter } = readRaw(ptr, "versioned");
  ffiPort().functionAt(deleter, { args: ["ptr"], returns: "void" })(ptr);
  assertEquals([given.released, liveExports()], [true, 0]);
});

test("a tensor whose struct was released without being taken touches no later export when it is closed", () => {
  using buffer = resource.allocate(8);
  const view = StridedMemoryView.fromBuffer(buffer, { shape: [2], dtype: "int32" });
  const early = view.toDlpack();
  const { ptr } = early;
  callDeleter(ptr, true);
  assert(early.released, "the export has ended");
  let later = view.toDlpack();
  for (let i = 0; later.ptr !== ptr; i++) { // until it reuses the struct's memory
    assert(i < 1000, "the memory is never used again");
    later.close();
    later = view.toDlpack();
  }
  early.close();
  assert(!later.released, "it belongs to its consumer");
  later.close();
  assertEquals(liveExports(), 0);
});

test("exported bytes are the view's own: each side sees what the other writes", () => {
  const array = pattern(64, 1);
  const view = StridedMemoryView.fromTypedArray(array);
  using tensor = view.toDlpack();
  const seen = new Uint8Array(ffiPort().memory(readRaw(tensor.ptr, "versioned").data, 64));
  assertEquals([...seen], [...array]);
  seen[5] = 123;
  array[6] = 45;
  assertEquals([array[5], seen[6]], [123, 45]);
});

test("an allocation frees what consumers have released meanwhile", () => {
  let freed = 0;
  const ptr = libc().loading.malloc(8n);
  const free = (at: bigint) => {
    freed++;
    libc().loading.free(at);
  };
  const buffer = MemoryBuffer.fromAllocation({ ptr, size: 8, device: null, stream: null, free });
  const view = StridedMemoryView.fromBuffer(buffer, { shape: [8], dtype: "uint8" });
  const address = view.toDlpack().take();
  buffer.close();
  resource.allocate(8).close();
  assertEquals(freed, 0);
  ffiPort().functionAt(readRaw(address, "versioned").deleter, { args: ["ptr"], returns: "void" })(address);
  resource.allocate(8).close();
  assertEquals(freed, 1);
  assertNotEquals(ptr, 0n);
  assert(buffer.isClosed);
});

test("exported structs do not overlap or change, and released ones leave little memory", () => {
  const functions = libc();
  const { loading } = functions;
  const blocks = new Set<bigint>();
  const put = (value: typeof loading) => Object.defineProperty(functions, "loading", { value, configurable: true });
  const noted = (address: bigint) => (blocks.add(address), address);
  put({
    ...loading,
    calloc: (count, size) => noted(loading.calloc(count, size)),
    free: (at) => (blocks.delete(at), loading.free(at)),
  });
  const step = fc.record({
    out: fc.constantFrom(true, true, false),
    kind: fc.constantFrom("versioned", "legacy"),
    ndim: fc.nat(8),
  });
  const array = new Float32Array(8);
  const mixed = fc.array(step, { maxLength: 400, size: "max" });
  // By chance few programs leave more than a hundred: of a daily run's 30 the most was once 113.
  const exports = fc.array(step.map((one) => ({ ...one, out: true })), { minLength: 101, maxLength: 150 });
  const many = fc.tuple(mixed, exports).map((parts) => parts.flat());
  try {
    for (const [programs, least] of [[mixed, 0], [many, 101]] as const) {
      check(
        fc.property(programs, fc.infiniteStream(fc.nat()), (steps, picks) => {
          const out: { tensor: DlpackTensor; kind: Kind; shape: number[] }[] = [];
          for (const { out: isOut, kind, ndim } of steps) {
            if (isOut) {
              const shape = Array.from({ length: ndim }, (_, axis) => axis === 0 ? 8 : 1);
              const view = StridedMemoryView.fromTypedArray(ndim === 0 ? array.subarray(0, 1) : array, { shape });
              out.push({ tensor: view.toDlpack({ maxVersion: maxVersion[kind] }), kind, shape });
            } else if (out.length > 0) {
              const [{ tensor } = { tensor: null }] = out.splice((picks.next().value ?? 0) % out.length, 1);
              tensor?.close();
            }
          }
          assert(out.length >= least);
          assertEquals(liveExports(), out.length);
          const structs = out.map(({ tensor, kind, shape }) => {
            const raw = readRaw(tensor.ptr, kind);
            assertEquals([raw.ndim, readInt64s(raw.shape, raw.ndim)], [shape.length, shape]);
            return { from: tensor.ptr, to: tensor.ptr + BigInt(structBytes[kind]) };
          }).sort((a, b) => a.from < b.from ? -1 : 1);
          structs.reduce((before, one) => (assert(before.to <= one.from), one), { from: 0n, to: 0n });
          for (const { tensor } of out) tensor.close();
          assertEquals(liveExports(), 0);
          assert(blocks.size <= 4, `${blocks.size} blocks for structs of two kinds, with few and with many axes`);
        }),
        30,
      );
    }
  } finally {
    put(loading);
  }
});
