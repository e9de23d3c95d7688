/** How the simulator handles time, memory and failures, call by call. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import {
  CU_DEVICE_ATTRIBUTE,
  CU_MEMPOOL_ATTR,
  CU_STREAM_CAPTURE_MODE,
  CU_STREAM_LEGACY,
  CUDA_MEMCPY2D_v2,
  CUDA_MEMCPY3D_v2,
  CUresult,
} from "../../bindings/cuda_types.ts";
import { Cuda, CudaError, DeviceMemoryResource } from "../../mod.ts";
import { cString, readField } from "../../src/ffi/c_string.ts";
import { libc } from "../../src/ffi/libc.ts";
import { ffiPort } from "../../src/ffi/port.ts";
import { simulateDriver, type SimulateOptions } from "../../src/sim/mod.ts";
import { check, fc } from "../support/property.ts";
import { Raw } from "../support/raw_driver.ts";
import { simulatorOf } from "../support/simulator_of.ts";

const seeds = Array.from({ length: 32 }, (_, seed) => seed);

/**
 * A simulator with a stream for work, and page-locked memory for it to fill, which can be seen without a copy.
 */
function busy(options: SimulateOptions, streamFlags = 1) {
  const simulated = simulateDriver(options);
  const raw = new Raw(simulated.driver);
  raw.use(0);
  const stream = raw.stream(streamFlags);
  const { address, bytes } = raw.pinned(16);
  bytes.fill(0);
  const fill = (value: number, on = stream) => raw.ok(simulated.driver.fill.cuMemsetD8Async(address, value, 16n, on));
  return { simulated, driver: simulated.driver, raw, stream, fill, seen: () => bytes[0] };
}

test("nothing runs before something waits for it, if work runs as late as it may", () => {
  const { driver, raw, stream, fill, seen, simulated } = busy({ schedule: "latest" });
  const other = raw.stream(1);
  fill(7);
  raw.ok(driver.stream.cuStreamSynchronize(other));
  assertEquals([seen(), simulated.live.queued], [0, 1]);
  raw.ok(driver.stream.cuStreamSynchronize(stream));
  assertEquals([seen(), simulated.live.queued], [7, 0]);
});

test("by some seeds work runs at once, by others late", () => {
  const early = seeds.filter((seed) => {
    const { driver, raw, fill, seen } = busy({ seed });
    fill(7);
    for (let i = 0; i < 20; i++) driver.context.cuCtxGetCurrent(raw.arena.out("ptr").$address);
    return seen() === 7;
  });
  assert(early.length > 0 && early.length < seeds.length, `${early.length} of ${seeds.length} are early`);
});

test("repeated queries whether work is done come to an end, and the first answer may be no", () => {
  for (const schedule of ["latest", "random", "round-robin"] as const) {
    const answers = seeds.map((seed) => {
      const { driver, stream, fill } = busy({ schedule, seed });
      fill(7);
      let asked = 0;
      while (driver.stream.cuStreamQuery(stream) === CUresult.CUDA_ERROR_NOT_READY) asked++;
      return asked;
    });
    assert(answers.every((asked) => asked < 10), `${schedule}: ${answers}`);
    if (schedule !== "round-robin") assert(answers.some((asked) => asked > 0), schedule);
  }
});

test("each of several events of a context is found done after as many queries as one alone", () => {
  const { driver, raw, fill } = busy({ schedule: "latest" });
  const events = [1, 2, 3].map(() => {
    fill(7);
    const event = raw.event();
    raw.ok(driver.context.cuCtxRecordEvent?.(raw.context(0), event) ?? CUresult.CUDA_ERROR_NOT_SUPPORTED);
    return event;
  });
  let left = events;
  for (let round = 0; round < 4; round++) {
    left = left.filter((event) => driver.event.cuEventQuery(event) === CUresult.CUDA_ERROR_NOT_READY);
  }
  assertEquals(left, []);
});

// Queries were counted only by task: each new event, a new task, began from none, and `isReady` records one a call.
test("repeated queries come to an end if each asks about an event recorded for it", () => {
  for (const schedule of ["latest", "random", "round-robin"] as const) {
    for (const seed of seeds) {
      const { driver, raw, stream, fill } = busy({ schedule, seed });
      fill(7);
      const isPending = () => {
        const event = raw.event();
        raw.ok(driver.event.cuEventRecord(event, stream));
        return driver.event.cuEventQuery(event) === CUresult.CUDA_ERROR_NOT_READY;
      };
      let asked = 0;
      while (asked < 10 && isPending()) asked++;
      assert(asked < 10, `${schedule} ${seed}`);
    }
  }
});

// The devices of all simulators had the same addresses: a write to memory of another one hit memory of its own.
test("memory of another simulator is refused, however many there have been, and addresses are exact", () => {
  check(
    fc.property(fc.array(fc.integer({ min: 1, max: 900 }), { minLength: 2, maxLength: 6 }), (counts) => {
      const made = counts.map((devices) => {
        const simulated = simulateDriver({ devices });
        const raw = new Raw(simulated.driver);
        const { context, memory, fill } = simulated.driver;
        const last = raw.word((out) => context.cuDevicePrimaryCtxRetain(out, devices - 1));
        raw.ok(context.cuCtxSetCurrent(last));
        const address = raw.word((out) => memory.cuMemAlloc_v2(out, 16n));
        raw.ok(fill.cuMemsetD8_v2(address, 7, 16n));
        return { simulated, fill, address };
      });
      for (const { address } of made) assert(Number.isSafeInteger(Number(address) + 16), `${address}`);
      const [first, second] = [made.at(-2), made.at(-1)];
      assert(first !== undefined && second !== undefined);
      for (const [one, other] of [[first, second], [second, first]] as const) {
        assertEquals(one.fill.cuMemsetD8_v2(other.address, 8, 16n), CUresult.CUDA_ERROR_INVALID_VALUE);
        assertEquals([...one.simulated.peek(one.address, 16)], new Array(16).fill(7));
      }
    }),
    30,
  );
});

test("a wait is for the record that exists by then, not for a later one", () => {
  const { driver, raw, stream, fill, seen } = busy({ schedule: "latest" });
  const other = raw.stream(1);
  const event = raw.event();
  fill(1);
  raw.ok(driver.event.cuEventRecord(event, stream));
  raw.ok(driver.stream.cuStreamWaitEvent(other, event, 0));
  fill(2);
  raw.ok(driver.event.cuEventRecord(event, stream));
  raw.ok(driver.stream.cuStreamSynchronize(other));
  assertEquals(seen(), 1);
  raw.ok(driver.event.cuEventSynchronize(event));
  assertEquals(seen(), 2);
});

test("the legacy default stream waits for blocking streams and they for it, and for no others", () => {
  for (const [flags, expected] of [[0, 7], [1, 0]] as const) {
    const { driver, raw, fill, seen } = busy({ schedule: "latest" }, flags);
    const event = raw.event();
    fill(7);
    raw.ok(driver.event.cuEventRecord(event, 0n));
    raw.ok(driver.event.cuEventSynchronize(event));
    assertEquals(seen(), expected, `legacy after a stream with flags ${flags}`);
    const other = busy({ schedule: "latest" }, flags);
    other.fill(7, 1n);
    const after = other.raw.event();
    other.raw.ok(other.driver.event.cuEventRecord(after, other.stream));
    other.raw.ok(other.driver.event.cuEventSynchronize(after));
    assertEquals(other.seen(), expected, `a stream with flags ${flags} after legacy`);
  }
});

test("an event recorded by context waits for every stream, and a destroyed stream finishes its work", () => {
  const { driver, raw, seen, simulated } = busy({ schedule: "latest" });
  const { address } = raw.pinned(16);
  const gone = raw.word((out) => driver.stream.cuStreamCreate(out, 1));
  raw.ok(driver.fill.cuMemsetD8Async(address, 5, 16n, gone));
  raw.ok(driver.stream.cuStreamDestroy_v2(gone));
  assertEquals(driver.stream.cuStreamQuery(gone), CUresult.CUDA_ERROR_INVALID_HANDLE);
  const event = raw.event();
  raw.ok(driver.context.cuCtxRecordEvent?.(raw.context(0), event) ?? -1);
  assertEquals(simulated.live.queued, 2);
  raw.ok(driver.event.cuEventSynchronize(event));
  assertEquals([simulated.live.queued, seen()], [0, 0]);
  assertEquals(simulated.peek(address, 1), new Uint8Array([5]));
});

test("a context that waits for an event waits with all its later work", () => {
  const { driver, raw, stream, fill, seen } = busy({ schedule: "latest" });
  const event = raw.event();
  fill(7);
  raw.ok(driver.event.cuEventRecord(event, stream));
  raw.ok(driver.context.cuCtxWaitEvent?.(raw.context(0), event) ?? -1);
  const other = raw.stream(1);
  const { address } = raw.pinned(16);
  raw.ok(driver.fill.cuMemsetD8Async(address, 1, 16n, other));
  raw.ok(driver.stream.cuStreamSynchronize(other));
  assertEquals(seen(), 7);
});

test("freed memory holds poison, and is reused at once", () => {
  const { driver, raw, stream, simulated } = busy({ schedule: "latest" });
  const first = raw.allocate(1000, stream);
  raw.ok(driver.fill.cuMemsetD8Async(first, 7, 1000n, stream));
  raw.ok(driver.stream.cuStreamSynchronize(stream));
  assertEquals(simulated.peek(first, 2), new Uint8Array([7, 7]));
  raw.ok(driver.pool.cuMemFreeAsync(first, stream));
  assertEquals(simulated.peek(first, 2), new Uint8Array([7, 7]), "the free has not run yet");
  assertEquals(raw.allocate(600, stream), first);
  raw.ok(driver.stream.cuStreamSynchronize(stream));
  assertEquals(simulated.peek(first, 2), new Uint8Array([0xdb, 0xdb]));
  raw.ok(driver.fill.cuMemsetD8Async(first, 8, 600n, stream));
  raw.ok(driver.pool.cuMemFreeAsync(first, stream));
  raw.ok(driver.stream.cuStreamSynchronize(stream));
  assertEquals(simulated.peek(first, 2), new Uint8Array([0xdb, 0xdb]), "a read that comes too late must see it");
});

test("freeing memory that is not in stream order waits for the work that may use it", () => {
  const { driver, raw, stream, simulated } = busy({ schedule: "latest" });
  const memory = raw.word((out) => driver.memory.cuMemAlloc_v2(out, 16n));
  raw.ok(driver.fill.cuMemsetD8Async(memory, 1, 16n, stream));
  assertEquals(simulated.live.queued, 1);
  raw.ok(driver.memory.cuMemFree_v2(memory));
  assertEquals(simulated.live.queued, 0);
  const pooled = raw.allocate(16, stream);
  raw.ok(driver.fill.cuMemsetD8Async(pooled, 1, 16n, stream));
  raw.ok(driver.memory.cuMemFree_v2(pooled));
  assertEquals(simulated.live.queued, 2, "memory of a pool is freed at once: waiting is the caller's responsibility");
});

test("memory freed on one stream is reused on another only after the free: by an event, or when it has run", () => {
  const { driver, raw, stream } = busy({ schedule: "latest" });
  const other = raw.stream(1);
  const event = raw.event();
  const pool = raw.pool(0);
  const off = raw.arena.out("i32");
  raw.ok(driver.pool.cuMemPoolSetAttribute(pool, 3, off.$address)); // REUSE_ALLOW_INTERNAL_DEPENDENCIES
  const [a, b, c] = [raw.allocate(512, stream), raw.allocate(512, stream), raw.allocate(512, stream)];
  raw.ok(driver.stream.cuStreamSynchronize(stream));
  raw.ok(driver.pool.cuMemFreeAsync(a, stream));
  assert(raw.allocate(512, other) !== a, "nothing orders the allocation after the free");
  raw.ok(driver.event.cuEventRecord(event, stream));
  raw.ok(driver.stream.cuStreamWaitEvent(other, event, 0));
  assertEquals(raw.allocate(512, other), a, "the stream waits for the free");
  raw.ok(driver.pool.cuMemFreeAsync(b, stream));
  raw.ok(driver.pool.cuMemFreeAsync(c, stream));
  raw.ok(driver.context.cuCtxSynchronize());
  assert([b, c].includes(raw.allocate(512, other)), "the frees have run");
});

test("memory is limited, and a free that is queued makes room when nothing else does", () => {
  const { driver, raw, stream } = busy({ schedule: "latest", memory: 2 ** 22 });
  const out = raw.arena.out("ptr");
  const other = raw.stream(1);
  const all = raw.allocate(2 ** 22, stream);
  assertEquals(driver.memory.cuMemAlloc_v2(out.$address, 1n), CUresult.CUDA_ERROR_OUT_OF_MEMORY);
  assertEquals(driver.pool.cuMemAllocAsync(out.$address, 1n, stream), CUresult.CUDA_ERROR_OUT_OF_MEMORY);
  raw.ok(driver.pool.cuMemFreeAsync(all, stream));
  assertEquals(raw.allocate(2 ** 22, other), all);
});

test("unused memory is returned to the device when the host synchronises, beyond the threshold", () => {
  const { driver, raw, stream } = busy({ schedule: "latest", memory: 2 ** 24 });
  const [free, total] = [raw.arena.out("size"), raw.arena.out("size")];
  const available = () => {
    raw.ok(driver.memory.cuMemGetInfo_v2(free.$address, total.$address));
    return free.value;
  };
  const use = () => raw.ok(driver.pool.cuMemFreeAsync(raw.allocate(2 ** 22, stream), stream));
  use();
  assertEquals(available(), 2 ** 24 - 2 ** 22);
  raw.ok(driver.stream.cuStreamSynchronize(stream));
  assertEquals(available(), 2 ** 24);
  const threshold = raw.arena.out("u64");
  threshold.value = 2n ** 40n;
  raw.ok(driver.pool.cuMemPoolSetAttribute(raw.pool(0), 4, threshold.$address));
  use();
  raw.ok(driver.stream.cuStreamSynchronize(stream));
  assertEquals(available(), 2 ** 24 - 2 ** 22);
  raw.ok(driver.pool.cuMemPoolTrimTo(raw.pool(0), 0n));
  assertEquals(available(), 2 ** 24);
});

test("an asynchronous copy reads page-locked memory when it runs, and may do so with other memory of the host", () => {
  const copied = (pinned: boolean, options: SimulateOptions, flags = 1): number => {
    const { driver, raw, simulated } = busy(options);
    const stream = raw.word((out) => driver.stream.cuStreamCreate(out, flags));
    const source = pinned ? raw.pinned(16) : raw.pageable(16);
    source.bytes.fill(1);
    const target = raw.word((out) => driver.memory.cuMemAlloc_v2(out, 16n));
    raw.ok(driver.copy.cuMemcpyHtoDAsync_v2(target, source.address, 16n, stream));
    source.bytes.fill(2);
    raw.ok(driver.stream.cuStreamSynchronize(stream));
    return simulated.peek(target, 1)[0] ?? 0;
  };
  assertEquals(copied(true, { schedule: "latest" }), 2);
  assertEquals(
    copied(true, { schedule: "latest" }, 0),
    2,
    "on a blocking stream, where there is nothing to come after",
  );
  assertEquals(copied(false, { schedule: "latest" }), 2);
  assertEquals(copied(false, { schedule: "round-robin" }), 1);
  assertEquals([...new Set(seeds.map((seed) => copied(false, { seed })))].sort(), [1, 2]);
});

test("a copy that is not asynchronous has read or written the host's memory when it returns", () => {
  for (const schedule of ["latest", "random", "round-robin"] as const) {
    const { driver, raw } = busy({ schedule });
    const [up, down] = [raw.pageable(16), raw.pageable(16)];
    up.bytes.fill(3);
    const target = raw.word((out) => driver.memory.cuMemAlloc_v2(out, 16n));
    raw.ok(driver.copy.cuMemcpyHtoD_v2(target, up.address, 16n));
    up.bytes.fill(4);
    raw.ok(driver.copy.cuMemcpyDtoH_v2(down.address, target, 16n));
    assertEquals(down.bytes[0], 3);
  }
});

test("a host function runs in its place in the stream, and while the program yields", async () => {
  const { driver, raw, stream, fill, seen } = busy({ schedule: "latest" });
  const { address, bytes } = raw.pinned(16);
  bytes.fill(0);
  const callback = ffiPort().callback({ args: ["ptr"], returns: "void" }, (data) => {
    libc().memory.memset(data, seen() ?? 0, 1n);
    assertEquals(driver.event.cuEventCreate(0n, 0), CUresult.CUDA_ERROR_NOT_PERMITTED);
  });
  raw.onClose(() => callback.close());
  fill(1);
  raw.ok(driver.stream.cuLaunchHostFunc(stream, callback.address, address));
  fill(2);
  assertEquals(bytes[0], 0);
  await Promise.resolve();
  assertEquals([bytes[0], seen()], [1, 1]);
  raw.ok(driver.stream.cuStreamSynchronize(stream));
  assertEquals(seen(), 2);
  raw.close();
});

test("work of several streams is captured into one graph, and runs in the order of the capture", () => {
  for (const seed of seeds) {
    const { driver, raw, stream, fill, seen } = busy({ seed });
    const other = raw.stream(1);
    const event = raw.event();
    const { capture, graph } = driver;
    raw.ok(capture.cuStreamBeginCapture_v2(stream, 0));
    fill(1);
    raw.ok(driver.event.cuEventRecord(event, stream));
    raw.ok(driver.stream.cuStreamWaitEvent(other, event, 0));
    fill(2, other);
    raw.ok(driver.event.cuEventRecord(event, other));
    raw.ok(driver.stream.cuStreamWaitEvent(stream, event, 0));
    fill(3);
    const captured = raw.word((out) => capture.cuStreamEndCapture(stream, out));
    const count = raw.arena.out("size");
    raw.ok(graph.cuGraphGetNodes(captured, 0n, count.$address));
    assertEquals(count.value, 3);
    const exec = raw.word((out) => graph.cuGraphInstantiateWithFlags(out, captured, 0n));
    raw.ok(driver.context.cuCtxSynchronize());
    assertEquals(seen(), 0, "nothing runs while it is captured");
    raw.ok(graph.cuGraphLaunch(exec, stream));
    fill(4);
    raw.ok(graph.cuGraphLaunch(exec, other));
    raw.ok(driver.stream.cuStreamSynchronize(other));
    raw.ok(driver.stream.cuStreamSynchronize(stream));
    assert(seen() === 3 || seen() === 4, `${seen()}`);
    raw.ok(graph.cuGraphExecDestroy(exec));
    raw.ok(graph.cuGraphDestroy(captured));
    raw.close();
  }
});

test("a call refused during a capture has allocated nothing and freed nothing", () => {
  const { driver, raw, stream } = busy({}, 0);
  const { capture, pool } = driver;
  const current = raw.word((out) => pool.cuDeviceGetMemPool(out, 0));
  const value = raw.arena.out("u64");
  const used = (): number => {
    raw.ok(pool.cuMemPoolGetAttribute(current, CU_MEMPOOL_ATTR.USED_MEM_CURRENT, value.$address));
    return Number(value.value);
  };
  const { address } = raw.pinned(64);
  const memory = raw.allocate(64, CU_STREAM_LEGACY);
  const captured = (attempt: () => number): [attempted: number, ended: number] => {
    raw.ok(capture.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE.RELAXED));
    return [attempt(), capture.cuStreamEndCapture(stream, value.$address)];
  };
  const { CUDA_ERROR_STREAM_CAPTURE_IMPLICIT: implicit, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED: invalidated } = CUresult;
  assertEquals(captured(() => pool.cuMemAllocAsync(value.$address, 64n, CU_STREAM_LEGACY)), [implicit, invalidated]);
  assertEquals(used(), 64);
  assertEquals(captured(() => pool.cuMemFreeAsync(memory, CU_STREAM_LEGACY)), [implicit, invalidated]);
  assertEquals(used(), 64);
  // Memory that cannot be freed this way is reported as such, even during a capture.
  const [freed] = captured(() => pool.cuMemFreeAsync(address, CU_STREAM_LEGACY));
  assertEquals(freed, CUresult.CUDA_ERROR_INVALID_VALUE);
  raw.ok(pool.cuMemFreeAsync(memory, CU_STREAM_LEGACY));
  raw.ok(driver.context.cuCtxSynchronize());
  assertEquals(used(), 0);
  raw.close();
});

test("rectangles and boxes are copied row by row", () => {
  for (const schedule of ["latest", "random"] as const) {
    using cuda = Cuda.simulate({ schedule });
    using raw = new Raw(cuda.driver);
    raw.use(0);
    const { copyPitched, memory, stream } = cuda.driver;
    const target = raw.word((out) => memory.cuMemAlloc_v2(out, 4096n));
    const up = raw.pinned(64);
    const down = raw.pinned(64);
    up.bytes.forEach((_, i) => up.bytes[i] = i);
    down.bytes.fill(0xff);
    // 3 rows of 4 bytes, from column 2 and row 1 of an 8-byte pitch, to a pitch of 16, and back into a pitch of 5.
    const there = raw.arena.struct(CUDA_MEMCPY2D_v2);
    Object.assign(there, { srcMemoryType: 1, srcHost: up.address, srcPitch: 8, srcXInBytes: 2, srcY: 1 });
    Object.assign(there, { dstMemoryType: 2, dstDevice: target, dstPitch: 16, WidthInBytes: 4, Height: 3 });
    const back = raw.arena.struct(CUDA_MEMCPY3D_v2);
    Object.assign(back, { srcMemoryType: 2, srcDevice: target, srcPitch: 16, srcHeight: 3, dstMemoryType: 1 });
    Object.assign(back, { dstHost: down.address, dstPitch: 5, dstHeight: 3, WidthInBytes: 4, Height: 3, Depth: 1 });
    raw.ok(copyPitched.cuMemcpy2DAsync_v2(there.$address, 0n));
    raw.ok(copyPitched.cuMemcpy3DAsync_v2(back.$address, 0n));
    raw.ok(stream.cuStreamSynchronize(0n));
    const expected = [10, 11, 12, 13, 255, 18, 19, 20, 21, 255, 26, 27, 28, 29, 255];
    assertEquals(Array.from(down.bytes.subarray(0, 15)), expected);
    back.srcPitch = 3; // narrower than a row
    assertEquals(copyPitched.cuMemcpy3D_v2(back.$address), CUresult.CUDA_ERROR_INVALID_VALUE);
    raw.ok(memory.cuMemFree_v2(target));
  }
});

test("contexts form a stack, and a destroyed one is reported as such", () => {
  const { driver, raw } = busy({});
  const { context } = driver;
  const out = raw.arena.out("ptr");
  const made = raw.word((at) => context.cuCtxCreate_v2(at, 0, 0));
  const current = () => raw.word((at) => context.cuCtxGetCurrent(at));
  assertEquals(current(), made);
  const stream = raw.word((at) => driver.stream.cuStreamCreate(at, 1));
  raw.ok(context.cuCtxPushCurrent_v2(raw.context(0)));
  assertEquals(current(), raw.context(0));
  raw.ok(context.cuCtxDestroy_v2(made));
  raw.ok(context.cuCtxPopCurrent_v2(out.$address));
  assertEquals(out.value, raw.context(0));
  assertEquals(current(), made, "a context stays where it is on the stack");
  assertEquals(context.cuCtxSynchronize(), CUresult.CUDA_ERROR_CONTEXT_IS_DESTROYED);
  assertEquals(driver.stream.cuStreamQuery(stream), CUresult.CUDA_ERROR_INVALID_HANDLE);
  assertEquals(context.cuCtxSetCurrent(made), CUresult.CUDA_ERROR_INVALID_CONTEXT);
});

test("the nth call fails as requested, and the others are not changed", () => {
  const { simulated, driver, raw, stream } = busy({});
  const out = raw.arena.out("ptr");
  simulated.failNth("cuMemAllocAsync", 2, CUresult.CUDA_ERROR_OUT_OF_MEMORY);
  const before = simulated.calls("cuMemAllocAsync");
  const first = raw.allocate(16, stream);
  out.value = 5n;
  assertEquals(driver.pool.cuMemAllocAsync(out.$address, 16n, stream), CUresult.CUDA_ERROR_OUT_OF_MEMORY);
  assertEquals([out.value, simulated.live.allocations], [5n, 2], "a call that fails does nothing");
  assert(raw.allocate(16, stream) !== first);
  assertEquals(simulated.calls("cuMemAllocAsync"), before + 3);
  assertThrows(() => simulated.failNth("cuMemoryAlloc", 1, 2), RangeError, "no such function");
  assertThrows(() => simulated.failNth("cuMemAllocAsync", 0, 2), RangeError, "expected 1 or more");
});

test("objects that a program leaks are counted", () => {
  const cuda = Cuda.simulate({ schedule: "latest" });
  const simulated = simulatorOf(cuda);
  const device = cuda.device(0);
  const stream = device.createStream();
  const event = stream.record();
  const buffer = new DeviceMemoryResource(device).allocate(100, { stream });
  const { streams, events, allocations, bytes, contexts } = simulated.live;
  assertEquals({ streams, events, allocations, bytes, contexts }, {
    streams: 1,
    events: 1,
    allocations: 1,
    bytes: 100,
    contexts: 1,
  });
  for (const one of [buffer, event, stream, cuda]) one.close();
  const left = Object.values(simulated.live).reduce((sum: number, count: number) => sum + count, 0);
  assertEquals(left, 0);
});

test("a driver of an older version lacks later functions", () => {
  using older = simulateDriver({ driverVersion: 12040 });
  assertEquals(older.driver.context.cuCtxRecordEvent, null);
  assert(older.driver.stream.cuStreamGetId !== null);
  using oldest = simulateDriver({ driverVersion: 11040 });
  assertEquals([oldest.driver.stream.cuStreamGetId, oldest.driver.kernel.cuLaunchKernelEx], [null, null]);
});

test("devices without pools, without peers, and no devices at all", () => {
  using cuda = Cuda.simulate({ devices: 2, poolsSupported: false, canAccessPeer: () => false });
  const [one, two] = cuda.devices;
  assert(one !== undefined && two !== undefined);
  assertEquals(one.attribute("MEMORY_POOLS_SUPPORTED"), 0);
  assertEquals(one.canAccessPeer(two), false);
  using raw = new Raw(cuda.driver, 2);
  raw.use(0);
  const out = raw.arena.out("ptr");
  assertEquals(cuda.driver.pool.cuMemAllocAsync(out.$address, 16n, 0n), CUresult.CUDA_ERROR_NOT_SUPPORTED);
  assertEquals(
    cuda.driver.context.cuCtxEnablePeerAccess(raw.context(1), 0),
    CUresult.CUDA_ERROR_PEER_ACCESS_UNSUPPORTED,
  );
  assertThrows(() => Cuda.simulate({ devices: 0 }), CudaError, "CUDA_ERROR_NO_DEVICE");
  assertThrows(() => Cuda.simulate({ devices: -1 }), RangeError, "expected an integer of at least 0");
});

test("each of many devices has a place and an identity of its own, and is found by its place in every form", () => {
  const devices = 600;
  const { driver } = simulateDriver({ devices });
  using raw = new Raw(driver);
  const { device } = driver;
  const text = raw.arena.bytes(32);
  const attribute = (which: number, ordinal: number) =>
    raw.int((out) => device.cuDeviceGetAttribute(out, which, ordinal));
  const places = new Set<string>();
  const identities = new Set<string>();
  for (let ordinal = 0; ordinal < devices; ordinal++) {
    raw.ok(device.cuDeviceGetPCIBusId(text.address, 32, ordinal));
    const place = readField(text.bytes);
    const [domain = "", bus = "", slot = ""] = place.split(":");
    assertEquals([domain.length, bus.length, slot], [4, 2, "00.0"]);
    assertEquals(parseInt(domain, 16), attribute(CU_DEVICE_ATTRIBUTE.PCI_DOMAIN_ID, ordinal));
    assertEquals(parseInt(bus, 16), attribute(CU_DEVICE_ATTRIBUTE.PCI_BUS_ID, ordinal));
    const short = domain === "0000" ? [`${bus}:00.0`] : [];
    for (const form of [place, place.toLowerCase(), `0000${place}`, `${domain}:${bus}:00`, ...short]) {
      assertEquals(raw.int((out) => device.cuDeviceGetByPCIBusId(out, cString(form))), ordinal, form);
    }
    const { $address: out } = raw.arena.out("i32");
    assertEquals(
      device.cuDeviceGetByPCIBusId(out, cString(`${domain}:${bus}:00.1`)),
      CUresult.CUDA_ERROR_INVALID_DEVICE,
    );
    raw.ok(device.cuDeviceGetUuid_v2(text.address, ordinal));
    identities.add(text.bytes.subarray(0, 16).join());
    places.add(place);
  }
  assertEquals([places.size, identities.size], [devices, devices]);
});
