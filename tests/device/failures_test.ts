/** Any driver call may fail at any time: an object is then either created or not, and nothing is leaked. */
import { assert, assertEquals, assertInstanceOf } from "@std/assert";
import process from "node:process";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { LiveObjects } from "../../src/public/sim.ts";
import {
  Cuda,
  type CudaDevice,
  CudaError,
  type CudaStream,
  DeviceMemoryResource,
  ManagedMemoryResource,
  type MemoryBuffer,
  PinnedMemoryResource,
  type Program,
  SynchronousMemoryResource,
} from "../../mod.ts";
import type { CudaGraph } from "../../src/public/cuda.ts";
import { drainFrees } from "../../src/order/deferred_free.ts";
import { addPtx } from "../gpu/graph_behaviours.ts";
import { check, fc, scaled } from "../support/property.ts";
import { simulatorOf } from "../support/simulator_of.ts";

const size = 64;

/** What a program has made so far. Everything in it is closed at the end. */
interface State {
  readonly device: CudaDevice;
  readonly streams: CudaStream[];
  readonly buffers: MemoryBuffer[];
  readonly programs: Program[];
  readonly graphs: CudaGraph[];
  readonly closers: (() => void)[];
}

type Step = readonly [act: keyof typeof acts, which: number];

function pick<T>(list: readonly T[], which: number): T | undefined {
  return list[which % Math.max(1, list.length)];
}

function keep<T extends { close(): void }>(state: State, list: T[], made: T): void {
  list.push(made);
  state.closers.push(() => made.close());
}

/** What a program may do; an act whose requirements are missing does nothing. */
const acts = {
  stream: (state: State, which: number) =>
    keep(state, state.streams, state.device.createStream({ nonBlocking: which % 2 === 0 })),
  event: (state: State, which: number) => {
    using event = pick(state.streams, which)?.record();
    event?.synchronize();
  },
  "from the current pool": (state: State, which: number) => {
    const stream = pick(state.streams, which);
    const resource = new DeviceMemoryResource(state.device);
    keep(state, state.buffers, resource.allocate(size, stream === undefined ? {} : { stream }));
  },
  "from a pool of its own": (state: State, which: number) => {
    const stream = pick(state.streams, which);
    using resource = new DeviceMemoryResource(state.device, { releaseThreshold: which });
    keep(state, state.buffers, resource.allocate(size, stream === undefined ? {} : { stream }));
  },
  "pinned, managed or synchronous": (state: State, which: number) => {
    const kinds = [PinnedMemoryResource, ManagedMemoryResource, SynchronousMemoryResource];
    const Resource = pick(kinds, which) ?? PinnedMemoryResource;
    const stream = pick(state.streams, which >> 2);
    keep(state, state.buffers, new Resource(state.device).allocate(size, stream === undefined ? {} : { stream }));
  },
  fill: (state: State, which: number) => {
    pick(state.buffers, which)?.fill(which % 256, { stream: pick(state.streams, which) ?? state.device.defaultStream });
  },
  copy: (state: State, which: number) => {
    const [to, from] = [pick(state.buffers, which), pick(state.buffers, which + 1)];
    const stream = pick(state.streams, which) ?? state.device.defaultStream;
    if (to !== undefined && from !== undefined && to !== from) to.copyFrom(from, { stream });
  },
  wait: (state: State, which: number) => {
    const [one, other] = [pick(state.streams, which), pick(state.streams, which + 1)];
    if (one !== undefined && other !== undefined) one.wait(other);
  },
  "move home": (state: State, which: number) => {
    const stream = pick(state.streams, which);
    if (stream !== undefined) pick(state.buffers, which)?.setHomeStream(stream);
  },
  program: (state: State) => keep(state, state.programs, state.device.loadPtx(addPtx)),
  launch: (state: State, which: number) => {
    const [program, buffer] = [pick(state.programs, which), pick(state.buffers, which)];
    if (program === undefined || buffer === undefined) return;
    program.kernel("add").launch(buffer.stream ?? state.device.defaultStream, 1, 4, [buffer, ["uint32", 4], [
      "uint32",
      which,
    ]]);
  },
  capture: (state: State, which: number) => {
    const [stream, side] = [pick(state.streams, which), pick(state.streams, which + 1)];
    if (stream === undefined || side === undefined) return;
    const graph = stream.capture(() => {
      side.wait(stream);
      for (const buffer of state.buffers.slice(0, 2)) buffer.fill(1, { stream: side });
      stream.wait(side);
    });
    keep(state, state.graphs, graph);
  },
  "launch a graph": (state: State, which: number) => {
    const graph = pick(state.graphs, which);
    const stream = pick(state.streams, which);
    if (graph === undefined || stream === undefined) return;
    using exec = graph.instantiate();
    exec.launch(stream);
    exec.update(graph);
    exec.launch(stream);
  },
  synchronize: (state: State, which: number) => (pick(state.streams, which) ?? state.device).synchronize(),
  completed: async (state: State, which: number) => await pick(state.streams, which)?.completed(),
  "close something": (state: State, which: number) => pick(state.closers, which)?.(),
} satisfies Readonly<Record<string, (state: State, which: number) => unknown>>;

/** Calls that free an object: if the driver refuses one, the object stays. */
const releases: Readonly<Record<string, readonly (keyof LiveObjects)[]>> = {
  cuMemFreeAsync: ["allocations", "bytes", "pools"], // a pool with memory left stays with it
  cuMemFree_v2: ["allocations", "bytes"],
  cuMemFreeHost: ["allocations", "bytes"],
  cuStreamDestroy_v2: ["streams"],
  cuEventDestroy_v2: ["events"],
  cuMemPoolDestroy: ["pools"],
  cuGraphDestroy: ["graphs"],
  cuGraphExecDestroy: ["graphs"],
  cuDevicePrimaryCtxRelease_v2: ["contexts"],
  cuModuleUnload: [],
  // Without a current context none of the following can be freed; a context left current stays.
  cuCtxPushCurrent_v2: ["allocations", "bytes", "streams", "pools"],
  cuCtxPopCurrent_v2: [],
};

/** All errors in a chain built by disposals. */
function errorsOf(error: unknown): unknown[] {
  if (error instanceof SuppressedError) return [...errorsOf(error.error), ...errorsOf(error.suppressed)];
  if (error instanceof AggregateError) return error.errors.flatMap(errorsOf);
  return [error];
}

const everyCall = [
  ...Object.keys(releases),
  ...["cuDevicePrimaryCtxRetain", "cuStreamCreate", "cuStreamSynchronize", "cuStreamWaitEvent", "cuLaunchHostFunc"],
  ...["cuStreamQuery", "cuStreamIsCapturing", "cuEventCreate", "cuEventRecord", "cuEventQuery", "cuEventSynchronize"],
  ...["cuDeviceGetAttribute", "cuDeviceGetMemPool", "cuMemPoolGetAttribute", "cuMemPoolSetAttribute"],
  ...["cuMemPoolCreate", "cuMemAllocFromPoolAsync", "cuMemHostAlloc", "cuMemAllocManaged", "cuMemAlloc_v2"],
  ...["cuMemsetD8Async", "cuMemcpyDtoDAsync_v2", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuMemcpyAsync"],
  ...["cuModuleLoadData", "cuModuleLoadDataEx", "cuModuleGetFunction", "cuFuncGetParamInfo", "cuLaunchKernel"],
  ...["cuStreamBeginCapture_v2", "cuGraphInstantiateWithFlags", "cuGraphLaunch", "cuGraphExecUpdate"],
  "cuCtxSynchronize",
] as const;

const code = 304; // CUDA_ERROR_OPERATING_SYSTEM: an error that no code expects

test("a failing call's error is thrown; nothing is left that the driver did not refuse to free", async () => {
  const unhandled: unknown[] = [];
  const listen = (error: unknown) => void unhandled.push(error);
  process.on("unhandledRejection", listen);
  const steps: fc.Arbitrary<Step[]> = fc.array(
    fc.tuple(fc.constantFrom(...Object.keys(acts) as (keyof typeof acts)[]), fc.nat(1000)), // its own keys
    { minLength: 5, maxLength: 40, size: "max" },
  );
  let failed = 0;
  await check(
    fc.asyncProperty(steps, fc.constantFrom(...everyCall), fc.nat(4), fc.nat(), async (program, call, nth, seed) => {
      const cuda = Cuda.simulate({ seed });
      const simulated = simulatorOf(cuda);
      const before = simulated.live;
      simulated.failNth(call, nth + 1, code);
      const state: State = { device: cuda.device(0), streams: [], buffers: [], programs: [], graphs: [], closers: [] };
      const errors: unknown[] = [];
      const attempt = async (act: () => unknown) => {
        try {
          await act();
        } catch (error) {
          errors.push(...errorsOf(error));
        }
      };
      for (const [act, which] of program) await attempt(() => acts[act](state, which));
      for (const close of state.closers.reverse()) await attempt(close);
      for (let i = 0; i < 20; i++) {
        if (simulated.live.streams === 0 && simulated.live.allocations === 0) break;
        await delay(1); // graph launches that were in flight
        await attempt(drainFrees);
      }
      await attempt(() => cuda.close());
      // For pools whose memory was still being freed; twice, in case the driver refused once.
      for (let i = 0; i < 2; i++) await attempt(drainFrees);
      for (const error of errors) {
        if (error instanceof TypeError && /closed/.test(error.message)) continue; // a program may use what it closed
        assertInstanceOf(error, CudaError, String(error));
        assertEquals([error.call.split(" ")[0], error.code, error.codeName], [
          call,
          code,
          "CUDA_ERROR_OPERATING_SYSTEM",
        ]);
        failed++;
      }
      simulated.runAll();
      const excused = releases[call] ?? [];
      for (const [what, count] of Object.entries(simulated.live)) {
        const alsoStays = excused.length > 0 && what === "contexts";
        const allowed = alsoStays || excused.includes(what as keyof LiveObjects);
        if (!allowed) assertEquals([what, count], [what, before[what as keyof LiveObjects]], `${call} ${nth}`);
        else if (what !== "bytes") assert(count <= before[what as keyof LiveObjects] + 1, `${what}: ${count}`);
      }
      simulated.close();
    }),
    1000,
  );
  await delay(10);
  process.off("unhandledRejection", listen);
  assertEquals(unhandled, []);
  assert(failed > scaled(100), `only ${failed} failures occurred`);
});
