/** Graphs, on the simulator: random programs do the same whether they are captured and launched or run directly. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { SimulatedDriver } from "../../../src/public/sim.ts";
import {
  Cuda,
  type CudaDevice,
  CudaError,
  type CudaStream,
  DeviceMemoryResource,
  type MemoryBuffer,
  PinnedMemoryResource,
  type Program,
  StridedMemoryView,
} from "../../../mod.ts";
import { drainFrees } from "../../../src/order/deferred_free.ts";
import { addPtx } from "../../gpu/graph_behaviours.ts";
import { runScriptForJson } from "../../support/child.ts";
import { openFiles } from "../../support/open_files.ts";
import { check, fc } from "../../support/property.ts";
import { simulatorOf } from "../../support/simulator_of.ts";

/** What a program does with its part of the buffers; `fork` splits the part between a second stream and this one. */
type Step =
  | { readonly kind: "fill"; readonly buffer: number; readonly value: number }
  | { readonly kind: "copy"; readonly from: number; readonly to: number }
  | { readonly kind: "fork"; readonly there: readonly Step[]; readonly here: readonly Step[] };

const count = 8;
const size = 16;

const steps: fc.Arbitrary<readonly Step[]> = fc.letrec<{ steps: readonly Step[]; step: Step }>((tie) => ({
  steps: fc.array(tie("step"), { maxLength: 5 }),
  step: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.record({ kind: fc.constant("fill" as const), buffer: fc.nat(count), value: fc.nat(255) }),
    fc.record({ kind: fc.constant("copy" as const), from: fc.nat(count), to: fc.nat(count) }),
    fc.record({ kind: fc.constant("fork" as const), there: tie("steps"), here: tie("steps") }),
  ),
})).steps;

/** The oracle: bytes in arrays, one step after the other. */
function compute(bytes: number[], program: readonly Step[]): void {
  if (bytes.length === 0) return;
  const at = (index: number) => index % bytes.length;
  for (const step of program) {
    if (step.kind === "fill") bytes[at(step.buffer)] = step.value;
    else if (step.kind === "copy") bytes[at(step.to)] = bytes[at(step.from)] ?? 0;
    else {
      const half = Math.floor(bytes.length / 2);
      const [there, here] = [bytes.slice(0, half), bytes.slice(half)];
      compute(there, step.there);
      compute(here, step.here);
      bytes.splice(0, bytes.length, ...there, ...here);
    }
  }
}

/** The same on streams. */
function enqueue(
  device: CudaDevice,
  buffers: readonly MemoryBuffer[],
  program: readonly Step[],
  stream: CudaStream,
): void {
  const at = (index: number): MemoryBuffer => {
    const buffer = buffers[index % buffers.length];
    assert(buffer !== undefined);
    return buffer;
  };
  if (buffers.length === 0) return;
  for (const step of program) {
    if (step.kind === "fill") at(step.buffer).fill(step.value, { stream });
    else if (step.kind === "copy") {
      if (at(step.to) !== at(step.from)) at(step.to).copyFrom(at(step.from), { stream });
    } else {
      using side = device.createStream();
      side.wait(stream);
      const half = Math.floor(buffers.length / 2);
      enqueue(device, buffers.slice(0, half), step.there, side);
      enqueue(device, buffers.slice(half), step.here, stream);
      stream.wait(side);
    }
  }
}

function contents(device: CudaDevice, buffers: readonly MemoryBuffer[], stream: CudaStream): number[] {
  return buffers.map((buffer) => {
    using host = new PinnedMemoryResource(device).allocate(size);
    buffer.copyTo(host, { stream });
    stream.synchronize();
    const [byte = -1] = host.bytes();
    assert(host.bytes().every((one) => one === byte));
    return byte;
  });
}

test("a program captured and launched n times does the same as n direct runs, in every simulated order", () => {
  const schedule = fc.constantFrom("latest" as const, "random" as const, "round-robin" as const);
  check(
    fc.property(steps, fc.nat(4), fc.nat(), schedule, (program, launches, seed, schedule) => {
      using cuda = Cuda.simulate({ seed, schedule });
      const device = cuda.device(0);
      const simulated = SimulatedDriver.of(cuda.driver);
      {
        using stream = device.createStream();
        using second = device.createStream();
        const memory = new DeviceMemoryResource(device);
        const buffers = Array.from({ length: count }, () => memory.allocate(size, { stream }));
        const expected = buffers.map((_, i) => i);
        buffers.forEach((buffer, i) => buffer.fill(i, { stream }));
        {
          using graph = stream.capture(() => enqueue(device, buffers, program, stream));
          using exec = graph.instantiate();
          for (let i = 0; i < launches; i++) {
            const on = i % 2 === 0 ? stream : second;
            on.wait(i % 2 === 0 ? second : stream);
            exec.launch(on);
            compute(expected, program);
          }
          stream.wait(second);
        }
        assertEquals(contents(device, buffers, stream), expected);
        for (const buffer of buffers) buffer.close();
        device.synchronize();
      }
      drainFrees(); // of the host's copies, which have no home stream
      const { streams, events, allocations, graphs } = simulated?.live ?? {};
      // The one event is the device's own, with which it orders streams.
      assertEquals({ streams, events, allocations, graphs }, { streams: 0, events: 1, allocations: 0, graphs: 0 });
    }),
    300,
  );
});

test("whatever fails while a graph is made, nothing of it is left and the stream is free", () => {
  const calls = [
    "cuStreamBeginCapture_v2",
    "cuMemsetD8Async",
    "cuEventRecord",
    "cuStreamWaitEvent",
    "cuGraphInstantiateWithFlags",
    "cuGraphGetNodes",
    "cuGraphLaunch",
  ] as const;
  for (const call of calls) {
    using cuda = Cuda.simulate();
    const device = cuda.device(0);
    const simulated = simulatorOf(cuda);
    using stream = device.createStream();
    using side = device.createStream();
    using buffer = new DeviceMemoryResource(device).allocate(size, { stream });
    device.releaseEvent(device.acquireEvent()); // created when streams are first ordered, and kept
    const before = simulated.live;
    simulated.failNth(call, 1, 999);
    const error = assertThrows(() => {
      using graph = stream.capture(() => {
        side.wait(stream);
        buffer.fill(1, { stream: side });
        stream.wait(side);
      });
      assertEquals(graph.nodes.length, 1);
      using exec = graph.instantiate();
      exec.launch(stream);
    }, CudaError);
    assertEquals([error.call, error.code, error.codeName], [call, 999, "CUDA_ERROR_UNKNOWN"]);
    device.synchronize();
    assertEquals({ ...simulated.live, queued: 0 }, { ...before, queued: 0 }, call);
    assertEquals([stream.isCapturing, side.isCapturing], [false, false], call);
  }
});

test("whatever fails while a capture ends, its graph, its streams and its context are not left behind", () => {
  const failures = {
    cuStreamDestroy_v2: (device: CudaDevice) => device.createStream(), // of a stream that was closed meanwhile
    cuCtxPushCurrent_v2: (device: CudaDevice) => device.perThreadStream,
  } as const;
  for (const [call, streamOf] of Object.entries(failures)) {
    for (const end of ["end", "close"] as const) {
      const cuda = Cuda.simulate();
      const simulated = simulatorOf(cuda);
      const stream = streamOf(cuda.device(0));
      const side = cuda.device(0).createStream();
      const capture = stream.beginCapture();
      side.wait(stream);
      stream.wait(side);
      side.close();
      simulated.failNth(call, 1, 999);
      if (end === "end") assertThrows(() => capture.end(), CudaError, `${call} failed with CUDA_ERROR_UNKNOWN`);
      else capture.close();
      stream.close();
      cuda.close();
      const { graphs, contexts } = simulated.live;
      assertEquals({ graphs, contexts }, { graphs: 0, contexts: 0 }, `${call}, ${end}`);
    }
  }
});

test("resources of captured work are released when the graph, all made from it and its launches are gone", async () => {
  interface Scene {
    readonly device: CudaDevice;
    readonly stream: CudaStream;
    readonly buffer: MemoryBuffer;
    readonly other: MemoryBuffer;
    readonly program: Program;
  }
  const uses: Readonly<Record<string, (scene: Scene) => void>> = {
    "a fill": ({ stream, buffer }) => buffer.fill(1, { stream }),
    "a copy from it": ({ stream, buffer, other }) => other.copyFrom(buffer, { stream }),
    "a copy to it": ({ stream, buffer, other }) => buffer.copyFrom(other, { stream }),
    "a kernel with the buffer": ({ stream, buffer, program }) =>
      program.kernel("add").launch(stream, 1, 1, [buffer, ["uint32", 4], ["uint32", 1]]),
    "a kernel with a view": ({ stream, buffer, program }) => {
      const view = StridedMemoryView.fromBuffer(buffer, { shape: [2], dtype: "uint32", offset: 8 });
      program.kernel("add").launch(stream, 1, 1, [view, ["uint32", 2], ["uint32", 1]]);
    },
  };
  const places = {
    device: (device: CudaDevice, stream: CudaStream) => new DeviceMemoryResource(device).allocate(size, { stream }),
    pinned: (device: CudaDevice) => new PinnedMemoryResource(device).allocate(size),
    "pinned with a home": (device: CudaDevice, stream: CudaStream) =>
      new PinnedMemoryResource(device).allocate(size, { stream }),
  };
  for (const [use, enqueue] of Object.entries(uses)) {
    for (const [place, allocate] of Object.entries(places)) {
      const what = `${use}, ${place}`;
      using cuda = Cuda.simulate({ schedule: "latest" });
      const device = cuda.device(0);
      const simulated = simulatorOf(cuda);
      using stream = device.createStream();
      using home = device.createStream();
      using other = new DeviceMemoryResource(device).allocate(size, { stream });
      const before = simulated.live.allocations;
      const buffer = allocate(device, home);
      stream.wait(home);
      const program = device.loadPtx(addPtx);
      const unloaded = () => simulated.calls("cuModuleUnload");
      const needsProgram = use.startsWith("a kernel");
      const graph = stream.capture(() => enqueue({ device, stream, buffer, other, program }));
      buffer.close();
      program.close();
      const expectKept = (when: string) => {
        assertEquals(simulated.live.allocations, before + 1, `${what}: ${when}`);
        assertEquals(unloaded(), needsProgram ? 0 : 1, `${what}: ${when}`);
      };
      expectKept("after closing the buffer");
      const exec = graph.instantiate();
      graph.close();
      expectKept("after closing the graph");
      exec.launch(stream);
      expectKept("after the launch");
      const waits = simulated.calls("cuStreamWaitEvent");
      exec.close();
      if (place === "device") {
        assertEquals(simulated.calls("cuStreamWaitEvent"), waits + 1, `${what}: the free waits for the launch`);
      } else {
        expectKept("while the launch is under way");
      }
      await stream.completed();
      await home.completed();
      for (let i = 0; i < 100 && unloaded() === 0; i++) await home.completed(); // turns the event loop
      for (let i = 0; i < 100 && simulated.live.allocations > before; i++) {
        await home.completed();
        drainFrees();
      }
      assertEquals(simulated.live.allocations, before, what);
      assertEquals(unloaded(), 1, what);
    }
  }
});

test("graphs of one Cuda do not hold up the frees of another", () => {
  using one = Cuda.simulate();
  using other = Cuda.simulate();
  using stream = one.device(0).createStream();
  using free = other.device(0).createStream();
  const buffer = new DeviceMemoryResource(other.device(0)).allocate(size, { stream: free });
  using graph = stream.capture(() => {
    buffer.close();
    assertEquals(SimulatedDriver.of(other.driver)?.live.allocations, 0);
  });
  assertEquals(graph.nodes, []);
});

test("a graph is drawn whole without a folder or a permission for files, and leaves no descriptor", async () => {
  const child = new URL("drawn_child.ts", import.meta.url);
  const outcome = await runScriptForJson(child, { permissions: ["--allow-ffi"], env: { TMPDIR: "/nonexistent" } });
  const labels = Array.from({ length: 300 }, (_, i) => `"graph_node_${i}"[label="MEMSET"];`);
  const edges = Array.from({ length: 299 }, (_, i) => `"graph_node_${i}" -> "graph_node_${i + 1}";`);
  assertEquals(outcome, ["digraph dot {", ...labels, ...edges, "}", ""].join("\n"));

  using cuda = Cuda.simulate();
  using stream = cuda.device(0).createStream();
  using graph = stream.capture(() => {});
  const draw = () => assertEquals(graph.toDot(), "digraph dot {\n\n}\n");
  draw();
  const before = openFiles();
  for (let i = 0; i < 50; i++) draw();
  assert(openFiles() < before + 25, `${openFiles()} descriptors instead of ${before}`); // the runtime opens some of its own
});
