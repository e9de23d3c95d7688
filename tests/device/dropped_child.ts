/** Drops driver objects in every state, and prints which are left when the garbage collector has run. */
import { setTimeout } from "node:timers/promises";
import { SimulatedDriver } from "../../src/public/sim.ts";
import type { PtxKernel } from "../../src/ptx/mod.ts";
import { Cuda, DeviceMemoryResource, type Kernel } from "../../mod.ts";
import type { CudaGraphExec } from "../../src/public/cuda.ts";
import { libc } from "../../src/ffi/libc.ts";
import { switchWorkStream } from "../../src/python/current_work_streams.ts";
import { drainFrees } from "../../src/order/deferred_free.ts";
import type { MemoryBuffer } from "../../src/memory/memory_buffer.ts";
import { intercept } from "../support/intercept.ts";

const count = 20;
let runs = 0;
const entry: PtxKernel = { name: "stub", params: [], staticSharedBytes: 0, run: () => void runs++ };
const loadPtx = () => ({ entries: ["stub"], entry: () => entry, globals: new Map() });
// Unchecked: in V8, the checker's record of a call for its reports keeps the caller's objects alive.
const cuda = Cuda.simulate({ schedule: "latest", loadPtx, check: false });
const device = cuda.device(0);
const simulated = SimulatedDriver.of(cuda.driver);
if (simulated === null) throw new Error("this script needs the simulator");
const home = device.createStream();

let unloaded = 0;
let unloadedEarly = 0;
let launched = 0;
intercept(cuda.driver, "module", ({ cuModuleUnload }) => ({
  cuModuleUnload: (module) => {
    unloaded++;
    if (runs < launched) unloadedEarly++;
    return cuModuleUnload(module);
  },
}));

device.releaseEvent(device.acquireEvent()); // the one event that a device keeps, for ordering streams
const { live: base } = simulated;

/** The live objects in excess of the initial ones. */
function left(): Record<string, number> {
  const now = simulated?.live ?? base;
  const kinds = ["streams", "events", "pools", "graphs", "allocations"] as const;
  return Object.fromEntries(kinds.map((kind) => [kind, now[kind] - base[kind]]).filter(([, more]) => more !== 0));
}

/** Collects garbage until only the expected objects are left, or until a limit. */
async function collect(due: () => boolean = () => Object.keys(left()).length === 0): Promise<void> {
  const collectGarbage: unknown = Reflect.get(globalThis, "gc");
  if (typeof collectGarbage !== "function") throw new Error("this script needs gc()");
  await setTimeout(0); // objects are registered with the collector at the end of the turn that made them
  for (let round = 0; round < 8 || (!due() && round < 60); round++) {
    useStack(100);
    collectGarbage();
    await setTimeout(2); // finalisers run in separate tasks
    drainFrees();
  }
}

/** Overwrites what earlier calls left on the stack. */
function useStack(deep: number): number {
  return deep === 0 ? 0 : 1 + useStack(deep - 1);
}

/** Runs a function many times, separately from the caller, so that nothing of it stays on the stack. */
function many<T>(once: (i: number) => T): T[] {
  return Array.from({ length: count }, (_, i) => once(i));
}

const results: Record<string, unknown> = {};
async function note(what: string, due?: () => boolean): Promise<void> {
  await collect(due);
  results[what] = left();
}

many(() => void device.createStream());
await note("streams");

many((i) => {
  const stream = device.createStream();
  const size = 64 + i;
  device.memory.allocate(size, { stream }).copyFrom(new Uint8Array(size), { stream }); // the buffer is dropped, too
});
await note("streams with work, and with arrays that it uses");

many(() => void device.createEvent({ timing: true }));
many(() => void home.record());
await note("events");

many(() => new DeviceMemoryResource(device, {}).allocate(8, { stream: home }).close());
await note("pools");

many(() => {
  const stream = device.createStream();
  const buffer = device.memory.allocate(8, { stream });
  const graph = stream.capture(() => buffer.fill(1, { stream }));
  graph.instantiate().launch(stream);
});
await note("graphs");

const before = unloaded;
const memory = libc().loading;
const blocks = new Set<bigint>();
Object.defineProperty(libc(), "loading", {
  value: {
    ...memory,
    calloc: (count: bigint, bytes: bigint) => {
      const block = memory.calloc(count, bytes);
      blocks.add(block);
      return block;
    },
    free: (block: bigint) => {
      blocks.delete(block);
      memory.free(block);
    },
  },
});
many(() => {
  launched++;
  device.loadPtx("anything").kernel("stub").launch(home, 1, 1, []);
});
await note("programs", () => unloaded - before >= count);
Object.defineProperty(libc(), "loading", { value: memory });
results["programs' memory for arguments is freed"] = blocks.size < count / 2; // the library keeps some for its own
results["programs unloaded"] = unloaded - before;
results["before their kernels were over"] = unloadedEarly;

const buffers = many((i): MemoryBuffer => {
  if (i % 2 === 0) return device.memory.allocate(8, { stream: device.createStream() });
  return new DeviceMemoryResource(device, {}).allocate(8, { stream: home });
});
const kernels = many((): Kernel => device.loadPtx("anything").kernel("stub"));
const execs = many((): CudaGraphExec => {
  const buffer = device.memory.allocate(8, { stream: home });
  return home.capture(() => buffer.fill(1, { stream: home })).instantiate();
});
switchWorkStream(device.createStream(), (work) => work());
const named = count / 2 + 1;
await note("objects that buffers, kernels, graphs and Python still use", () => {
  const { graphs, streams } = left();
  return graphs === count && streams === named;
});
// By functions: a loop leaves its last object where a collector that scans the stack keeps finding it.
kernels.forEach((kernel) => kernel.launch(home, 1, 1, []));
execs.forEach((exec) => exec.launch(home));
buffers.forEach((buffer) => buffer.fill(1, { stream: home }));
home.synchronize();
results["kernels run"] = runs - launched;

[...buffers.splice(0), ...execs.splice(0)].forEach((one) => one.close());
kernels.splice(0);
switchWorkStream(home, (work) => work());
const closing = many(() =>
  [device.createStream(), device.createEvent(), new DeviceMemoryResource(device, {})] as const
);
closing.splice(0).flat().forEach((one) => one.close());
await note("closed objects", () => Object.keys(left()).length === 0 && unloaded === 2 * count);
console.log(JSON.stringify(results));
