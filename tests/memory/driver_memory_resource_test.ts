/** Pinned, managed and synchronous memory: where hints go, and which memory is accessible from where. */
import { assertEquals, assertMatch, assertThrows } from "@std/assert";
import { test } from "node:test";
import { CUresult } from "../../bindings/cuda_types.ts";
import { type Schedule, SimulatedDriver } from "../../src/public/sim.ts";
import {
  Cuda,
  CudaDevice,
  CudaError,
  type CudaStream,
  DeviceMemoryResource,
  ManagedMemoryResource,
  MemoryBuffer,
  PinnedMemoryResource,
  SynchronousMemoryResource,
} from "../../mod.ts";
import { NativeArena } from "../../src/ffi/arena.ts";
import { drainFrees } from "../../src/order/deferred_free.ts";
import { kernelText } from "../support/ptx/text.ts";
import { intercept } from "../support/intercept.ts";
import { check, fc } from "../support/property.ts";

/** Adds 1 to a word. */
const incrementPtx = kernelText("ld.global.u32 %r0, [%o]; add.u32 %r0, %r0, 1; st.global.u32 [%o], %r0;");

test("pinned memory is page-locked for every device, and is host memory for an export", () => {
  using cuda = Cuda.simulate({ devices: 2 });
  using buffer = new PinnedMemoryResource(cuda.device(0)).allocate(64);
  using arena = new NativeArena();
  const flags = arena.out("u32");
  const ask = () => cuda.driver.hostMemory.cuMemHostGetFlags(flags.$address, buffer.ptr);
  assertEquals([cuda.device(0).withContext(ask), flags.value & 1], [0, 1]); // CU_MEMHOSTALLOC_PORTABLE
  assertEquals([buffer.kind, buffer.device, buffer.isHostAccessible, buffer.isDeviceAccessible], [
    "pinned",
    null,
    true,
    true,
  ]);
  buffer.bytes().fill(1);
});

test("hints reach the right place: a device, or the host, on the stream that is given", () => {
  using cuda = Cuda.simulate({ devices: 2 });
  const managed = new ManagedMemoryResource(cuda.device(0));
  using buffer = managed.allocate(4096);
  const asked: unknown[] = [];
  using arena = new NativeArena();
  const current = arena.out("i32");
  intercept(cuda.driver, "managedMemory", () => ({
    cuMemPrefetchAsync(ptr, size, device, stream) {
      cuda.driver.context.cuCtxGetDevice(current.$address);
      asked.push([ptr, size, device, stream, stream <= 2n ? current.value : null]);
      return 0;
    },
    cuMemAdvise(ptr, size, advice, device) {
      asked.push([ptr, size, advice, device]);
      return 0;
    },
  }));
  const { ptr } = buffer;
  const asks = (work: () => void) => {
    asked.length = 0;
    work();
    return asked[0];
  };
  const far = cuda.device(1);
  const prefetch = (to: typeof far | null, stream: CudaStream) => asks(() => managed.prefetch(buffer, to, { stream }));
  assertEquals(prefetch(far, far.defaultStream), [ptr, 4096n, 1, 1n, 1]);
  assertEquals(prefetch(null, cuda.device(0).defaultStream), [ptr, 4096n, -1, 1n, 0]);
  assertEquals(asks(() => managed.advise(buffer, "SET_PREFERRED_LOCATION", far)), [ptr, 4096n, 3, 1]);
  assertEquals(asks(() => managed.advise(buffer, "SET_ACCESSED_BY", null)), [ptr, 4096n, 5, -1]);
  using elsewhere = Cuda.simulate();
  for (const other of [undefined, 1, {}, elsewhere.device(0)] as unknown as (typeof far)[]) {
    const message = other instanceof CudaDevice ? "of another Cuda" : "expected a CudaDevice, or null for the host";
    assertThrows(() => prefetch(other, far.defaultStream), TypeError, message);
    assertThrows(() => managed.advise(buffer, "SET_ACCESSED_BY", other), TypeError, message);
  }
});

test("memory is freed in its own device's context, whatever is current, and once", () => {
  const cuda = Cuda.simulate({ devices: 2 });
  const simulated = SimulatedDriver.of(cuda.driver);
  for (const Resource of [PinnedMemoryResource, ManagedMemoryResource, SynchronousMemoryResource]) {
    const buffers = cuda.devices.map((device) => new Resource(device).allocate(64));
    for (const one of buffers) one.close();
    for (const one of buffers) one.close();
  }
  assertEquals(simulated?.live.allocations, 0);
  cuda.close();
});

test("an allocation that fails is an error, and retains no device", () => {
  const cuda = Cuda.simulate({ memory: 2 ** 24 });
  const simulated = SimulatedDriver.of(cuda.driver);
  const device = cuda.device(0);
  const calls = { cuMemHostAlloc: PinnedMemoryResource, cuMemAllocManaged: ManagedMemoryResource };
  for (const [call, Resource] of Object.entries(calls)) {
    simulated?.failNth(call, 1, CUresult.CUDA_ERROR_OUT_OF_MEMORY);
    assertThrows(
      () => new Resource(device).allocate(64),
      CudaError,
      `${call} failed with CUDA_ERROR_OUT_OF_MEMORY (2): 64`,
    );
  }
  simulated?.failNth("cuMemHostAlloc", 1, CUresult.CUDA_ERROR_OUT_OF_MEMORY);
  const pinned = assertThrows(() => new PinnedMemoryResource(device).allocate(64), CudaError);
  assertMatch(pinned.message, /: 64 bytes of pinned memory were requested; the host uses \d+ and has \d+ of \d+ free/);
  const used = new SynchronousMemoryResource(device).allocate(2 ** 22);
  const { free, total } = device.memoryInfo();
  assertThrows(
    () => new SynchronousMemoryResource(device).allocate(2 ** 25),
    CudaError,
    `cuMemAlloc_v2 failed with CUDA_ERROR_OUT_OF_MEMORY (2): ${
      2 ** 25
    } bytes of device memory were requested; device 0 ` +
      `uses ${total - free} and has ${free} of ${total} free`,
  );
  assertEquals([total, free <= total - 2 ** 22], [2 ** 24, true]);
  used.close();
  cuda.close();
  assertEquals(simulated?.live.contexts, 0);
});

test("copies between every pair of kinds call the driver with their direction", () => {
  using cuda = Cuda.simulate();
  const device = cuda.device(0);
  using stream = device.createStream();
  const kinds = {
    pinned: new PinnedMemoryResource(device).allocate(8),
    managed: new ManagedMemoryResource(device).allocate(8),
    device: device.memory.allocate(8, { stream }),
  };
  const seen: string[] = [];
  const names = ["cuMemcpyAsync", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoDAsync_v2"] as const;
  intercept(cuda.driver, "copy", () => Object.fromEntries(names.map((name) => [name, () => (seen.push(name), 0)])));
  for (const from of Object.values(kinds)) {
    for (const to of Object.values(kinds)) if (from !== to) to.copyFrom(from, { stream });
  }
  assertEquals(seen, [
    ...["cuMemcpyHtoDAsync_v2", "cuMemcpyHtoDAsync_v2"],
    ...["cuMemcpyDtoHAsync_v2", "cuMemcpyDtoDAsync_v2"],
    ...["cuMemcpyDtoHAsync_v2", "cuMemcpyDtoDAsync_v2"],
  ]);
  using foreign = MemoryBuffer.fromPointer(kinds.device.ptr, 8, { device });
  assertThrows(() => foreign.fill(1), TypeError, "Cannot fill device memory without a stream");
  assertThrows(() => foreign.bytes(), TypeError, "Cannot read device memory from the host");
  assertThrows(() => foreign.copyFrom(kinds.pinned), TypeError, "Cannot copy device memory without a stream");
  for (const one of Object.values(kinds)) one.close();
});

test("memory without a home stream stays until its device has completed its uses, though frees need not wait", () => {
  const resources = [PinnedMemoryResource, ManagedMemoryResource, SynchronousMemoryResource];
  const schedules = fc.constantFrom<Schedule>("latest", "random", "round-robin");
  const uses = fc.constantFrom("read by a copy", "written by a copy", "used by a kernel");
  check(
    fc.property(
      fc.constantFrom(...resources),
      uses,
      schedules,
      fc.nat(),
      fc.boolean(),
      (Resource, use, schedule, seed, nonBlocking) => {
        using cuda = Cuda.simulate({ schedule, seed, freesWait: false });
        const device = cuda.device(0);
        using stream = device.createStream({ nonBlocking });
        using program = device.loadPtx(incrementPtx);
        const memory = new DeviceMemoryResource(device);
        using other = memory.allocate(4, { stream });
        using result = new PinnedMemoryResource(device).allocate(4, { stream });
        other.fill(3, { stream });
        const buffer = new Resource(device).allocate(4);
        buffer.fill(7, { stream });
        stream.synchronize();
        if (use === "read by a copy") other.copyFrom(buffer, { stream });
        else if (use === "written by a copy") buffer.copyFrom(other, { stream });
        else program.kernel("k").launch(stream, 1, 1, [buffer]); // fails where nothing is allocated
        buffer.close();
        using next = new Resource(device).allocate(4); // at the same address, if it is free
        next.fill(9, { stream });
        result.copyFrom(use === "written by a copy" ? next : other, { stream });
        stream.synchronize();
        const due = use === "read by a copy" ? 7 : use === "written by a copy" ? 9 : 3;
        assertEquals([...result.bytes()], new Array(4).fill(due));
      },
    ),
    200,
  );
  drainFrees();
});

test("memory without a home stream stays until other devices that can reach it have completed its uses", () => {
  const uses = fc.constantFrom("by a copy", "by a kernel");
  const schedules = fc.constantFrom<Schedule>("latest", "random", "round-robin");
  const resources = fc.constantFrom(PinnedMemoryResource, ManagedMemoryResource, SynchronousMemoryResource);
  check(
    fc.property(resources, uses, schedules, fc.nat(), (Resource, use, schedule, seed) => {
      using cuda = Cuda.simulate({ devices: 2, schedule, seed, freesWait: false });
      const [device, user] = [cuda.device(0), cuda.device(1)];
      using stream = user.createStream();
      using program = user.loadPtx(incrementPtx);
      using other = new PinnedMemoryResource(user).allocate(4, { stream });
      using own = new DeviceMemoryResource(user).allocate(4, { stream });
      own.fill(3, { stream });
      const buffer = new Resource(device).allocate(4);
      stream.synchronize();
      // Kernels of another device can access host-accessible memory; copies enable access to a device's own memory.
      if (use === "by a kernel" && buffer.isHostAccessible) program.kernel("k").launch(stream, 1, 1, [buffer]);
      else buffer.copyFrom(own, { stream });
      buffer.close();
      device.synchronize(); // its own device's work is done
      // The first of these may poll too early, and a later one gets the same address, if it is free.
      const later = Array.from({ length: 4 }, () => new Resource(device).allocate(4));
      using home = device.createStream();
      for (const one of later) one.fill(9, { stream: home });
      home.synchronize();
      stream.synchronize();
      for (const one of later) {
        other.copyFrom(one, { stream });
        stream.synchronize();
        assertEquals([...other.bytes()], [9, 9, 9, 9]);
        one.close();
      }
    }),
    200,
  );
  drainFrees();
});
