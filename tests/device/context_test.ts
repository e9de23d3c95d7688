/** The context in which memory is freed outlives it, whatever allocated it and on whichever stream it is freed. */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { SimulatedDriver } from "../../src/public/sim.ts";
import { MemoryPool } from "../../src/public/cuda.ts";
import { Cuda, type CudaStream, MemoryBuffer } from "../../mod.ts";
import { NativeArena } from "../../src/ffi/arena.ts";

test("memory of a created resource retains its device's context, also with its home on another device", () => {
  // On two H200s libcuda itself crashed in such a free: the context of the pool's device was already destroyed.
  const cuda = Cuda.simulate({ devices: 2 });
  const simulated = SimulatedDriver.of(cuda.driver);
  const [device, second] = [cuda.device(0), cuda.device(1)];
  const home = second.createStream();
  const pool = MemoryPool.current(device);
  using arena = new NativeArena();
  const out = arena.out("ptr");
  device.withContext(() => device.driver.pool.cuMemAllocFromPoolAsync(out.$address, 64n, pool.handle, home.handle));
  const released: number[] = [];
  const free = (ptr: bigint, stream: CudaStream | null) => {
    released.push(simulated?.calls("cuDevicePrimaryCtxRelease_v2") ?? NaN);
    device.driver.pool.cuMemFreeAsync(ptr, stream?.handle ?? 0n);
  };
  const buffer = MemoryBuffer.fromAllocation({ ptr: out.value, size: 64, device, stream: home, free });
  home.close();
  cuda.close();
  buffer.close();
  assertEquals(released, [0], "no context is released before the free");
  assertEquals(simulated?.calls("cuDevicePrimaryCtxRelease_v2"), 2, "and both are after it");
  assertEquals(simulated?.calls("cuCtxSynchronize"), 1, "once the free on the other device's stream is over");
});
