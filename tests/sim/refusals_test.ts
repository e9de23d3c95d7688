/** What the simulator must refuse: programs would rely on whatever it grants and a GPU refuses. */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { CU_EVENT, CU_MEMORYTYPE, CU_MEMPOOL_ATTR, CU_STREAM, CUDA_MEMCPY3D_v2 } from "../../bindings/cuda_types.ts";
import { resultName } from "../../src/driver/driver.ts";
import type { SimulateOptions } from "../../src/public/cuda.ts";
import { type Schedule, simulateDriver } from "../../src/public/sim.ts";
import { poison } from "../../src/sim/device_memory.ts";
import { check, fc } from "../support/property.ts";
import { Raw } from "../support/raw_driver.ts";

const schedules = fc.constantFrom<Schedule>("latest", "random", "round-robin");
const mebibyte = 2 ** 20;

function setUp(options: SimulateOptions = {}, devices = 1) {
  const simulated = simulateDriver({ devices, ...options });
  const raw = new Raw(simulated.driver, devices);
  raw.use(0);
  return { simulated, raw, driver: simulated.driver, stream: raw.stream(CU_STREAM.NON_BLOCKING) };
}

test("freed memory is returned to the device when the host has waited, whatever its sizes and segments", () => {
  const size = fc.oneof(
    fc.integer({ min: 1, max: 5 }).map((n) => n * mebibyte),
    fc.integer({ min: 1, max: 5 * mebibyte }),
  );
  check(
    fc.property(fc.array(size, { minLength: 1, maxLength: 8 }), schedules, fc.nat(), (sizes, schedule, seed) => {
      const { raw, driver, stream } = setUp({ schedule, seed });
      const addresses = sizes.map((bytes) => raw.allocate(bytes, stream));
      for (const address of addresses) raw.ok(driver.pool.cuMemFreeAsync(address, stream));
      raw.ok(driver.stream.cuStreamSynchronize(stream));
      const out = raw.arena.out("u64");
      raw.ok(driver.pool.cuMemPoolGetAttribute(raw.pool(0), CU_MEMPOOL_ATTR.RESERVED_MEM_CURRENT, out.$address));
      assertEquals(out.value, 0n);
      raw.close();
    }),
    100,
  );
});

test("a pool never exceeds its maximum size", () => {
  const most = 8;
  const step = fc.record({ size: fc.integer({ min: 1, max: 5 }), frees: fc.boolean() });
  check(
    fc.property(fc.array(step, { minLength: 3, maxLength: 12 }), schedules, fc.nat(), (steps, schedule, seed) => {
      const { raw, driver, stream } = setUp({ schedule, seed });
      const pool = raw.createPool({ maxSize: most * mebibyte });
      const out = raw.arena.out("u64");
      const live: { readonly address: bigint; readonly size: number }[] = [];
      let [refused, asked] = [0, 0];
      for (const { size, frees } of steps) {
        const bytes = BigInt(2 * size * mebibyte); // whole segments, so that exactly the requested size is reserved
        const [oldest] = live;
        if (frees && oldest !== undefined) {
          live.shift();
          raw.ok(driver.pool.cuMemFreeAsync(oldest.address, stream));
        }
        const code = driver.pool.cuMemAllocFromPoolAsync(out.$address, bytes, pool, stream);
        if (code === 0) live.push({ address: out.value, size: 2 * size });
        else refused++;
        asked = live.reduce((sum, one) => sum + one.size, 0);
        assert(asked <= most, `${asked} of ${most} MiB are allocated`);
      }
      assert(refused > 0 || asked <= most);
      for (const { address } of live) raw.ok(driver.pool.cuMemFreeAsync(address, stream));
      raw.ok(driver.stream.cuStreamSynchronize(stream));
      raw.ok(driver.pool.cuMemPoolDestroy(pool));
      raw.close();
    }),
    100,
  );
});

test("no time is measured between events of which one has not passed, or was recorded in a capture since", () => {
  const { raw, driver, stream } = setUp({ schedule: "latest" });
  const [start, end] = [raw.event(CU_EVENT.DEFAULT), raw.event(CU_EVENT.DEFAULT)];
  const time = raw.arena.out("f32");
  const elapsed = () => resultName(driver.event.cuEventElapsedTime(time.$address, start, end));
  for (const event of [start, end]) raw.ok(driver.event.cuEventRecord(event, stream));
  assertEquals(elapsed(), "CUDA_ERROR_NOT_READY");
  raw.ok(driver.event.cuEventSynchronize(start));
  assertEquals(elapsed(), "CUDA_ERROR_NOT_READY");
  raw.ok(driver.stream.cuStreamSynchronize(stream));
  assertEquals(elapsed(), "CUDA_SUCCESS");
  raw.ok(driver.capture.cuStreamBeginCapture_v2(stream, 0));
  raw.ok(driver.event.cuEventRecord(end, stream));
  const graph = raw.word((out) => driver.capture.cuStreamEndCapture(stream, out));
  assertEquals(elapsed(), "CUDA_ERROR_INVALID_HANDLE");
  raw.ok(driver.graph.cuGraphDestroy(graph));
  raw.close();
});

test("a stream whose capture's first stream is gone captures nothing more, and no stream joins a capture that has ended", () => {
  const { raw, driver, stream } = setUp();
  const { capture, event, fill, stream: streams } = driver;
  const memory = raw.allocate(64, stream);
  const mark = raw.event();
  const first = raw.word((out) => streams.cuStreamCreate(out, CU_STREAM.NON_BLOCKING));
  raw.ok(capture.cuStreamBeginCapture_v2(first, 0));
  raw.ok(event.cuEventRecord(mark, first));
  raw.ok(streams.cuStreamWaitEvent(stream, mark, 0));
  raw.ok(streams.cuStreamDestroy_v2(first));
  const work = () => resultName(fill.cuMemsetD8Async(memory, 1, 64n, stream));
  assertEquals(work(), "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED");
  const { raw: other, driver: another, stream: origin } = setUp();
  const [joining, late] = [other.stream(CU_STREAM.NON_BLOCKING), other.event()];
  other.ok(another.capture.cuStreamBeginCapture_v2(origin, 0));
  other.ok(another.event.cuEventRecord(late, origin));
  const graph = other.word((out) => another.capture.cuStreamEndCapture(origin, out));
  assertEquals(resultName(another.stream.cuStreamWaitEvent(joining, late, 0)), "CUDA_ERROR_INVALID_VALUE");
  assertEquals(other.int((out) => another.capture.cuStreamIsCapturing(joining, out)), 0);
  other.ok(another.graph.cuGraphDestroy(graph));
  other.close();
});

test("memory of another process is accessible until it is closed, and then its address reads as poison", () => {
  check(
    fc.property(fc.integer({ min: 1, max: 200_000 }), fc.nat(255), fc.nat(3), (bytes, value, opens) => {
      const [owner, user] = [setUp(), setUp()];
      const memory = owner.raw.word((out) => owner.driver.memory.cuMemAlloc_v2(out, BigInt(bytes)));
      owner.raw.ok(owner.driver.fill.cuMemsetD8_v2(memory, value, BigInt(bytes)));
      owner.raw.ok(owner.driver.context.cuCtxSynchronize());
      const handle = owner.raw.arena.bytes(64);
      owner.raw.ok(owner.driver.ipc.cuIpcGetMemHandle(handle.address, memory));
      const open = () => user.raw.word((out) => user.driver.ipc.cuIpcOpenMemHandle_v2(out, handle.bytes.slice(), 1));
      const at = open();
      for (let i = 0; i < opens; i++) assertEquals(open(), at);
      const seen = () => new Set(user.simulated.peek(at, bytes));
      for (let i = 0; i <= opens; i++) {
        assertEquals(seen(), new Set([value]));
        user.raw.ok(user.driver.ipc.cuIpcCloseMemHandle(at));
      }
      assertEquals(seen(), new Set([poison]));
      assertEquals(new Set(owner.simulated.peek(memory, bytes)), new Set([value]));
      owner.raw.ok(owner.driver.memory.cuMemFree_v2(memory));
      for (const one of [owner, user]) one.raw.close();
    }),
    30,
  );
});

test("a box that is higher than the array that it is cut from is refused, on either side", () => {
  const { raw, driver } = setUp();
  const memory = raw.word((out) => driver.memory.cuMemAlloc_v2(out, 4096n));
  const shape = raw.arena.struct(CUDA_MEMCPY3D_v2);
  shape.srcMemoryType = shape.dstMemoryType = CU_MEMORYTYPE.DEVICE;
  [shape.srcDevice, shape.dstDevice] = [memory, memory + 2048n];
  [shape.srcPitch, shape.dstPitch, shape.WidthInBytes, shape.Depth] = [8, 8, 8, 2];
  const side = fc.record({ y: fc.nat(4), height: fc.integer({ min: 1, max: 8 }) });
  check(
    fc.property(side, side, fc.integer({ min: 1, max: 6 }), (source, destination, height) => {
      [shape.srcY, shape.srcHeight] = [source.y, source.height];
      [shape.dstY, shape.dstHeight] = [destination.y, destination.height];
      shape.Height = height;
      const fits = [source, destination].every((one) => one.y + height <= one.height);
      const code = driver.copyPitched.cuMemcpy3D_v2(shape.$address);
      assertEquals(resultName(code), fits ? "CUDA_SUCCESS" : "CUDA_ERROR_INVALID_VALUE");
    }),
    200,
  );
  raw.ok(driver.memory.cuMemFree_v2(memory));
  raw.close();
});
