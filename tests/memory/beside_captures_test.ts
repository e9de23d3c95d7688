/**
 * Another library captures a stream, in any mode: work done meanwhile is not refused, does not invalidate the capture,
 * and is not lost.
 */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { CU_STREAM_CAPTURE_MODE, CUresult } from "../../bindings/cuda_types.ts";
import { SimulatedDriver } from "../../src/public/sim.ts";
import { Cuda, DeviceMemoryResource, PinnedMemoryResource, StridedMemoryView } from "../../mod.ts";
import { NativeArena } from "../../src/ffi/arena.ts";
import { drainFrees } from "../../src/order/deferred_free.ts";
import { liveExports, reclaim } from "../../src/order/reclaim.ts";
import { besideCapture, runBesideCapture } from "../gpu/beside_captures.ts";
import { check, fc } from "../support/property.ts";
import { simulatorOf } from "../support/simulator_of.ts";

test("whatever is done while another library captures, its capture stays valid, and nothing is left behind", () => {
  check(
    fc.property(besideCapture, fc.nat(1000), (program, seed) => {
      const cuda = Cuda.simulate({ seed, schedule: "random" });
      runBesideCapture(cuda, program);
      cuda.close();
      const { live } = simulatorOf(cuda);
      const { streams, events, graphs, pools, allocations, contexts } = live;
      assertEquals(
        { streams, events, graphs, pools, allocations, contexts },
        { streams: 0, events: 0, graphs: 0, pools: 0, allocations: 0, contexts: 0 },
      );
    }),
    250,
  );
});

test("a device's memory can be used for the first time while something is captured", () => {
  for (const mode of ["global", "thread-local", "relaxed"] as const) {
    using cuda = Cuda.simulate();
    const device = cuda.device(0);
    using stream = device.createStream();
    using capture = stream.beginCapture({ mode });
    const { memory } = device; // was refused, and invalidated the capture
    capture.end().close();
    memory.allocate(64, { stream }).close();
  }
});

test("a release during a capture that cannot be seen fails no other call, and is ordered once that has ended", () => {
  const cuda = Cuda.simulate({ schedule: "latest" });
  const simulated = SimulatedDriver.of(cuda.driver);
  const device = cuda.device(0);
  const theirs = device.createStream();
  const stream = device.createStream();
  const buffer = device.memory.allocate(64, { stream });
  const view = StridedMemoryView.fromBuffer(buffer, { shape: [64], dtype: "uint8" });
  const out = view.toDlpack({ stream });
  buffer.close();
  using arena = new NativeArena();
  const graph = arena.out("ptr");
  const { cuStreamBeginCapture_v2, cuStreamEndCapture } = cuda.driver.capture;
  cuStreamBeginCapture_v2(theirs.handle, CU_STREAM_CAPTURE_MODE.GLOBAL); // by the library that made the stream
  out.close();
  for (let i = 0; i < 3; i++) device.memory.allocate(64, { stream }).close(); // also polls for memory to free
  assertEquals(liveExports(), 1);
  const code = cuStreamEndCapture(theirs.handle, graph.$address);
  assertEquals(code, CUresult.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "the limit that docs/driver.md names");
  assertEquals(liveExports(), 0);
  for (const one of [theirs, stream]) one.close();
  cuda.close();
  assertEquals(simulated?.live.allocations, 0);
});

for (const nonBlocking of [false, true]) {
  const stream = nonBlocking ? "cannot be seen" : "holds up the default stream";
  test(`memory closed during a capture that ${stream} is freed once that has ended, and not before`, () => {
    const cuda = Cuda.simulate({ schedule: "latest" });
    const simulated = simulatorOf(cuda);
    const device = cuda.device(0);
    const [theirs, stream] = [device.createStream({ nonBlocking }), device.createStream()];
    const pool = new DeviceMemoryResource(device, {});
    const used = pool.allocate(64, { stream });
    used.close(); // the pool is not destroyed before this free has run
    const ours = [
      device.memory.allocate(64, { stream: device.defaultStream }),
      new PinnedMemoryResource(device).allocate(64, { stream: device.defaultStream }),
    ];
    for (const one of ours) one.copyFrom(new Uint8Array(64), { stream: device.defaultStream });
    using arena = new NativeArena();
    const graph = arena.out("ptr");
    const { cuStreamBeginCapture_v2, cuStreamEndCapture } = cuda.driver.capture;
    cuStreamBeginCapture_v2(theirs.handle, CU_STREAM_CAPTURE_MODE.GLOBAL); // by the library that made the stream
    if (!nonBlocking) { for (const one of ours) one.close(); }
    pool.close();
    for (let i = 0; i < 3; i++) reclaim();
    if (!nonBlocking) assertEquals(simulated.live.allocations, 2);
    assertEquals(simulated.live.pools, 1);
    const code = cuStreamEndCapture(theirs.handle, graph.$address);
    assertEquals(code === CUresult.CUDA_SUCCESS, !nonBlocking, "the limit that docs/driver.md names");
    if (nonBlocking) { for (const one of ours) one.close(); }
    else cuda.driver.graph.cuGraphDestroy(graph.value);
    reclaim();
    device.synchronize();
    for (let i = 0; i < 10; i++) reclaim(); // a pool waits for two marks, and each passes after some polls
    assertEquals([simulated.live.allocations, simulated.live.pools], [0, 0]);
    for (const one of [theirs, stream]) one.close();
    cuda.close();
    drainFrees(); // the source of a copy is kept until the default stream is done
    assertEquals([simulated.live.contexts, simulated.live.events, simulated.live.graphs], [0, 0, 0]);
  });
}
