/**
 * Released exports are reclaimed without a poll, an allocation or a wait by the program; and nothing of them stays.
 */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { liveExports } from "../../src/order/reclaim.ts";
import { SimulatedDriver } from "../../src/public/sim.ts";
import { exportArrowStream } from "../../src/public/arrow.ts";
import {
  ArrowArray,
  type ArrowDeviceArray,
  arrowField,
  ArrowStream,
  Cuda,
  type CudaStream,
  type DlpackTensor,
  MemoryBuffer,
  StridedMemoryView,
} from "../../mod.ts";
import { libc } from "../../src/ffi/libc.ts";
import { patiently } from "../support/child.ts";
import { collectGarbage } from "../support/collect.ts";
import { check, fc } from "../support/property.ts";
import { layout, pointerAt, releaseRaw } from "../support/raw_arrow.ts";

/** Bytes as an Arrow array, which takes the general export path. */
function arrayOf(bytes: StridedMemoryView): ArrowArray {
  const length = bytes.layout.volume;
  return new ArrowArray({ field: arrowField("C"), length, nullCount: 0, buffers: [null, bytes] });
}

const ways: Readonly<Record<string, (view: StridedMemoryView) => { close(): void }>> = {
  dlpack: (view) => view.toDlpack(),
  "arrow views": (view) => view.toArrowDevice(),
  "arrow arrays": (view) => arrayOf(view).toArrowDevice(),
  "arrow streams": (view) => exportArrowStream([arrayOf(view)]),
};

for (const [name, out] of Object.entries(ways)) {
  test(`a thousand exports that are never polled again do not pile up: ${name}`, () => {
    let freed = 0;
    for (let i = 0; i < 1000; i++) {
      // Foreign memory: an allocation of ours would poll for released exports.
      const owner = new Uint8Array(new ArrayBuffer(64));
      const { ptr } = StridedMemoryView.fromTypedArray(owner);
      const free = () => void freed++;
      const buffer = MemoryBuffer.fromAllocation({ ptr, size: 64, device: null, stream: null, owner, free });
      const exported = out(StridedMemoryView.fromBuffer(buffer, { shape: [64], dtype: "uint8" }));
      buffer.close();
      exported.close(); // calls the release callback, which can only set a flag
    }
    assert(freed >= 1000 - 128, `${freed} of 1000 were returned`);
    assertEquals(liveExports(), 0);
  });

  test(`exports of device memory leave no event, no stream and no memory of C when they are released: ${name}`, () => {
    const isStream = name === "arrow streams";
    leavesNothing((view) => isStream ? exportArrowStream([arrayOf(view)], { device: true }) : out(view));
  });
}

// Consumers release on their own threads, also during a poll: the second one's work may come after the first's event.
test("a consumer that releases while a wait is ordered for another is waited for as well", () => {
  const cuda = Cuda.simulate();
  const home = cuda.device(0).createStream();
  const buffer = cuda.device(0).memory.allocate(64, { stream: home });
  const view = StridedMemoryView.fromBuffer(buffer, { shape: [64], dtype: "uint8" });
  const exports = [view.toDlpack(), view.toArrowDevice(), view.toDlpack()];
  let records = 0;
  const { context } = cuda.driver;
  const record = context.cuCtxRecordEvent;
  assert(record !== null);
  const recordAndRelease = (...args: Parameters<typeof record>): number => {
    const code = record(...args);
    exports[++records]?.close();
    return code;
  };
  exports[0]?.close();
  Object.defineProperty(context, "cuCtxRecordEvent", { value: recordAndRelease });
  assertEquals(liveExports(), 0);
  assertEquals(records, 3);
  for (const one of [buffer, home, cuda]) one.close();
});

test("a poll while memory is being returned finds that export ended, and nothing is freed twice", () => {
  let freed = 0;
  const free = () => {
    freed++;
    liveExports();
  };
  const exports = Array.from({ length: 10 }, () => {
    using buffer = MemoryBuffer.fromAllocation({ ptr: 4096n, size: 64, device: null, stream: null, free });
    return StridedMemoryView.fromBuffer(buffer, { shape: [64], dtype: "uint8" }).toDlpack();
  });
  for (const one of exports) one.close();
  assertEquals([liveExports(), freed], [0, 10]);
});

test("asking an export whether it is released changes no other export, also while its memory is being returned", () => {
  check(
    fc.property(
      fc.array(fc.tuple(fc.constantFrom("export", "export", "release", "ask", "ask", "look"), fc.nat(7)), {
        maxLength: 40,
      }),
      (steps) => {
        const exports: DlpackTensor[] = [];
        const frees: number[] = [];
        const released = new Set<number>();
        const askAll = () =>
          exports.forEach((one, i) => one.released && assert(released.has(i), "no consumer has released it"));
        for (const [what, at] of steps) {
          const i = at % Math.max(1, exports.length);
          if (what === "export") {
            const id = exports.length;
            const free = () => {
              frees.push(id);
              askAll();
            };
            using buffer = MemoryBuffer.fromAllocation({ ptr: 4096n, size: 64, device: null, stream: null, free });
            exports.push(StridedMemoryView.fromBuffer(buffer, { shape: [64], dtype: "uint8" }).toDlpack());
          } else if (what === "release" && exports.length > 0) {
            released.add(i);
            exports[i]?.close();
          } else if (what === "ask" && exports.length > 0) assertEquals(exports[i]?.released, released.has(i));
          else if (what === "look") assertEquals(liveExports(), exports.length - released.size);
          assertEquals(new Set(frees).size, frees.length, "freed twice");
        }
        assertEquals(liveExports(), exports.length - released.size);
        assertEquals(frees.toSorted((a, b) => a - b), [...released].sort((a, b) => a - b));
        exports.forEach((one, i) => (released.add(i), one.close()));
        assertEquals([liveExports(), frees.length], [0, exports.length]);
      },
    ),
    300,
  );
});

test("imports leave nothing behind when they are closed", () => {
  leavesNothing((view, stream) => StridedMemoryView.fromDlpack(view, { stream }));
  leavesNothing((view, stream) => StridedMemoryView.fromCudaArrayInterface(view, { stream }));
  leavesNothing((view, stream) => StridedMemoryView.fromArrowDevice(view, { stream }));
  leavesNothing((view, stream) => ArrowArray.from(arrayOf(view), { stream }));
  leavesNothing((view, stream) => {
    const exported = exportArrowStream([arrayOf(view)], { device: true });
    const taken = ArrowStream.from({ deviceStream: exported.take() }, { stream });
    return { close: () => (taken.next()?.close(), taken.close()) };
  });
});

/** Repeatedly exports an array and closes the export. */
function leavesNothing(make: (view: StridedMemoryView, stream: CudaStream) => { close(): void }): void {
  using cuda = Cuda.simulate();
  const device = cuda.device(0);
  using stream = device.createStream();
  using other = device.createStream();
  using buffer = device.memory.allocate(64, { stream });
  const view = StridedMemoryView.fromBuffer(buffer, { shape: [64], dtype: "uint8" });
  const { loading } = libc();
  let blocks = 0;
  const counted: typeof loading = {
    ...loading,
    calloc: (items, size) => (blocks++, loading.calloc(items, size)),
    malloc: (size) => (blocks++, loading.malloc(size)),
    free: (at) => (at === 0n || blocks--, loading.free(at)),
  };
  const left = () => {
    make(view, other).close();
    assertEquals(liveExports(), 0);
    const { streams, events } = SimulatedDriver.of(cuda.driver)?.live ?? { streams: -1, events: -1 };
    return { streams, events, blocks };
  };
  const put = (value: typeof loading) => Object.defineProperty(libc(), "loading", { value, configurable: true });
  put(counted);
  try {
    left(); // some events and some memory are kept for reuse
    const before = left();
    for (let i = 0; i < 20; i++) assertEquals(left(), before);
  } finally {
    put(loading);
  }
}

test("an event that a consumer has outlives the Cuda, also on a device that is no buffer's home any more", () => {
  for (const out of ["arrow views", "arrow arrays"] as const) {
    const cuda = Cuda.simulate({ devices: 2 });
    const [one, other] = [cuda.device(0), cuda.device(1)];
    const [away, home] = [other.createStream(), one.createStream()];
    const buffer = one.memory.allocate(64, { stream: away });
    const exported = ways[out]?.(StridedMemoryView.fromBuffer(buffer, { shape: [64], dtype: "uint8" }));
    assert(exported !== undefined && "take" in exported && typeof exported.take === "function");
    const { array, schema }: { array: bigint; schema: bigint } = exported.take();
    buffer.setHomeStream(home);
    for (const each of [buffer, away, home, cuda]) each.close();
    const event = pointerAt(pointerAt(array, layout.deviceArray.syncEvent), 0);
    assertEquals(cuda.driver.event.cuEventSynchronize(event), 0, out);
    releaseRaw(array, "array");
    releaseRaw(schema, "schema");
    assertEquals([liveExports(), SimulatedDriver.of(cuda.driver)?.live.contexts], [0, 0]);
  }
});

test("a closed stream is known to be released, and cannot be used", () => {
  const numbers = arrayOf(StridedMemoryView.fromTypedArray(Uint8Array.of(1, 2)));
  const exported = exportArrowStream([numbers]);
  const stream = ArrowStream.from({ stream: exported.take() });
  assertEquals(exported.released, false);
  stream.close();
  assertEquals([exported.released, exported.released], [true, true]);
  assertThrows(() => stream.next(), TypeError, "closed ArrowStream");
  assertEquals(liveExports(), 0);
});

// The collector does not know that an export was taken: what it retains for the export must not reference it again.
test(
  "an export that was taken and released does not keep its producer's objects alive",
  patiently,
  async () => {
    const count = 20;
    const made = (): (() => WeakRef<object>)[] =>
      Array.from({ length: count }, () => {
        const owner: { exported?: ArrowDeviceArray } = {};
        const buffer = MemoryBuffer.fromPointer(4096n, 64, { owner });
        const exported = StridedMemoryView.fromBuffer(buffer, { shape: [64], dtype: "uint8" }).toArrowDevice();
        owner.exported = exported;
        return () => {
          const { schema, array } = exported.take();
          releaseRaw(schema, "schema");
          releaseRaw(array, "array");
          return new WeakRef(owner);
        };
      });
    const turns = made();
    await delay(1); // exports are registered with the collector at the end of a turn
    const owners = turns.splice(0).map((release) => release());
    assertEquals(liveExports(), 0);
    const left = () => owners.filter((owner) => owner.deref() !== undefined).length;
    for (let round = 0; round < 50 && left() > 1; round++) await collectGarbage();
    assert(left() <= 1, `${left()} of ${count}`); // the stack may still hold the address of one
  },
);

test("streams that are dropped are released by the garbage collector", patiently, async () => {
  const numbers = arrayOf(StridedMemoryView.fromTypedArray(Uint8Array.of(1, 2)));
  const drop = () => {
    for (let i = 0; i < 100; i++) {
      const exported = exportArrowStream([numbers]);
      if (i % 2 === 0) ArrowStream.from({ stream: exported.take() });
    }
  };
  drop();
  const each = liveExports() / 100;
  for (let i = 0; i < 20 && liveExports() > 10 * each; i++) await collectGarbage();
  assert(liveExports() <= 10 * each, `${liveExports()} of ${100 * each} exports are left`);
});
