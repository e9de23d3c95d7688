/**
 * Memory imported with a device and no stream: it is used on the device's default stream, so its next consumer is
 * ordered after the work enqueued there, and it is returned to its producer when all of that is done.
 */
import { assertEquals, assertStrictEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import type { CausalityReport } from "../../src/checker/mod.ts";
import { liveExports } from "../../src/order/reclaim.ts";
import { exportArrowStream } from "../../src/public/arrow.ts";
import {
  ArrowArray,
  arrowField,
  Cuda,
  type CudaDevice,
  type CudaStream,
  HostMemoryResource,
  MemoryBuffer,
  StridedMemoryView,
} from "../../mod.ts";
import { check, fc } from "../support/property.ts";
import { CountingDeleter, foreignTensor } from "../support/raw_dlpack.ts";
import { enqueueCopy } from "../../src/device/mod.ts";

const bytes = 64;

/** A foreign tensor over memory, as an address that can be imported once. */
function tensorOver(ptr: bigint, deleter: CountingDeleter): { readonly managedTensorVersioned: bigint } {
  const type = { shape: [bytes], strides: [1], code: 1, bits: 8 };
  const { ptr: address } = foreignTensor("versioned", { ...type, data: ptr, deviceType: 2, deleter: deleter.address });
  return { managedTensorVersioned: address };
}

/** Imports that name a device and no stream. */
const imports: Readonly<Record<string, (memory: MemoryBuffer, device: CudaDevice) => StridedMemoryView>> = {
  pointer(memory, device) {
    const buffer = MemoryBuffer.fromPointer(memory.ptr, bytes, { device, owner: memory });
    return StridedMemoryView.fromBuffer(buffer, { shape: [bytes], dtype: "uint8" });
  },
  dlpack: ({ ptr }, device) => StridedMemoryView.fromDlpack(tensorOver(ptr, new CountingDeleter()), { device }),
  "the CUDA Array Interface"({ ptr }, device) {
    const described = { shape: [bytes], typestr: "|u1", data: [ptr, false], strides: null, version: 3, stream: null };
    return StridedMemoryView.fromCudaArrayInterface({ __cuda_array_interface__: described }, { device });
  },
  arrow(memory, device) {
    const view = StridedMemoryView.fromBuffer(memory, { shape: [bytes], dtype: "uint8" });
    return StridedMemoryView.fromArrowDevice(view.toArrowDevice(), { device });
  },
};

/** Hand-overs to a consumer on another stream; each returns the function that ends it. */
const handovers: Readonly<Record<string, (view: StridedMemoryView, to: CudaStream) => () => void>> = {
  lease: (view, to) => close(view.borrow(to)),
  dlpack: (view, to) => close(view.toDlpack({ stream: to })),
  "the CUDA Array Interface": (view, to) => close(StridedMemoryView.from(view, { stream: to })),
  arrow: (view, to) => close(ArrowArray.from(view.toArrowDevice(), { stream: to })),
};

function close(one: { close(): void }): () => void {
  return () => one.close();
}

for (const [way, take] of Object.entries(imports)) {
  for (const [on, hand] of Object.entries(handovers)) {
    test(`memory imported by ${way} with only a device is ready for its next consumer by ${on}`, () => {
      const reports: CausalityReport[] = [];
      using cuda = Cuda.simulate({ schedule: "latest", check: { leaks: false, onReport: (one) => reports.push(one) } });
      const device = cuda.device(0);
      using maker = device.createStream();
      using reader = device.createStream();
      using memory = device.memory.allocate(bytes, { stream: maker });
      using copy = device.memory.allocate(bytes, { stream: maker });
      for (const one of [memory, copy]) one.fill(0, { stream: maker });
      maker.synchronize();
      using view = take(memory, device);
      assertStrictEquals(view.stream, device.defaultStream);
      if (view.readonly) memory.fill(5, { stream: device.defaultStream }); // as Arrow's arrays are
      else view.copyFrom(new Uint8Array(bytes).fill(5)); // on the default stream, which nothing selected
      const end = hand(view, reader);
      enqueueCopy(reader, copy.ptr, view.ptr, bytes, "DtoD");
      reader.synchronize();
      end();
      maker.wait(reader);
      const seen = new Uint8Array(new ArrayBuffer(bytes));
      copy.copyTo(seen, { stream: maker });
      maker.synchronize();
      assertEquals([new Set(seen), reports], [new Set([5]), []]);
    });
  }
}

test("memory is returned to its producer when the default stream is done with it, our consumers included", () => {
  using cuda = Cuda.simulate({ schedule: "latest" });
  const device = cuda.device(0);
  using maker = device.createStream();
  using reader = device.createStream();
  using memory = device.memory.allocate(bytes, { stream: maker });
  using copy = device.memory.allocate(bytes, { stream: maker });
  maker.synchronize();
  for (const who of ["we", "a consumer"] as const) {
    const deleter = new CountingDeleter();
    let isDone: boolean | null = null;
    deleter.onCall = () => isDone = (who === "we" ? device.defaultStream : reader).isDone;
    const view = StridedMemoryView.fromDlpack(tensorOver(memory.ptr, deleter), { device });
    if (who === "we") view.copyFrom(new Uint8Array(bytes));
    const tensor = who === "we" ? null : view.toDlpack({ stream: reader });
    if (who !== "we") enqueueCopy(reader, copy.ptr, view.ptr, bytes, "DtoD");
    view.close();
    tensor?.close();
    assertEquals(liveExports(), 0); // this polls for released exports
    assertEquals([[...deleter.calls.values()], isDone], [[1], true], who);
  }
});

test("null requests no order, and a given stream requests order on it", () => {
  using cuda = Cuda.simulate({ devices: 2, schedule: "latest" });
  const device = cuda.device(0);
  using stream = device.createStream();
  using memory = device.memory.allocate(bytes, { stream });
  memory.fill(0, { stream });
  stream.synchronize();
  const over = (options: object) => MemoryBuffer.fromPointer(memory.ptr, bytes, { device, ...options });
  assertEquals([over({ stream: null }).stream, over({ stream }).stream], [null, stream]);
  using other = Cuda.simulate();
  using foreign = other.device(0).createStream();
  assertThrows(() => over({ stream: foreign }), TypeError, "Cannot make a buffer with a home stream of another Cuda");
  const gone = device.createStream();
  gone.close();
  assertThrows(() => over({ stream: gone }), TypeError, "closed CudaStream");
  const buffer = over({});
  using next = device.createStream();
  buffer.fill(5, { stream: device.defaultStream });
  buffer.setHomeStream(next);
  assertStrictEquals(buffer.stream, next);
  const seen = new Uint8Array(new ArrayBuffer(bytes));
  buffer.copyTo(seen, { stream: next });
  next.synchronize();
  assertEquals(new Set(seen), new Set([5]), "work on the former home comes first");
  buffer.close();
});

/** Exports to a consumer that signals only that it has released. */
const exports: Readonly<Record<string, (view: StridedMemoryView) => { close(): void }>> = {
  dlpack: (view) => view.toDlpack(),
  "arrow views": (view) => view.toArrowDevice(),
  "arrow arrays": (view) => arrayOf(view).toArrowDevice(),
  "arrow streams": (view) => exportArrowStream([arrayOf(view)], { device: true }),
};

function arrayOf(view: StridedMemoryView): ArrowArray {
  return new ArrowArray({ field: arrowField("C"), length: bytes, nullCount: 0, buffers: [null, view] });
}

test("whatever is closed first, exports of foreign memory that consumers have released are reclaimed", () => {
  const ends = ["cuda", "kept device", "home", "release", "another release", "memory"] as const;
  check(
    fc.property(
      fc.constantFrom(...Object.keys(exports)),
      fc.constantFrom("default", "own", "other device's", "other default"),
      fc.constantFrom(0, 1, null),
      fc.shuffledSubarray([...ends], { minLength: ends.length }),
      fc.integer({ min: 0, max: ends.length }),
      (way, home, kept, order, lookAt) => {
        const cuda = Cuda.simulate({ devices: 2 });
        const device = cuda.device(0);
        const other = cuda.device(1);
        const own = (home === "other device's" ? other : device).createStream();
        const stream = home === "default" ? undefined : home === "other default" ? other.defaultStream : own;
        const memory = device.memory.allocate(bytes);
        const keeping = kept === null ? null : cuda.device(kept).memory.allocate(8);
        const owner = {};
        const buffer = MemoryBuffer.fromPointer(memory.ptr, bytes, { device, owner, ...stream && { stream } });
        const view = StridedMemoryView.fromBuffer(buffer, { shape: [bytes], dtype: "uint8" });
        const [one, another] = [exports[way]?.(view), exports[way]?.(view)];
        const close = {
          cuda,
          "kept device": keeping,
          home: own,
          release: one,
          "another release": another,
          memory: { close: () => [buffer, memory].forEach((each) => each.close()) },
        };
        order.forEach((what, i) => {
          if (i === lookAt) liveExports();
          close[what]?.close();
        });
        assertEquals(liveExports(), 0);
        assertStrictEquals(buffer.owner, undefined, "the owner is no longer referenced");
        new HostMemoryResource().allocate(8).close();
      },
    ),
    200,
  );
});
