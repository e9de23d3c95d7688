/**
 * Memory of a graph is freed after its launches, on any library's streams, and nothing is kept of completed launches.
 */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { CU_STREAM } from "../../../bindings/cuda_types.ts";
import { SimulatedDriver } from "../../../src/public/sim.ts";
import { Cuda, type CudaDevice, CudaStream, PinnedMemoryResource } from "../../../mod.ts";
import type { CudaGraphExec } from "../../../src/public/cuda.ts";
import { NativeArena } from "../../../src/ffi/arena.ts";
import { drainFrees } from "../../../src/order/deferred_free.ts";
import { check, fc } from "../../support/property.ts";
import { patiently } from "../../support/child.ts";
import { until } from "../../support/until.ts";
import { simulatorOf } from "../../support/simulator_of.ts";

const size = 64;

/** Another library's streams. */
function foreign(device: CudaDevice, count: number) {
  using arena = new NativeArena();
  const out = arena.out("ptr");
  const { driver } = device;
  const handles = Array.from({ length: count }, () => {
    device.withContext(() => driver.stream.cuStreamCreate(out.$address, CU_STREAM.NON_BLOCKING));
    return out.value;
  });
  const destroy = () => device.withContext(() => handles.forEach((one) => driver.stream.cuStreamDestroy_v2(one)));
  return { streams: handles.map((one) => CudaStream.fromHandle(device, one)), destroy };
}

const step = fc.record({
  what: fc.constantFrom("launch", "launch", "launch", "many", "update", "close", "close a graph", "close a buffer"),
  exec: fc.nat(2),
  graph: fc.nat(1),
  stream: fc.nat(4),
});

test(
  "memory that graphs use is not reused before the last launch, whichever library's streams they are on",
  patiently,
  async () => {
    await check(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), fc.nat(1 << 20), async (steps, seed) => {
        const cuda = Cuda.simulate({ schedule: "random", seed });
        const simulated = simulatorOf(cuda);
        const device = cuda.device(0);
        const own = [device.createStream(), device.createStream(), device.createStream({ nonBlocking: false })];
        const home = own[0] ?? device.defaultStream;
        const theirs = foreign(device, 2);
        const streams = [...own, ...theirs.streams];
        const out = new PinnedMemoryResource(device).allocate(size);
        const buffers = [0, 1].map(() => device.memory.allocate(size, { stream: home }));
        for (const one of buffers) one.fill(7, { stream: home });
        out.bytes().fill(7); // while no launch is in flight
        device.synchronize();
        const graphs = buffers.map((one) => home.capture(() => one.copyTo(out, { stream: home })));
        const [first, second] = graphs;
        assert(first !== undefined && second !== undefined);
        const execs: CudaGraphExec[] = [first, second, first].map((graph) => graph.instantiate());
        const open = { graphs: new Set(graphs), execs: new Set(execs) };
        for (const { what, exec: which, graph: at, stream: on } of steps) {
          const [exec, graph, stream] = [execs[which], graphs[at], streams[on]];
          assert(exec !== undefined && graph !== undefined && stream !== undefined);
          if (what === "launch" && open.execs.has(exec)) {
            exec.launch(stream);
          } else if (what === "many" && open.graphs.has(graph)) {
            for (let i = 0; i < 20; i++) {
              using one = graph.instantiate();
              one.launch(streams[(on + i) % streams.length] ?? stream);
            }
          } else if (what === "update" && open.execs.has(exec) && open.graphs.has(graph)) exec.update(graph);
          else if (what === "close") {
            open.execs.delete(exec);
            exec.close();
          } else if (what === "close a graph") {
            open.graphs.delete(graph);
            graph.close();
          } else if (what === "close a buffer") buffers[at]?.close();
        }
        for (const one of [...buffers, ...graphs, ...execs]) one.close();
        // Memory freed on the home stream is what it allocates next.
        const next = [0, 1].map(() => device.memory.allocate(size, { stream: home }));
        for (const one of next) one.fill(99, { stream: home });
        device.synchronize();
        assertEquals(new Set(out.bytes()), new Set([7]));
        for (const one of [...next, out, ...own]) one.close();
        await until(() => {
          drainFrees();
          return simulated.live.streams === 2;
        });
        theirs.destroy();
        cuda.close();
        const { streams: left, events, graphs: graphsLeft, allocations, contexts } = simulated.live;
        assertEquals([left, events, graphsLeft, allocations, contexts], [0, 0, 0, 0, 0]);
      }),
      150,
    );
  },
);

for (const how of ["closed", "updated to another graph"] as const) {
  test(`launches that are done retain nothing: their executables are ${how}`, () => {
    using cuda = Cuda.simulate();
    const simulated = SimulatedDriver.of(cuda.driver);
    const device = cuda.device(0);
    using stream = device.createStream();
    const theirs = foreign(device, 4);
    using buffer = device.memory.allocate(size, { stream });
    using graph = stream.capture(() => buffer.fill(1, { stream }));
    using other = stream.capture(() => buffer.fill(2, { stream }));
    const execs: CudaGraphExec[] = [];
    for (let i = 0; i < 300; i++) {
      const exec = graph.instantiate();
      for (let times = 0; times < 3; times++) exec.launch(theirs.streams[(i + times) % 4] ?? stream);
      device.synchronize();
      if (how === "closed") exec.close();
      else {
        exec.update(other);
        execs.push(exec);
      }
    }
    assert((simulated?.live.events ?? 0) <= 64, `${simulated?.live.events} events`); // 900 launches, and 300 streams before
    assert(
      (simulated?.calls("cuEventCreate") ?? 0) <= 300 + 64,
      "an event for each executable, and not for each launch",
    );
    for (const exec of execs) exec.close();
    theirs.destroy();
  });
}

// The event that orders such a stream was refused as a new one.
test("a graph is launched on a foreign stream after its Cuda was closed, as on a stream of its own", () => {
  const cuda = Cuda.simulate();
  const device = cuda.device(0);
  const theirs = foreign(device, 1);
  using stream = device.createStream();
  using buffer = device.memory.allocate(size, { stream });
  using graph = stream.capture(() => buffer.fill(1, { stream }));
  using exec = graph.instantiate();
  cuda.close();
  for (const one of [stream, ...theirs.streams]) exec.launch(one);
  device.synchronize();
  theirs.destroy();
});
