/** Objects used after their end, freed twice, or leaked; and how other calls affect the order. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import process from "node:process";
import { test } from "node:test";
import {
  CausalityChecker,
  CausalityError,
  type CausalityReport,
  checkDriver,
  type CheckOptions,
} from "../../src/checker/mod.ts";
import { type Schedule, SimulatedDriver } from "../../src/public/sim.ts";
import {
  Cuda,
  type CudaDevice,
  type CudaStream,
  DeviceMemoryResource,
  HostMemoryResource,
  type MemoryBuffer,
  PinnedMemoryResource,
  StridedMemoryView,
  SynchronousMemoryResource,
} from "../../mod.ts";
import { MemoryChannel, UnixSocket } from "../../src/public/sharing.ts";
import { CU_POINTER_ATTRIBUTE } from "../../bindings/cuda_types.ts";
import { libc } from "../../src/ffi/libc.ts";
import { drainFrees } from "../../src/order/deferred_free.ts";
import { nullDriver } from "../support/null_driver.ts";

interface Bench {
  readonly cuda: Cuda;
  readonly device: CudaDevice;
  readonly one: CudaStream;
  readonly other: CudaStream;
}

/** The reports after `work` on two streams of a checked device, ignoring leaks. */
function reportsOf(
  work: (bench: Bench) => void,
  options: CheckOptions = {},
  schedule: Schedule = "latest",
): CausalityReport[] {
  const cuda = Cuda.simulate({ schedule, check: { leaks: false, ...options, onReport: () => {} } });
  const device = cuda.device(0);
  const one = device.createStream();
  const other = device.createStream();
  work({ cuda, device, one, other });
  one.close();
  other.close();
  cuda.close();
  return [...cuda.reports];
}

function kinds(reports: readonly CausalityReport[]): string[] {
  return reports.map(({ kind }) => kind);
}

const bytes = 256;

test("memory that is freed in stream order is reported when it is used after that, on the same stream, too", () => {
  let ptr = 0n;
  const reports = reportsOf(({ cuda, device, one, other }) => {
    const buffer = new DeviceMemoryResource(device).allocate(bytes, { stream: one });
    ({ ptr } = buffer);
    buffer.close();
    other.wait(one);
    cuda.driver.fill.cuMemsetD8Async(ptr, 1, 16n, other.handle);
    cuda.driver.fill.cuMemsetD8Async(ptr + 64n, 1, 16n, one.handle);
  });
  assertEquals(kinds(reports), ["use-after-free", "use-after-free"]);
  const [{ first, second, address, bytes: count } = { first: null, second: null, address: null, bytes: 0 }] = reports;
  assertEquals([first?.call, first?.does, second?.call, second?.does], [
    "cuMemFreeAsync",
    "frees",
    "cuMemsetD8Async",
    "writes",
  ]);
  assertEquals([address, count], [ptr, 16]);
  assert(second?.stack[0]?.includes("lifetime_test.ts"), String(second?.stack));
});

test("memory that the pool reuses begins a new lifetime", () => {
  const reports = reportsOf(({ device, one }) => {
    const resource = new DeviceMemoryResource(device);
    const first = resource.allocate(bytes, { stream: one });
    const { ptr } = first;
    first.fill(1, { stream: one });
    first.close();
    const second = resource.allocate(bytes, { stream: one });
    assertEquals(second.ptr, ptr, "the pool gives the same memory again, or this shows nothing");
    second.fill(2, { stream: one });
    second.close();
  });
  assertEquals(reports, []);
});

test("freeing twice is reported, in stream order and at once", () => {
  const reports = reportsOf(({ cuda, device, one }) => {
    const buffer = new DeviceMemoryResource(device).allocate(bytes, { stream: one });
    const { ptr } = buffer;
    buffer.close();
    cuda.driver.pool.cuMemFreeAsync(ptr, one.handle);
    const plain = new SynchronousMemoryResource(device).allocate(bytes);
    const at = plain.ptr;
    plain.close();
    drainFrees(); // it has no home stream, so its free waits for the device
    device.withContext(() => cuda.driver.memory.cuMemFree_v2(at));
    const pinned = new PinnedMemoryResource(device).allocate(bytes);
    const host = pinned.ptr;
    pinned.close();
    drainFrees();
    device.withContext(() => cuda.driver.hostMemory.cuMemFreeHost(host));
  });
  assertEquals(kinds(reports), ["double-free", "double-free", "double-free"]);
  assertEquals(reports.map(({ second }) => second?.call), ["cuMemFreeAsync", "cuMemFree_v2", "cuMemFreeHost"]);
});

test("host memory that was freed may belong to other code: using it again is not reported", () => {
  const made = nullDriver();
  const { driver } = checkDriver(made.driver);
  driver.context.cuDevicePrimaryCtxRetain(scratch, 0);
  driver.context.cuCtxSetCurrent(0x1000n);
  driver.hostMemory.cuMemHostAlloc(scratch, 64n, 0);
  const address = 0x0d_0000_0000_0000n;
  assertEquals(driver.hostMemory.cuMemFreeHost(address), 0);
  assertEquals(driver.copy.cuMemcpyHtoDAsync_v2(0x77_0000n, address, 64n, 0n), 0);
});

const scratch = libc().loading.malloc(64n); // not a buffer: nothing references it, so it would be collected

test("a stream or an event that is destroyed is reported when it is used, with the call that destroyed it", () => {
  const reports = reportsOf(({ cuda, device, one }) => {
    const stream = device.createStream();
    const event = device.createEvent();
    const [handle, mark] = [stream.handle, event.handle];
    stream.close();
    event.close();
    cuda.driver.stream.cuStreamSynchronize(handle);
    cuda.driver.event.cuEventRecord(mark, one.handle);
  });
  assertEquals(kinds(reports), ["destroyed", "destroyed"]);
  assertEquals(reports.map(({ first, second }) => [first?.call, second?.call]), [
    ["cuStreamDestroy_v2", "cuStreamSynchronize"],
    ["cuEventDestroy_v2", "cuEventRecord"],
  ]);
});

test("a stream of a destroyed context is reported when it is used", () => {
  const cuda = Cuda.simulate({ check: { leaks: false, onReport: () => {} } });
  const { driver } = cuda;
  using out = new HostMemoryResource().allocate(8);
  const word = () => new DataView(out.bytes().buffer).getBigUint64(0, true);
  assertEquals(driver.context.cuCtxCreate_v2(out.ptr, 0, 0), 0);
  const context = word();
  assertEquals(driver.stream.cuStreamCreate(out.ptr, 1), 0);
  const stream = word();
  assertEquals(driver.context.cuCtxDestroy_v2(context), 0);
  driver.stream.cuStreamSynchronize(stream);
  assertEquals(cuda.reports.map(({ kind, first }) => [kind, first?.call]), [["destroyed", "cuCtxDestroy_v2"]]);
  cuda.close();
});

test("closing reports leaks, with the place that made them; closed objects that are still needed are no leaks", () => {
  const cuda = Cuda.simulate({ check: true });
  const device = cuda.device(0);
  const stream = device.createStream();
  device.createEvent();
  const pool = new DeviceMemoryResource(device, {});
  pool.allocate(bytes, { stream });
  pool.close(); // its buffer retains it
  const kept = new PinnedMemoryResource(device).allocate(bytes, { stream });
  kept.fill(1, { stream });
  kept.close(); // freed once its stream has reached that point
  stream.close(); // the remaining buffer retains it
  const error = assertThrows(() => cuda.close(), CausalityError);
  assert(error instanceof CausalityError);
  const { report } = error;
  assertEquals(report.kind, "leak");
  assertEquals(report.leaks.map(({ what }) => what), [`${bytes} bytes of pool memory`, "event"]);
  assert(report.leaks.every(({ made }) => made.stack[0]?.includes("lifetime_test.ts")), error.message);
  cuda.close(); // once
});

test("a Cuda that is closed last, with nothing left, reports nothing", () => {
  using cuda = Cuda.simulate({ check: true });
  const device = cuda.device(0);
  using stream = device.createStream();
  using event = device.createEvent();
  using pool = new DeviceMemoryResource(device, {});
  using buffer = pool.allocate(bytes, { stream });
  buffer.fill(1, { stream });
  stream.record(event);
  assertEquals(cuda.reports, []);
});

test("a stream that has only waited, and is destroyed, still passes on the order that it waited for", () => {
  // Its slot in the clocks must not be reused before: a bug that random programs found once in ten thousand.
  const reports = reportsOf(({ device, one }) => {
    const buffer = new DeviceMemoryResource(device).allocate(bytes, { stream: one });
    buffer.fill(1, { stream: one });
    const blocking = device.createStream({ nonBlocking: false });
    blocking.wait(one);
    blocking.close();
    device.createStream({ nonBlocking: false }).close();
    buffer.fill(2, { stream: device.defaultStream }); // after all blocking streams, including the destroyed one
    one.wait(device.defaultStream);
    buffer.close();
  });
  assertEquals(reports, []);
});

test("a wait for completed() is a wait of the host, also if more was enqueued meanwhile", async () => {
  const cuda = Cuda.simulate({ check: true, schedule: "latest" });
  const device = cuda.device(0);
  {
    using one = device.createStream();
    using other = device.createStream();
    using buffer = new DeviceMemoryResource(device).allocate(bytes, { stream: one });
    using second = new DeviceMemoryResource(device).allocate(bytes, { stream: one });
    buffer.fill(1, { stream: one });
    const completed = one.completed();
    second.fill(1, { stream: one });
    await completed;
    buffer.fill(2, { stream: other });
    one.wait(other);
  }
  cuda.close();
});

test("a checked driver gives access to the simulator behind it, and counts its own reports once each", () => {
  const reports = reportsOf(({ cuda, device, one, other }) => {
    assert(SimulatedDriver.of(cuda.driver) !== null);
    const buffer = new DeviceMemoryResource(device).allocate(bytes, { stream: one });
    for (let i = 0; i < 10; i++) {
      for (const stream of [one, other]) buffer.fill(i, { stream });
    }
    one.wait(other);
    buffer.close();
  });
  // One for each stream's fill after the other's, at the same place in this program.
  assertEquals(reports.length <= 3, true, `${reports.length} reports`);
});

test("CAUSEWAY_CHECK is the default, and an explicit option takes precedence", () => {
  const set = (value: string) => process.env["CAUSEWAY_CHECK"] = value;
  const before = process.env["CAUSEWAY_CHECK"] ?? "";
  try {
    for (
      const [value, isChecked, saysLeaks] of [["1", true, true], ["order", true, false], ["", false, false]] as const
    ) {
      set(value);
      const cuda = Cuda.simulate();
      assertEquals(CausalityChecker.of(cuda.driver) !== null, isChecked, value);
      cuda.device(0).createEvent();
      if (saysLeaks) assertThrows(() => cuda.close(), CausalityError);
      else cuda.close();
      for (const check of [true, false]) {
        using other = Cuda.simulate({ check });
        assertEquals(CausalityChecker.of(other.driver) !== null, check, value);
      }
    }
  } finally {
    set(before);
  }
});

test("the place of a repeated call is known however often it repeats", () => {
  const [report] = reportsOf(({ device, one, other }) => {
    const buffer = new DeviceMemoryResource(device).allocate(bytes, { stream: one });
    for (let i = 0; i < 1000; i++) buffer.fill(i % 256, { stream: one });
    other.wait(device.createStream()); // a wait that does not order the fills
    buffer.fill(1, { stream: other });
    one.wait(other);
    buffer.close();
  });
  for (const call of [report?.first, report?.second]) {
    assert(call?.stack[0]?.includes("lifetime_test.ts"), String(call?.stack));
  }
});

test("an event that another process may have recorded orders all work; calls on synchronous memory wait", () => {
  const reports = reportsOf(({ cuda, device, one, other }) => {
    const buffer = new SynchronousMemoryResource(device).allocate(bytes);
    const event = device.createEvent({ interprocess: true });
    one.record(event);
    event.exportHandle();
    buffer.fill(1, { stream: one });
    other.wait(event); // another process may have recorded it since
    buffer.fill(2, { stream: other });
    device.synchronize();

    using flag = new HostMemoryResource().allocate(4);
    flag.bytes().fill(1);
    const source = new SynchronousMemoryResource(device).allocate(bytes);
    const { SYNC_MEMOPS } = CU_POINTER_ATTRIBUTE;
    assertEquals(cuda.driver.pointer.cuPointerSetAttribute(flag.ptr, SYNC_MEMOPS, buffer.ptr), 0);
    buffer.copyFrom(source, { stream: one });
    buffer.fill(3, { stream: other });
    device.synchronize();

    const pinned = new PinnedMemoryResource(device).allocate(bytes);
    device.withContext(() => cuda.driver.fill.cuMemsetD8_v2(pinned.ptr, 1, BigInt(bytes)));
    pinned.fill(2, { stream: one }); // the host waits for a fill of its own memory
    device.synchronize();
    for (const each of [event, buffer, source, pinned]) each.close();
  });
  assertEquals(reports.map(({ message }) => message), []);
});

test("memory that is left at the address of closed memory is a leak", () => {
  const cuda = Cuda.simulate({ check: true });
  const device = cuda.device(0);
  const memory = new SynchronousMemoryResource(device);
  const closed = memory.allocate(bytes);
  const { ptr } = closed;
  closed.close();
  assertEquals(memory.allocate(bytes).ptr, ptr, "the same address again, or this shows nothing");
  const error = assertThrows(() => cuda.close(), CausalityError);
  assert(error instanceof CausalityError);
  assertEquals(error.report.leaks.map(({ what }) => what), [`${bytes} bytes of device memory`]);
});

// The report named what the program had not made, and could not close.
test("what the library needs for a promise that is pending when a Cuda closes is no leak", async () => {
  for (const what of ["event", "stream", "view"] as const) {
    const cuda = Cuda.simulate({ schedule: "latest", check: { onReport: () => {} } });
    let promise: Promise<unknown>;
    {
      using stream = cuda.device(0).createStream();
      using view = StridedMemoryView.zeros([4], { device: cuda.device(0), stream });
      using event = stream.record();
      promise = what === "view" ? view.toTypedArray() : what === "event" ? event.completed() : stream.completed();
    }
    cuda.close();
    await promise;
    assertEquals(cuda.reports.map(({ message }) => message), [], what);
  }
});

test("a memory channel that was closed is no leak while its end is on its way", async () => {
  for (let seed = 0; seed < 6; seed++) {
    const open = () => Cuda.simulate({ seed, check: { onReport: () => {} } });
    const [here, there] = [open(), open()];
    {
      const [one, other] = UnixSocket.pair();
      using owner = new MemoryChannel(one, here);
      using user = new MemoryChannel(other, there);
      using pool = new DeviceMemoryResource(here.device(0), { shareable: true });
      using work = here.device(0).createStream();
      using stream = there.device(0).createStream();
      {
        using weights = pool.allocate(1024, { stream: work });
        weights.fill(7, { stream: work });
        await owner.send({ weights });
      }
      const received = await user.receive({ stream }) as { weights: MemoryBuffer }; // as sent
      received.weights.fill(8, { stream });
      received.weights.close();
      await Promise.all([stream.completed(), work.completed()]);
    }
    there.close();
    here.close();
    assertEquals([...here.reports, ...there.reports].map(({ message }) => message), []);
  }
});
