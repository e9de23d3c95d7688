/**
 * Views have their own fast Arrow export. It writes what the general export writes, whatever consumers did to structs
 * that previously used the same memory.
 */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { liveExports } from "../../src/order/reclaim.ts";
import { SimulatedDriver } from "../../src/public/sim.ts";
import {
  type ArrowDeviceArray,
  Cuda,
  DType,
  ExchangeError,
  HostMemoryResource,
  type MemoryBuffer,
  PinnedMemoryResource,
  StridedMemoryView,
} from "../../mod.ts";
import { exportArrow } from "../../src/cdata/export.ts";
import { nodeOfNumbers } from "../../src/cdata/numbers.ts";
import { NativeArena } from "../../src/ffi/arena.ts";
import { libc } from "../../src/ffi/libc.ts";
import { ffiPort } from "../../src/ffi/port.ts";
import { drainFrees } from "../../src/order/deferred_free.ts";
import { check, fc } from "../support/property.ts";
import {
  layout,
  moveRaw,
  pointerAt,
  type RawArray,
  readRawArray,
  readRawSchema,
  releaseRaw,
} from "../support/raw_arrow.ts";

const dtypes = DType.all().filter(({ arrowFormat }) => arrowFormat !== null);

interface Step {
  /** Which outstanding export is released after this one. */
  readonly released: number | null;
  readonly memory: "host" | "device" | "pinned" | "pinned, with a home";
  readonly shape: readonly number[];
  readonly dtype: DType;
  readonly skipped: number;
  readonly how: "as it is" | "moved" | "child first" | "child last";
}

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.record({
    released: fc.option(fc.nat(), { freq: 2 }),
    memory: fc.constantFrom<Step["memory"]>("host", "device", "pinned", "pinned, with a home"),
    shape: fc.array(
      fc.oneof({ weight: 9, arbitrary: fc.integer({ min: 1, max: 12 }) }, { weight: 1, arbitrary: fc.constant(0) }),
      {
        minLength: 1,
        maxLength: 5,
      },
    ),
    dtype: fc.constantFrom(...dtypes),
    skipped: fc.nat(3),
    how: fc.constantFrom<Step["how"]>("as it is", "moved", "child first", "child last"),
  }),
  { maxLength: 100, size: "max" },
);

/** The fields of an array, without any addresses but those of its elements. */
function said(exported: ArrowDeviceArray): unknown {
  const view = new DataView(ffiPort().memory(exported.ptr, layout.deviceArray.size));
  const { deviceId, deviceType, syncEvent, reserved } = layout.deviceArray;
  const strip = ({ release, children, ...rest }: RawArray): unknown => {
    assert(release !== 0n);
    return { ...rest, children: children.map(strip) };
  };
  return {
    schema: readRawSchema(exported.schemaPtr),
    array: strip(readRawArray(exported.ptr)),
    device: [view.getInt32(deviceType, true), view.getBigInt64(deviceId, true)],
    isOrdered: view.getBigUint64(syncEvent, true) !== 0n,
    reserved: [0, 8, 16].map((at) => view.getBigInt64(reserved + at, true)),
    field: exported.field,
  };
}

/** Overwrites every part of a struct that its consumer may write: everything but what its release needs. */
function scribble(address: bigint, kind: "schema" | "array"): void {
  new Uint8Array(ffiPort().memory(address, layout[kind].release)).fill(0xee);
}

/** Releases the structs as a consumer may, after overwriting them. */
function consume(taken: { readonly schema: bigint; readonly array: bigint }, how: Step["how"]): void {
  using arena = new NativeArena();
  for (const kind of ["schema", "array"] as const) {
    let address = taken[kind];
    const children = pointerAt(address, kind === "schema" ? 40 : 48);
    const child = children === 0n ? 0n : pointerAt(children, 0);
    if (how === "moved") {
      const place = arena.bytes(layout[kind].size).address;
      moveRaw(place, address, kind);
      address = place;
    }
    const kept = child !== 0n && how.startsWith("child") ? arena.bytes(layout[kind].size).address : null;
    if (kept !== null) moveRaw(kept, child, kind);
    if (kept !== null && how === "child first") releaseRaw(kept, kind);
    scribble(address, kind);
    releaseRaw(address, kind);
    if (kept !== null && how === "child last") {
      liveExports(); // a reclaim while the child is outstanding
      releaseRaw(kept, kind);
    }
  }
}

test("the fast export of a view writes what the general one writes, and is released the same way", () => {
  check(
    fc.property(steps, (program) => {
      const cuda = Cuda.simulate({ check: true });
      const device = cuda.device(0);
      const home = device.createStream();
      const buffers: MemoryBuffer[] = [];
      const out: { exported: ArrowDeviceArray; how: Step["how"]; says: unknown }[] = [];
      const live = SimulatedDriver.of(cuda.driver);
      for (const { released, memory, shape, dtype, skipped, how } of program) {
        const start = dtype.isPacked ? 8 * skipped : skipped;
        const volume = shape.reduce((product, extent) => product * extent, 1);
        const size = Math.max(1, Math.ceil((start + volume) * dtype.itemsize));
        const buffer = memory === "host"
          ? new HostMemoryResource().allocate(size)
          : memory === "device"
          ? device.memory.allocate(size, { stream: home })
          : new PinnedMemoryResource(device).allocate(size, memory === "pinned" ? {} : { stream: home });
        buffers.push(buffer);
        const view = StridedMemoryView.fromBuffer(buffer, { shape, dtype, offset: Math.floor(start * dtype.itemsize) });
        const exported = view.toArrowDevice();
        using general = exportArrow(nodeOfNumbers(view), {});
        const says = said(exported);
        assertEquals(says, said(general));
        out.push({ exported, how, says });
        if (memory !== "device") {
          using onHost = view.__arrow_c_array__();
          using other = exportArrow(nodeOfNumbers(view), {}, "host");
          assertEquals(said(onHost), said(other));
        } else assertThrows(() => view.__arrow_c_array__(), ExchangeError, "device memory");
        buffer.close();
        if (released === null || out.length === 0) continue;
        const [one] = out.splice(released % out.length, 1);
        if (one === undefined) continue;
        assertEquals([one.exported.released, said(one.exported)], [false, one.says], "no other export wrote into it");
        consume(one.exported.take(), one.how);
        assertEquals(one.exported.released, true);
      }
      for (const { exported } of out) exported.close();
      assertEquals(liveExports(), 0);
      for (const buffer of buffers) buffer.close();
      home.close();
      drainFrees();
      device.synchronize();
      assertEquals([live?.live.allocations, live?.live.streams], [0, 0]);
      cuda.close();
      assertEquals([live?.live.events, live?.live.contexts], [0, 0]);
    }),
    30,
  );
});

test("a view of a closed buffer is not exported, and nothing is allocated", () => {
  const buffer = new HostMemoryResource().allocate(16);
  const view = StridedMemoryView.fromBuffer(buffer, { shape: [2, 2], dtype: "float32" });
  buffer.close();
  assertThrows(() => view.toArrowDevice(), TypeError, "closed MemoryBuffer");
  assertThrows(() => view.__arrow_c_array__(), TypeError, "closed MemoryBuffer");
  assertEquals(liveExports(), 0);
});

/** How many blocks of structs 1000 runs allocate. */
function blocksOf(run: () => void): number {
  const functions = libc();
  const { loading } = functions;
  let allocated = 0;
  const put = (value: typeof loading) => Object.defineProperty(functions, "loading", { value, configurable: true });
  put({
    ...loading,
    calloc: (count, size) => (allocated += Number(count * size > 4096n), loading.calloc(count, size)),
  });
  try {
    for (let i = 0; i < 1000; i++) run();
  } finally {
    put(loading);
  }
  return allocated;
}

test("the memory of released structs is used again", () => {
  const view = StridedMemoryView.fromTypedArray(new Float32Array(24), { shape: [4, 3, 2] });
  const allocated = blocksOf(() => {
    view.toArrowDevice().close();
    assertEquals(liveExports(), 0); // exports reclaim on their own only when many are outstanding
  });
  assert(allocated < 5, `${allocated} blocks`); // 128 exports share one
});

test("an event that cannot be recorded is an error, and nothing is exported", () => {
  const cuda = Cuda.simulate();
  const simulated = SimulatedDriver.of(cuda.driver);
  const stream = cuda.device(0).createStream();
  const buffer = cuda.device(0).memory.allocate(16, { stream });
  const view = StridedMemoryView.fromBuffer(buffer, { shape: [2, 2], dtype: "float32" });
  for (const call of ["cuEventRecord", "cuEventCreate"] as const) {
    simulated?.failNth(call, 1, 999);
    assertThrows(() => view.toArrowDevice(), Error, call);
    assertEquals(liveExports(), 0);
    view.toArrowDevice().close(); // as before
  }
  assertEquals(liveExports(), 0);
  const allocated = blocksOf(() => {
    simulated?.failNth("cuEventRecord", 1, 999);
    assertThrows(() => view.toArrowDevice(), Error, "cuEventRecord");
  });
  assert(allocated < 5, `${allocated} blocks`);
  buffer.close();
  stream.close();
  cuda.close();
  const { allocations, events, contexts } = simulated?.live ?? {};
  assertEquals({ allocations, events, contexts }, { allocations: 0, events: 0, contexts: 0 });
});

test("an export whose event cannot be destroyed retains neither its memory nor its context", () => {
  const cuda = Cuda.simulate();
  const simulated = SimulatedDriver.of(cuda.driver);
  const stream = cuda.device(0).createStream();
  const buffer = cuda.device(0).memory.allocate(16, { stream });
  const exported = StridedMemoryView.fromBuffer(buffer, { shape: [2, 2], dtype: "float32" }).toArrowDevice();
  for (const one of [buffer, stream, cuda]) one.close();
  assertEquals(simulated?.live.allocations, 1, "the consumer may use it");
  exported.close();
  // The first event orders the release behind the consumer's work.
  simulated?.failNth("cuEventDestroy_v2", 2, 999);
  assertThrows(() => liveExports(), Error, "cuEventDestroy_v2");
  drainFrees();
  simulated?.runAll();
  const { allocations, streams, contexts } = simulated?.live ?? {};
  assertEquals({ allocations, streams, contexts }, { allocations: 0, streams: 0, contexts: 0 });
});
