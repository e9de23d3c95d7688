/** The resources of a graph are kept until the last object made from the graph is closed, and released once. */
import { assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import type { PtxKernel } from "../../../src/ptx/mod.ts";
import { Cuda, DeviceMemoryResource } from "../../../mod.ts";
import type { CudaGraph } from "../../../src/public/cuda.ts";
import { simulatorOf } from "../../support/simulator_of.ts";

function setUp() {
  const entry: PtxKernel = { name: "stub", params: [], staticSharedBytes: 0, run() {} };
  const loadPtx = () => ({
    entries: ["stub"],
    entry: (name: string) => name === "stub" ? entry : null,
    globals: new Map(),
  });
  const cuda = Cuda.simulate({ schedule: "latest", loadPtx });
  const simulated = simulatorOf(cuda);
  const device = cuda.device(0);
  return { cuda, simulated, device, stream: device.createStream(), memory: new DeviceMemoryResource(device) };
}

test("a program that a graph runs, on whatever stream of its capture, stays loaded, and so does the context", () => {
  const { cuda, simulated, device, stream } = setUp();
  const joined = device.createStream();
  for (const where of [stream, joined]) {
    const program = device.loadPtx("anything");
    const before = simulated.calls("cuModuleUnload");
    const graph = stream.capture(() => {
      joined.wait(stream);
      program.kernel("stub").launch(where, 1, 1, []);
      stream.wait(joined);
    });
    const exec = graph.instantiate();
    program.close();
    graph.close();
    graph.close();
    assertEquals(simulated.calls("cuModuleUnload") - before, 0);
    if (where === joined) {
      for (const one of [stream, joined]) one.close();
      cuda.close();
      assertEquals(simulated.live.contexts, 1);
    }
    const destroyed = simulated.calls("cuGraphExecDestroy");
    exec.close();
    exec.close();
    assertEquals(simulated.calls("cuGraphExecDestroy") - destroyed, 1);
    assertEquals(simulated.calls("cuModuleUnload") - before, 1);
  }
  assertEquals([simulated.live.contexts, simulated.live.graphs], [0, 0]);
});

test("an updated executable retains what the new graph uses, and releases what the old one did", () => {
  const { simulated, stream, memory } = setUp();
  const make = (value: number) => {
    const buffer = memory.allocate(64, { stream });
    stream.synchronize();
    const graph = stream.capture(() => buffer.fill(value, { stream }));
    buffer.close();
    return graph;
  };
  const [one, other] = [make(1), make(2)];
  const exec = one.instantiate();
  one.close();
  assertEquals(simulated.live.allocations, 2);
  for (const given of [undefined, 5, exec] as unknown as CudaGraph[]) {
    assertThrows(() => exec.update(given), TypeError, "Cannot update: expected a CudaGraph, got");
  }
  exec.update(other);
  assertEquals(simulated.live.allocations, 1);
  other.close();
  assertEquals(simulated.live.allocations, 1);
  exec.launch(stream);
  exec.close(); // the memory is freed on its home stream, behind the launch
  assertEquals(simulated.live.allocations, 0);
  stream.synchronize();
});

test("a graph that uses nothing of ours retains its context all the same", () => {
  const { cuda, simulated, stream } = setUp();
  const graph = stream.capture(() => {});
  const exec = graph.instantiate();
  stream.close();
  cuda.close();
  assertEquals(simulated.live.contexts, 1);
  exec.close();
  graph.close();
  assertEquals([simulated.live.contexts, simulated.live.graphs], [0, 0]);
});
