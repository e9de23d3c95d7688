/**
 * Pieces of a shared pool: imported any number of times, freed once, after the work of every stream that used them.
 */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { checkDriver } from "../../../src/checker/mod.ts";
import { SimulatedDriver } from "../../../src/public/sim.ts";
import {
  Cuda,
  CudaError,
  DeviceMemoryResource,
  HostMemoryResource,
  type MemoryBuffer,
  PinnedMemoryResource,
} from "../../../mod.ts";
import { CUresult } from "../../../bindings/cuda_types.ts";
import { errno, libc as tables } from "../../../bindings/libc.ts";
import { NativeArena } from "../../../src/ffi/arena.ts";
import { libc } from "../../../src/ffi/libc.ts";
import { ffiPort } from "../../../src/ffi/port.ts";
import { drainFrees } from "../../../src/order/deferred_free.ts";
import { FailingCalls } from "../../support/failing_calls.ts";
import { intercept } from "../../support/intercept.ts";
import { openFiles } from "../../support/open_files.ts";
import { check, fc } from "../../support/property.ts";
import { live, pair, sharedPool } from "./pair.ts";

test("a piece may be imported any number of times: the last close returns it, after the work of all", () => {
  type Step = readonly ["import" | "close" | "use" | "close a pool", number];
  const what = fc.constantFrom("import", "import", "import", "close", "close", "use", "use", "use", "close a pool");
  const step: fc.Arbitrary<Step> = fc.tuple(what, fc.nat(5));
  check(
    fc.property(
      fc.array(step, { maxLength: 20 }),
      fc.constantFrom("latest", "random"),
      fc.nat(),
      (steps, schedule, seed) => {
        using both = pair(schedule, seed);
        const { here, there } = both;
        const [pool, imported] = sharedPool(both);
        // To the driver it is one piece, whichever pool of the process and whichever resource it comes through.
        using file = pool.exportPool();
        const again = DeviceMemoryResource.importPool(there.device(0), file);
        const closed = new Set<unknown>();
        const ways = [imported, again, new DeviceMemoryResource(there.device(0), imported.pool)];
        using mine = here.device(0).createStream();
        const streams = [0, 1, 2].map(() => there.device(0).createStream());
        using buffer = pool.allocate(64, { stream: mine });
        buffer.fill(5, { stream: mine });
        mine.synchronize();
        const descriptor = buffer.exportDescriptor();
        const open: MemoryBuffer[] = [];
        const sinks: MemoryBuffer[] = [];
        for (const [what, at] of steps) {
          const stream = streams[at % 3];
          const one = open[at % Math.max(1, open.length)];
          if (what === "import" && stream !== undefined) {
            const way = ways[(at + steps.length) % ways.length] ?? imported;
            if (!closed.has(way.pool)) open.push(way.importBuffer(descriptor, { stream }));
          } else if (what === "close a pool") {
            const pool = (at % 2 === 0 ? imported : again).pool;
            closed.add(pool);
            pool.close();
          } else if (one === undefined || one.stream === null) continue;
          else if (what === "close") open.splice(open.indexOf(one), 1)[0]?.close();
          else {
            const sink = new HostMemoryResource().allocate(64);
            one.copyTo(sink, { stream: one.stream });
            sinks.push(sink);
          }
          assertEquals(live(there).allocations, open.length > 0 ? 1 : 0);
          for (const { ptr } of open) assertEquals(ptr, open[0]?.ptr);
        }
        for (const one of open) one.close();
        streams.forEach((_, i) => streams[(i + seed) % streams.length]?.synchronize());
        for (const sink of sinks) assertEquals([...sink.bytes()], new Array(64).fill(5));
        assertEquals(live(there).allocations, 0);
        for (const stream of streams) stream.close();
        for (const one of [imported, again]) one.close();
        drainFrees();
        assertEquals([live(there).pools, live(there).streams, live(there).events], [0, 0, 0]);
      },
    ),
    150,
  );
});

test("while an import of a piece stays in use, others open and close and leave no event", () => {
  using both = pair();
  const { here, there } = both;
  const [pool, imported] = sharedPool(both);
  using exported = pool.allocate(64);
  const descriptor = exported.exportDescriptor();
  const open = imported.importBuffer(descriptor);
  for (let i = 0; i < 100; i++) {
    const stream = there.device(0).createStream();
    const buffer = imported.importBuffer(descriptor, { stream });
    buffer.fill(i, { stream });
    stream.synchronize();
    for (const one of [buffer, stream]) one.close();
    assert(live(there).events <= 4, `${live(there).events} events`);
  }
  open.close();
  here.device(0).synchronize();
});

test("the last close of a piece comes after the work on each stream that other imports of it were closed on", () => {
  using both = pair("latest");
  const { here, there } = both;
  const [pool, imported] = sharedPool(both);
  using exported = pool.allocate(64);
  exported.fill(5, { stream: here.device(0).defaultStream });
  here.device(0).synchronize();
  for (let used = 0; used < 4; used++) {
    const streams = Array.from({ length: 4 }, () => there.device(0).createStream());
    const copies = streams.map((stream) => imported.importBuffer(exported.exportDescriptor(), { stream }));
    const sink = new PinnedMemoryResource(there.device(0)).allocate(64);
    const stream = streams[used];
    assert(stream !== undefined);
    copies[used]?.copyTo(sink, { stream });
    for (const one of copies) one.close();
    for (const one of streams.toReversed()) one.synchronize();
    assertEquals(new Set(sink.bytes()), new Set([5]), `stream ${used}`);
    for (const one of [sink, ...streams]) one.close();
  }
});

test("a pool is destroyed as often as it was imported, and never while anything of it is in use", () => {
  check(
    fc.property(
      fc.array(fc.array(fc.nat(2), { maxLength: 2 }), { minLength: 1, maxLength: 4 }),
      fc.infiniteStream(fc.nat()),
      (imports, dice) => {
        using both = pair();
        const { there } = both;
        const [pool, imported] = sharedPool(both);
        const codes: number[] = [];
        intercept(there.driver, "pool", ({ cuMemPoolDestroy }) => ({
          cuMemPoolDestroy: (handle) => {
            const code = cuMemPoolDestroy(handle);
            codes.push(code);
            return code;
          },
        }));
        using file = pool.exportPool();
        const exported = [0, 1, 2].map(() => pool.allocate(8));
        const open: { close(): void }[] = [imported];
        for (const pieces of imports) {
          const again = DeviceMemoryResource.importPool(there.device(0), file);
          assertEquals(again.pool.handle, imported.pool.handle, "as on a GPU");
          open.push(again);
          for (const at of pieces) {
            const descriptor = exported[at]?.exportDescriptor();
            if (descriptor !== undefined) open.push(again.importBuffer(descriptor));
          }
        }
        while (open.length > 0) {
          assertEquals(codes, []);
          open.splice((dice.next().value ?? 0) % open.length, 1)[0]?.close();
          drainFrees();
        }
        assertEquals([codes, live(there).pools], [new Array(1 + imports.length).fill(0), 0]);
        for (const one of exported) one.close();
      },
    ),
    60,
  );
});

test("a pool of which another library of the process has memory is closed quietly, and the driver keeps it", () => {
  using both = pair();
  const { here, there } = both;
  const [pool, imported] = sharedPool(both);
  using exported = pool.allocate(64);
  using arena = new NativeArena();
  const { address, bytes } = arena.bytes(64);
  bytes.set(Uint8Array.fromHex(exported.exportDescriptor().data));
  const out = arena.out("ptr");
  const { cuMemPoolImportPointer } = there.driver.poolSharing;
  const take = () => cuMemPoolImportPointer(out.$address, imported.pool.handle, address);
  assertEquals(there.device(0).withContext(take), 0);
  imported.close();
  drainFrees();
  assertEquals(live(there).pools, 1);
  here.device(0).synchronize();
});

test("a piece that is mapped at its former address again is counted anew, and keeps its pool", () => {
  using both = pair();
  const { there } = both;
  const [pool, imported] = sharedPool(both);
  let [mapped, real, frees] = [0n, 0n, 0];
  intercept(there.driver, "poolSharing", ({ cuMemPoolImportPointer }) => ({
    cuMemPoolImportPointer: (out, from, data) => {
      const code = cuMemPoolImportPointer(out, from, data);
      const place = new BigUint64Array(ffiPort().memory(out, 8));
      real = place[0] ?? 0n;
      mapped ||= real;
      place[0] = mapped; // as on a GPU
      return code;
    },
  }));
  intercept(there.driver, "pool", ({ cuMemFreeAsync }) => ({
    cuMemFreeAsync: (_, stream) => (frees++, cuMemFreeAsync(real, stream)),
  }));
  using exported = pool.allocate(64);
  for (let i = 1; i <= 2; i++) {
    const copy = imported.importBuffer(exported.exportDescriptor());
    if (i === 2) imported.close();
    drainFrees();
    assertEquals([copy.ptr, live(there).pools, frees], [mapped, 1, i - 1]);
    copy.close();
    drainFrees();
    assertEquals([frees, live(there).pools], [i, 2 - i]);
  }
});

test("a checked and an unchecked Cuda of one process know of each other's imports", () => {
  using both = pair("latest");
  const [pool, imported] = sharedPool(both);
  const { driver } = checkDriver(both.there.driver, { leaks: false, onReport: () => {} });
  const device = Cuda.over(driver).device(0);
  using file = pool.exportPool();
  const again = DeviceMemoryResource.importPool(device, file);
  using exported = pool.allocate(64);
  exported.fill(7, { stream: both.here.device(0).defaultStream });
  both.here.device(0).synchronize();
  const [one, other] = [imported, again].map((way) => way.importBuffer(exported.exportDescriptor()));
  assert(one !== undefined && other !== undefined);
  assertEquals(one.ptr, other.ptr);
  one.close();
  assertEquals(live(both.there).allocations, 1);
  const seen = new Uint8Array(new ArrayBuffer(64));
  other.copyTo(seen, { stream: device.defaultStream });
  device.synchronize();
  assertEquals(new Set(seen), new Set([7]));
  for (const closing of [other, again, device]) closing.close();
  assertEquals(live(both.there).allocations, 0);
});

test("imported pieces are returned in order also where the driver has no event left to mark their end", () => {
  for (const call of ["cuEventCreate", "cuEventRecord", "cuStreamWaitEvent"]) {
    const here = Cuda.simulate();
    const reports: string[] = [];
    const there = Cuda.simulate({ schedule: "latest", check: { onReport: (report) => reports.push(report.message) } });
    const pool = new DeviceMemoryResource(here.device(0), { shareable: true });
    using file = pool.exportPool();
    const imported = DeviceMemoryResource.importPool(there.device(0), file);
    const device = there.device(0);
    const streams = [device.createStream(), device.createStream()];
    const exported = pool.allocate(64);
    const buffers = streams.map((stream) => imported.importBuffer(exported.exportDescriptor(), { stream }));
    const [used] = streams;
    if (used !== undefined) buffers[0]?.fill(1, { stream: used });
    SimulatedDriver.of(there.driver)?.failNth(call, 1, CUresult.CUDA_ERROR_OUT_OF_MEMORY);
    for (const buffer of buffers) buffer.close();
    for (const stream of streams) stream.close();
    imported.close();
    there.close();
    drainFrees();
    assertEquals([call, reports, live(there).allocations, live(there).events], [call, [], 0, 0]);
    exported.close();
    pool.close();
    here.close();
  }
});

test("an export of a pool that the system has no room for leaves no file", () => {
  using both = pair();
  using pool = new DeviceMemoryResource(both.here.device(0), { shareable: true });
  using calls = new FailingCalls(libc(), { files: tables.files });
  const before = openFiles();
  for (const call of ["memfd_create", "pwrite"]) {
    calls.failNthWith(call, 1, errno.ENOSPC);
    assertThrows(() => pool.exportPool(), CudaError, "CUDA_ERROR_OPERATING_SYSTEM");
    assertEquals([calls.hasFailed, openFiles()], [true, before]);
  }
});

test("a pool whose import fails halfway is not left behind", () => {
  using both = pair();
  const [here, there] = [both.here.device(0), both.there.device(0)];
  using pool = new DeviceMemoryResource(here, { shareable: true });
  using file = pool.exportPool();
  SimulatedDriver.of(both.there.driver)?.failNth("cuDeviceGetAttribute", 1, CUresult.CUDA_ERROR_UNKNOWN);
  assertThrows(() => DeviceMemoryResource.importPool(there, file), CudaError, "cuDeviceGetAttribute");
  assertEquals(live(both.there).pools, 0);
});
