/**
 * Reading device memory through a copy on the device, as many reads do: work enqueued meanwhile changes nothing.
 */
import { assert, assertEquals, assertRejects } from "@std/assert";
import { test } from "node:test";
import { CUresult } from "../../bindings/cuda_types.ts";
import {
  Cuda,
  type CudaDevice,
  DeviceMemoryResource,
  ManagedMemoryResource,
  PinnedMemoryResource,
  StridedMemoryView,
  SynchronousMemoryResource,
} from "../../mod.ts";
import { canStartThreads } from "../../src/native/thread_team.ts";
import { ffiPort } from "../../src/ffi/port.ts";
import { StridedLayout } from "../../src/layout/mod.ts";
import { readBack } from "../../src/copy/read_back.ts";
import { intercept } from "../support/intercept.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";

const missing = canStartThreads() ? null : "machine code is forbidden here";
const plan = { threads: 2, slots: 4, chunk: 4096, piece: 1500 };
const shape = [60, 50];
const numbers = Float64Array.from({ length: 3000 }, (_, i) => i);

function turned(): number[] {
  return Array.from({ length: 3000 }, (_, i) => i % 60 * 50 + Math.floor(i / 60));
}

for (const staging of [plan, null]) {
  const by = staging === null ? "by pinned memory" : "staged";
  test(...needs(missing, `a read, ${by}, returns the memory as it was when the read was requested`), async () => {
    for (const schedule of ["latest", "random", "round-robin"] as const) {
      const reports: string[] = [];
      const cuda = Cuda.simulate({ schedule, check: { onReport: ({ message }) => reports.push(message) } });
      {
        using stream = cuda.device(0).createStream();
        using buffer = new DeviceMemoryResource(cuda.device(0)).allocate(24_000, { stream });
        const view = StridedMemoryView.fromBuffer(buffer, { shape, dtype: "float64" });
        view.copyFrom(StridedMemoryView.fromTypedArray(numbers, { shape }), { stream });
        const result = new Float64Array(new ArrayBuffer(24_000));
        const bytes = new Uint8Array(result.buffer);
        const reading = readBack(view.permuted([1, 0]), bytes, StridedLayout.dense([50, 60], 8), stream, staging);
        buffer.fill(0xff, { stream }); // after the copy, before the bytes have arrived
        using filled = stream.record();
        await reading;
        assertEquals([...result], turned());
        if (schedule === "latest") assertEquals(filled.isDone, false, "nothing has waited for the work after it");
        stream.synchronize();
      }
      cuda.close();
      assertEquals(reports, []);
    }
  });
}

const placesByHome = {
  device: (device: CudaDevice) => device.memory,
  synchronous: (device: CudaDevice) => new SynchronousMemoryResource(device),
  pinned: (device: CudaDevice) => new PinnedMemoryResource(device),
  managed: (device: CudaDevice) => new ManagedMemoryResource(device),
};

// The option was ignored: a read in the order of the home stream misses what another stream has yet to write.
test("elements are read after the work of the given stream, wherever they are and whatever their home", async () => {
  const places = fc.constantFrom(...Object.values(placesByHome));
  const property = fc.asyncProperty(
    places,
    fc.boolean(),
    fc.nat(),
    fc.nat(255),
    async (place, hasHome, seed, value) => {
      const cuda = Cuda.simulate({ schedule: "random", seed });
      const device = cuda.device(0);
      const [home, other] = [device.createStream({ nonBlocking: true }), device.createStream({ nonBlocking: true })];
      const buffer = place(device).allocate(4096, hasHome || place === placesByHome.device ? { stream: home } : {});
      const view = StridedMemoryView.fromBuffer(buffer, { shape: [64, 64], dtype: "uint8" }).T;
      other.wait(home);
      buffer.fill(value, { stream: other });
      const read = await view.toTypedArray({ stream: other });
      assertEquals([...read], new Array(4096).fill(value));
      home.wait(other);
      buffer.close();
      cuda.close();
    },
  );
  await check(property, 100);
});

test("a stream on which nothing can be read is refused before anything is read", async () => {
  using cuda = Cuda.simulate();
  const [device, elsewhere] = [cuda.device(0), Cuda.simulate().device(0)];
  const closed = device.createStream();
  closed.close();
  for (const view of [StridedMemoryView.zeros([2], { device }), StridedMemoryView.zeros([2])]) {
    await assertRejects(() => view.toTypedArray({ stream: closed }), TypeError, "Cannot read on a stream");
    await assertRejects(() => view.toTypedArray({ strm: closed } as never), TypeError, "strm");
  }
  const view = StridedMemoryView.zeros([2], { device });
  await assertRejects(
    () => view.toTypedArray({ stream: elsewhere.createStream() }),
    TypeError,
    "Cannot read on a stream",
  );
});

test(...needs(missing, "where the device has no memory for a copy, pinned memory is used"), async () => {
  using cuda = Cuda.simulate({ memory: 2 ** 21 }); // one piece of a pool
  using stream = cuda.device(0).createStream();
  using buffer = new DeviceMemoryResource(cuda.device(0)).allocate(24_000, { stream });
  using _rest = new DeviceMemoryResource(cuda.device(0)).allocate(2 ** 21 - 40_000, { stream });
  const view = StridedMemoryView.fromBuffer(buffer, { shape, dtype: "float64" });
  view.copyFrom(StridedMemoryView.fromTypedArray(numbers, { shape }), { stream });
  const result = new Float64Array(new ArrayBuffer(24_000));
  await readBack(view, new Uint8Array(result.buffer), view.layout, stream, plan);
  assertEquals(result, numbers);
});

test(...needs(missing, "memory for a copy that the device cannot make is freed"), async () => {
  using cuda = Cuda.simulate();
  using stream = cuda.device(0).createStream();
  using buffer = new DeviceMemoryResource(cuda.device(0)).allocate(24_000, { stream });
  const view = StridedMemoryView.fromBuffer(buffer, { shape, dtype: "float64" });
  view.copyFrom(StridedMemoryView.fromTypedArray(numbers, { shape }), { stream });
  const out = new Set<bigint>();
  intercept(cuda.driver, "pool", ({ cuMemAllocFromPoolAsync, cuMemFreeAsync }) => ({
    cuMemAllocFromPoolAsync(at, ...rest) {
      const code = cuMemAllocFromPoolAsync(at, ...rest);
      if (code === 0) out.add(new DataView(ffiPort().memory(at, 8)).getBigUint64(0, true));
      return code;
    },
    cuMemFreeAsync(ptr, handle) {
      out.delete(ptr);
      return cuMemFreeAsync(ptr, handle);
    },
  }));
  let refusals = 0;
  intercept(cuda.driver, "kernel", ({ cuLaunchKernel }) => ({
    cuLaunchKernel: (...args) => refusals++ === 0 ? CUresult.CUDA_ERROR_OUT_OF_MEMORY : cuLaunchKernel(...args),
  }));
  const result = new Float64Array(new ArrayBuffer(24_000));
  await readBack(view.permuted([1, 0]), new Uint8Array(result.buffer), StridedLayout.dense([50, 60], 8), stream, plan);
  assertEquals([...result], turned(), "pinned memory is used");
  assert(refusals > 0);
  assertEquals(out.size, 0, "it was left to the garbage collector");
});
