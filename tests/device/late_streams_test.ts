/**
 * Streams that are closed while something still waits for them, or will query them later: nothing is thrown where it
 * cannot be caught, and nothing is leaked.
 */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { liveExports } from "../../src/order/reclaim.ts";
import { SimulatedDriver } from "../../src/public/sim.ts";
import {
  ArrowArray,
  Cuda,
  type CudaStream,
  DeviceMemoryResource,
  HostMemoryResource,
  StridedMemoryView,
} from "../../mod.ts";
import { patiently, runScript } from "../support/child.ts";
import { intercept } from "../support/intercept.ts";
import { until } from "../support/until.ts";
import { simulatorOf } from "../support/simulator_of.ts";

/** A GPU that takes the given time, in milliseconds, for work that is waited for without blocking. */
function busy(milliseconds: number) {
  const cuda = Cuda.simulate({ schedule: "latest" });
  intercept(cuda.driver, "stream", ({ cuLaunchHostFunc }) => ({
    cuLaunchHostFunc: (...args) => {
      setTimeout(() => cuLaunchHostFunc(...args), milliseconds);
      return 0;
    },
  }));
  const simulated = simulatorOf(cuda);
  return { cuda, simulated, device: cuda.device(0) };
}

test(
  "a wait for a stream that is closed meanwhile lasts until it is done, also when the Cuda is closed",
  patiently,
  async () => {
    // The check for failures, every 100 ms, had thrown in a timer: the process ended.
    const { cuda, simulated, device } = busy(250);
    const [alone, home] = [device.createStream(), device.createStream()];
    const buffer = device.memory.allocate(16, { stream: home });
    buffer.fill(7, { stream: home });
    const view = StridedMemoryView.fromBuffer(buffer, { shape: [16], dtype: "uint8" });
    const waits = [alone.completed(), home.completed(), view.toTypedArray()] as const;
    for (const stream of [alone, home]) stream.close();
    assertEquals(simulated.live.streams, 2, "they are retained");
    buffer.close();
    cuda.close();
    const [, , bytes] = await Promise.all(waits);
    assertEquals([...bytes], new Array(16).fill(7));
    assertEquals(simulated.live.streams, 0);
    await until(() => simulated.live.contexts === 0); // the memory that the bytes were copied from has no home stream
  },
);

test(
  "a graph that is closed with its stream while it runs releases the memory that it used when it is done",
  patiently,
  async () => {
    const { cuda, simulated, device } = busy(250);
    const host = new HostMemoryResource().allocate(64);
    {
      using stream = device.createStream();
      using buffer = new DeviceMemoryResource(device).allocate(64, { stream });
      using graph = stream.capture(() => {
        buffer.fill(7, { stream });
        buffer.copyTo(host, { stream });
      });
      using exec = graph.instantiate();
      exec.launch(stream);
    }
    await until(() => simulated.live.streams === 0);
    device.synchronize();
    assertEquals(new Set(host.bytes()), new Set([7]));
    host.close();
    cuda.close();
    const { streams, allocations, graphs, contexts } = simulated.live;
    assertEquals([streams, allocations, graphs, contexts], [0, 0, 0, 0]);
  },
);

test("streams that a graph was launched on are not retained once they are closed and done", () => {
  using cuda = Cuda.simulate();
  const device = cuda.device(0);
  const simulated = SimulatedDriver.of(cuda.driver);
  using first = device.createStream();
  using target = new DeviceMemoryResource(device).allocate(8, { stream: first });
  using graph = first.capture(() => target.fill(1, { stream: first }));
  using exec = graph.instantiate();
  for (let i = 0; i < 20; i++) {
    const stream = device.createStream();
    using buffer = device.memory.allocate(8, { stream });
    stream.close();
    assert(buffer.stream !== null && buffer.stream !== stream);
    exec.launch(buffer.stream);
    buffer.stream.synchronize();
  }
  assert((simulated?.live.streams ?? NaN) <= 3, `${simulated?.live.streams} streams`);
});

test("a default stream of a device stays open when it is closed, and memory goes on with it", async () => {
  using cuda = Cuda.simulate();
  const device = cuda.device(0);
  using buffer = device.memory.allocate(8);
  const view = StridedMemoryView.fromCudaArrayInterface({
    __cuda_array_interface__: { version: 3, data: [buffer.ptr, false], shape: [8], typestr: "|u1", strides: null },
  }, { device });
  {
    using stream = device.defaultStream;
    using other = device.perThreadStream;
    buffer.fill(5, { stream });
    other.synchronize();
  }
  assertEquals([device.defaultStream.isClosed, device.perThreadStream.isClosed], [false, false]);
  assertEquals([...await view.toTypedArray()], new Array(8).fill(5));
});

test("an imported array is returned though its streams were closed between its buffers, one of them by the collector", () => {
  const cuda = Cuda.simulate({ check: true });
  const device = cuda.device(0);
  const home = device.createStream();
  for (const order of [[1, 0], [0, 1]]) {
    const stream = device.createStream();
    const streams: CudaStream[] = [device.createStream(), stream];
    const buffer = device.memory.allocate(32, { stream: home });
    const view = StridedMemoryView.fromBuffer(buffer, { shape: [32], dtype: "uint8" });
    const got = ArrowArray.from(view, { stream });
    buffer.close();
    for (const at of order) {
      got.buffers[at]?.buffer.close();
      streams.pop()?.close();
    }
    got.close();
    assertEquals(liveExports(), 0);
  }
  home.close();
  cuda.close();
  const { allocations, streams, contexts } = SimulatedDriver.of(cuda.driver)?.live ?? {};
  assertEquals([allocations, streams, contexts], [0, 0, 0]);
});

test("a lease that is dropped ends, in order, and is reported if requested", patiently, async () => {
  const script = new URL("./dropped_lease_child.ts", import.meta.url);
  for (const leaks of ["1", undefined]) {
    const { code, stdout, stderr } = await runScript(script, { gc: true, env: { CAUSEWAY_LEAKS: leaks } });
    assertEquals([code, stdout.trim()], [0, "freed, 1 stream"], stderr);
    const report = "Causeway: a Lease of 1048576 bytes was never closed; ended by garbage collection";
    assertEquals(stderr.trim(), leaks === undefined ? "" : report);
  }
});
