/**
 * The safety net for objects that are never closed: dropped driver objects are freed, and nothing that is in use.
 */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import {
  Cuda,
  DeviceMemoryResource,
  ManagedMemoryResource,
  PinnedMemoryResource,
  SynchronousMemoryResource,
} from "../../mod.ts";
import { drainFrees } from "../../src/order/deferred_free.ts";
import { intercept } from "../support/intercept.ts";
import { patiently, runScript } from "../support/child.ts";
import { simulatorOf } from "../support/simulator_of.ts";

const script = new URL("./dropped_child.ts", import.meta.url);

const nothing = {};

/** What is left of 20 of each. */
const expected = {
  "streams": nothing,
  "streams with work, and with arrays that it uses": nothing,
  "events": nothing,
  "pools": nothing,
  "graphs": nothing,
  "programs": nothing,
  "programs' memory for arguments is freed": true,
  "programs unloaded": 20,
  "before their kernels were over": 0,
  // Every other buffer has its own stream, the others their own pools; each graph has a buffer, too; and Python has a
  // stream.
  "objects that buffers, kernels, graphs and Python still use": { streams: 11, pools: 10, graphs: 20, allocations: 40 },
  "kernels run": 20,
  "closed objects": nothing,
};

test(
  "streams, events, pools, graphs and programs that are dropped are freed, and none that is in use",
  patiently,
  async () => {
    const { code, stdout, stderr } = await runScript(script, { gc: true, env: { CAUSEWAY_LEAKS: undefined } });
    assertEquals([code, stderr], [0, ""]);
    assertEquals(JSON.parse(stdout), expected);
  },
);

test("CAUSEWAY_LEAKS=1 reports dropped objects, and no closed ones", patiently, async () => {
  const { code, stderr } = await runScript(script, { gc: true, env: { CAUSEWAY_LEAKS: "1" } });
  assertEquals(code, 0, stderr);
  const reports = stderr.trimEnd().split("\n").filter((line) => !line.includes("MemoryBuffer"));
  const kinds = reports.map((line) => /^Causeway: a (\w+) was never closed; freed by garbage/.exec(line)?.[1] ?? line);
  const count = (kind: string) => kinds.filter((one) => one === kind).length;
  // The last kernel's objects, and Python's, may or may not be found at the end.
  assertEquals([count("CudaEvent"), count("CudaGraph"), count("CudaGraphExec")], [40, 40, 20]);
  assertEquals(
    new Set(kinds),
    new Set(["CudaStream", "CudaEvent", "MemoryPool", "CudaGraph", "CudaGraphExec", "Program"]),
  );
});

test("a closed Cuda whose device is still retained creates nothing, and starts nothing to refuse later", () => {
  const here = Cuda.simulate();
  const shared = new DeviceMemoryResource(here.device(0), { shareable: true });
  using exported = shared.allocate(8);
  using plain = new SynchronousMemoryResource(here.device(0)).allocate(8);
  using event = here.device(0).createEvent({ interprocess: true });
  const files = [shared.exportPool(), shared.exportPool()] as const;

  const cuda = Cuda.simulate({ check: false });
  const device = cuda.device(0);
  const simulated = simulatorOf(cuda);
  const imported = DeviceMemoryResource.importPool(device, files[0]);
  const own = new DeviceMemoryResource(device, {});
  const resources = [device.memory, own, new PinnedMemoryResource(device), new ManagedMemoryResource(device)];
  const stream = device.createStream();
  const keeping = device.memory.allocate(8, { stream });
  const pools = [imported.importBuffer(exported.exportDescriptor()), own.allocate(8)];
  let modules = 0;
  intercept(cuda.driver, "module", ({ cuModuleLoadDataEx }) => ({
    cuModuleLoadDataEx: (...args) => (modules++, cuModuleLoadDataEx(...args)),
  }));
  cuda.close();
  const makers: Readonly<Record<string, () => Disposable>> = {
    stream: () => device.createStream(),
    "stream of a priority": () => device.createStream({ priority: 0 }),
    program: () => device.loadPtx(".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry e() { ret; }"),
    pool: () => new DeviceMemoryResource(device, { maxSize: 2 ** 20 }),
    "pool that can be shared": () => new DeviceMemoryResource(device, { shareable: true }),
    "imported pool": () => DeviceMemoryResource.importPool(device, files[1]),
    "imported piece": () => imported.importBuffer(exported.exportDescriptor()),
    "imported piece on a stream": () => imported.importBuffer(exported.exportDescriptor(), { stream }),
    "imported memory": () => new SynchronousMemoryResource(device).importBuffer(plain.exportDescriptor(), { stream }),
    "imported event": () => device.importEvent(event.exportHandle()),
    event: () => device.createEvent(),
    ...Object.fromEntries(resources.map((one, i) => [`buffer ${i}`, () => one.allocate(8)])),
    ...Object.fromEntries(resources.map((one, i) => [`buffer ${i} on a stream`, () => one.allocate(8, { stream })])),
  };
  const before = simulated.live;
  for (const [what, make] of Object.entries(makers)) {
    try {
      using _made = make();
    } catch (error) {
      assert(error instanceof TypeError && error.message.includes("its Cuda is closed"), `${what}: ${error}`);
    }
    drainFrees();
    assertEquals({ ...simulated.live, queued: 0 }, { ...before, queued: 0 }, what);
  }
  assertEquals(modules, 0);
  for (const one of [...pools, imported, own, keeping, stream]) one.close();
  drainFrees();
  assertEquals(simulated.live.contexts, 0);
  for (const file of files) file.close();
  shared.close();
});
