/** Reports how memory would be sent, and sends nothing. */
import { assertEquals, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import { test } from "node:test";
import { UCS_MEMORY_TYPE } from "../../bindings/ucp_types.ts";
import { explain } from "../../src/ucx/explain.ts";
import { takeMemory } from "../../src/ucx/message_memory.ts";
import { PoolStaging, stagedFrom } from "../../src/ucx/pool_staging.ts";
import { TakenMemory } from "../../src/ucx/taken_memory.ts";
import { SimulatedDriver } from "../../src/public/sim.ts";
import { check, fc } from "../support/property.ts";
import {
  Cuda,
  type CudaStream,
  HostMemoryResource,
  ManagedMemoryResource,
  type MemoryResource,
  PinnedMemoryResource,
  slice,
  StridedMemoryView,
  SynchronousMemoryResource,
  Ucx,
} from "../../mod.ts";

test("an endpoint explains how it sends memory: copied or not, after which work, by which transports", async () => {
  using ucx = Ucx.open({ config: { TLS: "tcp" } });
  await using worker = ucx.createWorker();
  const endpoint = await worker.connect(worker.address);
  await Promise.all([endpoint.send(new Uint8Array(1)), worker.recv(new Uint8Array(1))]);
  const [tcp = ""] = endpoint.transports();
  assertStringIncludes(tcp, "tcp");
  assertEquals(
    endpoint.explain(new Float64Array(3)),
    `24 contiguous bytes, sent from where they are\nthe host's memory: ${endpoint.transports().join(", ")}`,
  );
  using buffer = new HostMemoryResource().allocate(12);
  const view = StridedMemoryView.fromBuffer(buffer, { shape: [3], dtype: "float32" });
  const [first = ""] = endpoint.explain(view.sliced(slice(null, null, -1))).split("\n");
  assertEquals(
    first,
    "12 bytes that are not contiguous: copied on the host first, in C order ({ copy: false } refuses that)",
  );

  const cuda = Cuda.simulate({ schedule: "latest" });
  const device = cuda.device(0);
  const stream = device.createStream();
  using pinned = new PinnedMemoryResource(device).allocate(4, { stream });
  pinned.fill(1, { stream });
  assertStringIncludes(endpoint.explain(pinned), "waits for the buffer's home stream");
  assertStringIncludes(endpoint.explain(pinned), "page-locked memory");
  stream.synchronize();
  assertStringIncludes(endpoint.explain(pinned), "all work on them is done");
  if (!ucx.hasCuda) {
    using onDevice = device.memory.allocate(4, { stream });
    assertStringIncludes(endpoint.explain(onDevice), "refused, UCX knows no CUDA");
    await assertRejects(() => endpoint.send(onDevice), TypeError, "Cannot send GPU memory");
  }
  // @ts-expect-error -- no array
  assertThrows(() => endpoint.explain({}), TypeError, "Cannot view");
  stream.close();
  pinned.close();
  cuda.close();
});

test("another library's array is explained like a view of it: contiguous or not", () => {
  using buffer = new HostMemoryResource().allocate(12);
  const view = StridedMemoryView.fromBuffer(buffer, { shape: [3], dtype: "float32" });
  const way = { transports: ["tcp/lo"], cuda: new PoolStaging(), handlesErrors: true };
  for (const one of [view, view.sliced(slice(null, null, -1)), view.sliced(slice(null, null, 2))]) {
    assertEquals(explain({ __dlpack__: (options: object) => one.__dlpack__(options) }, way), explain(one, way));
  }
  const cuda = Cuda.simulate();
  using memory = new SynchronousMemoryResource(cuda.device(0)).allocate(12);
  const onDevice = StridedMemoryView.fromBuffer(memory, { shape: [3], dtype: "float32" });
  // As in `send`: only a view can say which device the memory belongs to.
  const array = { __dlpack__: (options: object) => onDevice.__dlpack__(options) };
  assertThrows(() => explain(array, way), Error, "Cannot import memory of CUDA device 0");
  assertStringIncludes(explain(onDevice, way), "a GPU's memory");
});

test("the reason why memory is sent no faster is given where it is known", () => {
  const shared = { transports: ["sysv/memory", "tcp/lo"], cuda: null, handlesErrors: true };
  const reason = "large messages are copied twice";
  assertStringIncludes(explain(new Uint8Array(1), shared), reason);
  for (const way of [{ ...shared, handlesErrors: false }, { ...shared, transports: ["tcp/lo"] }]) {
    assertEquals(explain(new Uint8Array(1), way).includes(reason), false);
  }
  const cuda = Cuda.simulate();
  const device = cuda.device(0);
  using alone = new SynchronousMemoryResource(device).allocate(4);
  using pool = device.memory.allocate(4);
  const staged = { transports: ["sysv/memory", "tcp/lo"], cuda: new PoolStaging(), handlesErrors: true };
  assertStringIncludes(explain(alone, staged), "cuda_ipc is not among the transports");
  const direct = explain(alone, { ...staged, transports: ["sysv/memory", "cuda_ipc/cuda"] });
  assertEquals([direct.includes("from GPU to GPU: "), direct.includes("is not among")], [true, false]);
  assertStringIncludes(explain(pool, staged), "other processes cannot map a pool's memory");
  const stream = device.createStream();
  using large = device.memory.allocate(1 << 20, { stream });
  assertStringIncludes(explain(large, staged), "1048576 contiguous bytes, copied on the GPU first, to memory that");
  assertStringIncludes(explain(large, staged), "(stagingBytes)");
  assertEquals(explain(large, staged).includes("cannot map a pool's memory:"), false);
  const unstaged = explain(large, { ...staged, cuda: new PoolStaging(0) });
  assertStringIncludes(unstaged, "sent from where they are");
  assertStringIncludes(unstaged, "other processes cannot map a pool's memory:");
  const turned = StridedMemoryView.fromBuffer(large, { shape: [1024, 1024], strides: [1, 1024], dtype: "uint8" });
  assertStringIncludes(explain(turned, staged), "that are not contiguous: copied on the GPU first");
  stream.close();
});

/** How memory is sent, as far as an explanation and what is taken for the message can be compared. */
interface Sent {
  readonly type: "host" | "cuda" | "managed";
  readonly packed: "on the host" | "on the GPU" | null;
  readonly isStaged: boolean;
}

/** What an explanation says, to an endpoint that reaches other GPUs; null if the memory is refused. */
function said(text: string): Sent | null {
  if (text.includes("a GPU's memory: refused, ")) return null;
  const [, where] = /not contiguous: copied (on the host|on the GPU) first/.exec(text) ?? [];
  const way = /, from GPU to GPU: /.test(text) ? "cuda" : /, in pieces through memory of UCX's own: /.test(text);
  return {
    type: way === true ? "managed" : way || "host",
    packed: where === "on the host" || where === "on the GPU" ? where : null,
    isStaged: text.includes("(stagingBytes)"),
  };
}

const types: ReadonlyMap<number, Sent["type"]> = new Map([
  [UCS_MEMORY_TYPE.HOST, "host"],
  [UCS_MEMORY_TYPE.CUDA, "cuda"],
  [UCS_MEMORY_TYPE.CUDA_MANAGED, "managed"],
]);

/** What is done to send it; null if it is refused. `calls` counts the driver's calls of a name. */
function done(what: StridedMemoryView, cuda: PoolStaging | null, calls: (name: string) => number): Sent | null {
  const memory = new TakenMemory();
  const before = calls("cuMemAllocFromPoolAsync");
  try {
    takeMemory(memory, what, "send", cuda);
  } catch (error) {
    if (!(error instanceof TypeError && /^Cannot send (GPU memory|memory of a simulated GPU): /.test(error.message))) {
      throw error;
    }
    return null;
  }
  const isPackedOnGpu = calls("cuMemAllocFromPoolAsync") > before;
  const type = types.get(memory.memoryType);
  if (type === undefined) throw new RangeError(`memory type ${memory.memoryType}`);
  const packed = memory.pack !== null ? "on the host" : isPackedOnGpu ? "on the GPU" : null;
  const isStaged = memory.copy !== null;
  memory.release();
  return { type, packed, isStaged };
}

type Device = CudaStream["device"];

const places: { readonly [name: string]: (device: Device) => MemoryResource } = {
  host: () => new HostMemoryResource(),
  pinned: (device) => new PinnedMemoryResource(device),
  managed: (device) => new ManagedMemoryResource(device),
  pool: (device) => device.memory,
  synchronous: (device) => new SynchronousMemoryResource(device),
};

const sends = fc.record({
  place: fc.constantFrom(...Object.keys(places)),
  hasHome: fc.boolean(),
  isContiguous: fc.boolean(),
  units: fc.oneof(fc.integer({ min: 2, max: 64 }), fc.integer({ min: stagedFrom / 32 - 2, max: stagedFrom / 32 + 2 })),
  staging: fc.constantFrom("default", "none", "no CUDA", "real GPUs" as const),
});

// Managed and packed memory was explained as it came, not as it goes: staged, or from a pool.
test("what is explained is what is done: as what UCX gets the memory, where it is packed, whether it is staged", async () => {
  using cuda = Cuda.simulate({ devices: 1 });
  const device = cuda.device(0);
  using stream = device.createStream();
  const driver = SimulatedDriver.of(cuda.driver);
  if (driver === null) throw new TypeError("the driver is not simulated");
  const stagings = {
    default: new PoolStaging(),
    none: new PoolStaging(0),
    "no CUDA": null,
    "real GPUs": new PoolStaging(undefined, (one) => !one.isSimulated),
  };
  await check(
    fc.property(sends, ({ place, hasHome, isContiguous, units, staging }) => {
      const memory = stagings[staging];
      using buffer = places[place]?.(device).allocate(64 * units, hasHome ? { stream } : {});
      if (buffer === undefined) throw new RangeError(place);
      const view = StridedMemoryView.fromBuffer(buffer, {
        dtype: "uint8",
        shape: [units, 32],
        strides: [isContiguous ? 32 : 64, 1],
      });
      const way = { transports: ["cuda_ipc/cuda", "sysv/memory"], cuda: memory, handlesErrors: true };
      const sent = done(view, memory, (name) => driver.calls(name));
      assertEquals(said(explain(view, way)), sent);
      // UCX took a simulated GPU's memory for the real one's, and the process ended with a segmentation fault.
      if (staging === "real GPUs") assertEquals(sent, done(view, null, (name) => driver.calls(name)));
      stream.synchronize();
    }),
    300,
  );
  for (const one of Object.values(stagings)) one?.close();
});
