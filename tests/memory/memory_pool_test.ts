/** Pools: ownership, how much they may hold and keep, and that they live as long as their memory. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { CUresult } from "../../bindings/cuda_types.ts";
import { MemoryPool } from "../../src/public/cuda.ts";
import { Cuda, CudaError, DeviceMemoryResource, type MemoryBuffer } from "../../mod.ts";
import { NativeArena } from "../../src/ffi/arena.ts";
import { drainFrees } from "../../src/order/deferred_free.ts";
import { otherContext } from "../support/other_context.ts";
import { check, fc } from "../support/property.ts";
import { simulatorOf } from "../support/simulator_of.ts";

function setUp() {
  const cuda = Cuda.simulate({ schedule: "latest" });
  const simulated = simulatorOf(cuda);
  return { cuda, simulated, device: cuda.device(0) };
}

test("a device's own pool keeps its memory unless a program has set otherwise, and is never destroyed", () => {
  const { cuda, simulated, device } = setUp();
  using arena = new NativeArena();
  const threshold = arena.out("u64");
  const [pool, again] = [MemoryPool.current(device), MemoryPool.current(device)];
  assertEquals([pool.handle, pool.isOwned, pool.releaseThreshold], [again.handle, false, 2 ** 64]);
  threshold.value = 12345n;
  assertEquals(cuda.driver.pool.cuMemPoolSetAttribute(pool.handle, 4, threshold.$address), 0);
  assertEquals(MemoryPool.current(device).releaseThreshold, 12345);
  pool.close();
  assertEquals(simulated.calls("cuMemPoolDestroy"), 0);
  assertThrows(() => pool.handle, TypeError, "Cannot use a closed memory pool");
  assertThrows(() => pool.trim(), TypeError, "Cannot use a closed memory pool");
  cuda.close();
  assertEquals(simulated.live.contexts, 0);
});

test("a created pool has the limits that it was given, and invalid ones are refused", () => {
  const { device } = setUp();
  for (const size of [-1, 0.5, NaN, Infinity, 2 ** 53]) {
    const words = `Cannot limit a pool to ${size} bytes`;
    assertThrows(() => MemoryPool.create(device, { maxSize: size }), RangeError, words);
    assertThrows(() => MemoryPool.create(device, { releaseThreshold: size }), RangeError, words);
  }
  using resource = new DeviceMemoryResource(device, { maxSize: 2 ** 22, releaseThreshold: 99 });
  for (const keep of [-1, 0.5, NaN, 2 ** 53]) {
    assertThrows(() => resource.pool.trim(keep), RangeError, `Cannot trim a pool to ${keep} bytes`);
  }
  assertEquals([resource.pool.isOwned, resource.pool.releaseThreshold], [true, 99]);
  assertThrows(() => resource.allocate(2 ** 23), CudaError, "CUDA_ERROR_OUT_OF_MEMORY");
  resource.allocate(2 ** 21).close();
  using unlimited = new DeviceMemoryResource(device, {});
  assertEquals(unlimited.pool.releaseThreshold, 2 ** 64);
  unlimited.allocate(2 ** 23).close();
});

test("a pool that cannot be set up is destroyed", () => {
  const { cuda, simulated, device } = setUp();
  simulated.failNth("cuMemPoolSetAttribute", 1, CUresult.CUDA_ERROR_UNKNOWN);
  assertThrows(() => MemoryPool.create(device, {}), CudaError, "cuMemPoolSetAttribute failed with CUDA_ERROR_UNKNOWN");
  assertEquals(simulated.live.pools, 0);
  cuda.close();
  assertEquals(simulated.live.contexts, 0);
});

test("a pool reports what it holds, and its high-water marks since they were last reset", () => {
  const { device } = setUp();
  const steps = fc.array(
    fc.tuple(fc.constantFrom("allocate", "free", "reset", "trim"), fc.integer({ min: 1, max: 2 ** 20 })),
  );
  check(
    fc.property(steps, (program) => {
      using resource = new DeviceMemoryResource(device, {});
      const { pool } = resource;
      const buffers: MemoryBuffer[] = [];
      let [used, high] = [0, 0];
      for (const [what, number] of program) {
        if (what === "allocate") {
          buffers.push(resource.allocate(number));
          high = Math.max(high, used += number);
        } else if (what === "free") {
          const one = buffers.pop();
          used -= one?.size ?? 0;
          one?.close();
        } else if (what === "reset") {
          pool.resetHighMarks();
          high = used;
        } else {
          device.synchronize();
          pool.trim();
          if (used === 0) assertEquals(pool.use.reserved, 0);
        }
        const { reserved, reservedHigh, used: now, usedHigh } = pool.use;
        assertEquals([now, usedHigh], [used, high]);
        assert(reserved >= used && reservedHigh >= reserved, `${reserved} reserved, ${reservedHigh} at most`);
      }
      for (const one of buffers) one.close();
    }),
    200,
  );
});

test("a pool lives as long as its last buffer, and its device as long as the pool", () => {
  check(
    fc.property(fc.array(fc.constantFrom("pool", "cuda", "one", "two", "pool again"), { minLength: 1 }), (program) => {
      const { cuda, simulated, device } = setUp();
      const resource = new DeviceMemoryResource(device, {});
      const buffers = { one: resource.allocate(64), two: resource.allocate(64) };
      let isOpen = true;
      for (const what of [...program, "two", "pool", "one", "cuda"]) {
        if (what === "cuda") cuda.close();
        else if (what === "one" || what === "two") buffers[what].close();
        else {
          resource.close();
          isOpen = false;
        }
        const { pools, contexts } = simulated.live;
        const isUsed = !buffers.one.isClosed || !buffers.two.isClosed;
        if (isUsed || isOpen) assertEquals([pools, contexts], [1, 1]);
        else assert(pools <= 1); // destroyed when the frees are done
      }
      drainFrees();
      assertEquals([simulated.live.pools, simulated.live.contexts, simulated.live.allocations], [0, 0, 0]);
      assertEquals(simulated.calls("cuMemPoolDestroy"), 1);
    }),
    100,
  );
});

test("an allocation whose name is refused leaves the pool to its other buffers", () => {
  const { cuda, simulated, device } = setUp();
  const resource = new DeviceMemoryResource(device, {});
  const buffer = resource.allocate(64);
  assertThrows(() => resource.allocate(64, { name: "" }), TypeError, "name");
  for (const one of [resource, cuda]) one.close();
  drainFrees();
  assertEquals([simulated.live.pools, simulated.live.contexts], [1, 1]);
  buffer.close();
  drainFrees();
  assertEquals([simulated.live.pools, simulated.live.contexts], [0, 0]);
});

// libcuda never frees a pool that is destroyed earlier, and neither does the simulator.
test("a pool is destroyed when the frees of its memory are done, on streams of whatever device, and not before", () => {
  const cuda = Cuda.simulate({ devices: 2, schedule: "latest" });
  const simulated = simulatorOf(cuda);
  const [device, abroad] = [cuda.device(0), cuda.device(1)];
  const [unused, used] = [new DeviceMemoryResource(device, {}), new DeviceMemoryResource(device, {})];
  used.peerAccessibleBy = [1];
  const stream = abroad.createStream();
  const buffer = used.allocate(64, { stream: device.defaultStream });
  buffer.setHomeStream(stream);
  for (const one of [buffer, stream, cuda]) one.close();
  assertEquals([simulated.live.pools, simulated.live.contexts], [2, 2]);
  used.close();
  unused.close();
  assertEquals(simulated.live.pools, 1);
  drainFrees();
  assertEquals([simulated.live.pools, simulated.live.contexts, simulated.live.queued], [0, 0, 0]);
});

test("a pool's end comes after frees on a stream of another library's context, whatever becomes of the stream", () => {
  for (const isDestroyed of [false, true]) {
    const { cuda, simulated, device } = setUp();
    {
      using other = otherContext(device);
      const { stream } = other;
      const resource = new DeviceMemoryResource(device, {});
      const buffer = resource.allocate(64, { stream });
      buffer.fill(1, { stream });
      buffer.close();
      if (isDestroyed) assertEquals(cuda.driver.stream.cuStreamDestroy_v2(stream.handle), 0);
      resource.close();
      drainFrees();
      assertEquals(simulated.calls("cuMemPoolDestroy"), 1);
      assertEquals(simulated.live.pools, 0, isDestroyed ? "its stream was destroyed" : "its stream lives");
    }
    cuda.close();
    assertEquals(simulated.live.contexts, 0);
  }
});

test("a free on a stream of the primary context makes no host wait, and only a foreign one is asked where it is", () => {
  const { simulated, device } = setUp();
  using own = device.createStream();
  using resource = new DeviceMemoryResource(device, {});
  const calls = ["cuStreamGetCtx", "cuStreamSynchronize", "cuCtxSynchronize", "cuEventSynchronize"] as const;
  const count = () => calls.map((call) => simulated.calls(call));
  for (const stream of [own, device.defaultStream, device.perThreadStream, device.foreignStream(own.handle)]) {
    assertEquals(count(), [0, 0, 0, 0]);
    const buffer = resource.allocate(64, { stream });
    buffer.fill(1, { stream });
    buffer.close();
  }
  assertEquals(count(), [1, 0, 0, 0]);
});

test("memory is freed on a stream of another library's context even if that is lost", () => {
  const { simulated, device } = setUp();
  using other = otherContext(device);
  const { stream } = other;
  using resource = new DeviceMemoryResource(device, {});
  const [buffer, last] = [resource.allocate(64, { stream }), resource.allocate(64, { stream })];
  simulated.failNth("cuStreamSynchronize", 1, CUresult.CUDA_ERROR_ILLEGAL_ADDRESS);
  buffer.close();
  simulated.failNth("cuStreamSynchronize", 1, CUresult.CUDA_ERROR_UNKNOWN);
  assertThrows(() => last.close(), CudaError, "CUDA_ERROR_UNKNOWN");
});
