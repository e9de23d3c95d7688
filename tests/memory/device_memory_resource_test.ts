/**
 * Pool memory: limits, the out-of-memory error, the state after a failure, and that freeing waits for nothing.
 */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { CUresult } from "../../bindings/cuda_types.ts";
import type { SimulatedDriver } from "../../src/public/sim.ts";
import {
  Cuda,
  type CudaDevice,
  CudaError,
  DeviceMemoryResource,
  HostMemoryResource,
  ManagedMemoryResource,
  type MemoryBuffer,
  PinnedMemoryResource,
  SynchronousMemoryResource,
} from "../../mod.ts";
import { drainFrees } from "../../src/order/deferred_free.ts";
import { check, fc, scaled } from "../support/property.ts";
import { simulatorOf } from "../support/simulator_of.ts";

function setUp(options: Parameters<typeof Cuda.simulate>[0] = {}) {
  const cuda = Cuda.simulate(options);
  const simulated = simulatorOf(cuda);
  return { cuda, simulated, device: cuda.device(0) };
}

function left({ live }: SimulatedDriver) {
  const { streams, events, allocations, pools, contexts } = live;
  return { streams, events, allocations, pools, contexts };
}

const nothing = { streams: 0, events: 0, allocations: 0, pools: 0, contexts: 0 };

test("an out-of-memory error says how much was requested, used and free", () => {
  const memory = 2 ** 26;
  check(
    fc.property(
      fc.integer({ min: 1, max: 2 ** 24 }),
      fc.integer({ min: 1, max: 2 ** 40 }),
      fc.boolean(),
      (used, more, isOwn) => {
        const { cuda, device } = setUp({ memory });
        const resource = isOwn ? new DeviceMemoryResource(device, { maxSize: 2 ** 25 }) : device.memory;
        const first = resource.allocate(used);
        const asked = 2 ** 26 + more;
        const error = assertThrows(() => resource.allocate(asked), CudaError);
        assertEquals([error.code, error.codeName], [2, "CUDA_ERROR_OUT_OF_MEMORY"]);
        const { free, total } = device.memoryInfo();
        const { reserved } = resource.pool.use;
        assertEquals(
          error.message,
          // The limit was left out, so a pool without buffers was out of memory of which nearly all was free.
          `cuMemAllocFromPoolAsync failed with CUDA_ERROR_OUT_OF_MEMORY (2): ${asked} bytes were requested; buffers of the ` +
            `pool use ${used}, the pool has reserved ${reserved}${
              isOwn ? ` of at most ${2 ** 25}` : ""
            }, device 0 has ${free} of ${total} free`,
        );
        first.close();
        cuda.close();
      },
    ),
    50,
  );
});

/** One resource of each kind of memory that the driver knows. */
function resourcesOf(device: CudaDevice) {
  return [
    new DeviceMemoryResource(device, {}),
    new PinnedMemoryResource(device),
    new ManagedMemoryResource(device),
    new SynchronousMemoryResource(device),
  ] as const;
}

test("invalid sizes, closed pools and closed streams are refused before anything is allocated", () => {
  const { cuda, simulated, device } = setUp();
  const stream = device.createStream();
  const resources = resourcesOf(device);
  const held = device.memory.allocate(8, { stream });
  stream.close(); // the buffer still needs it
  for (const resource of resources) {
    for (const size of [-1, 0.5, NaN, Infinity, 2 ** 53]) {
      assertThrows(() => resource.allocate(size), RangeError, `Cannot allocate ${size} bytes`);
    }
    assertThrows(
      () => resource.allocate(64, { stream }),
      TypeError,
      "Cannot allocate on a stream: expected an open one, got a closed CudaStream",
    );
  }
  const [own] = resources;
  assert(own instanceof DeviceMemoryResource);
  own.close();
  own.close();
  assertThrows(() => own.allocate(1), TypeError, "Cannot use a closed memory pool");
  assertEquals(simulated.live.allocations, 1);
  held.close();
  cuda.close();
  assertEquals(left(simulated), nothing);
});

test("closing a device's memory ends the caller's own use, and no other", () => {
  const { cuda, device } = setUp();
  using _ = cuda;
  {
    using memory = device.memory; // as with any other resource
    memory.allocate(64).close();
  }
  device.memory.allocate(64).close();
  const { memory } = device;
  assert(device.memory === memory);
});

test("zero bytes need no driver call, from any resource, and copying and filling them does nothing", () => {
  const { cuda, simulated, device } = setUp();
  const stream = device.createStream();
  const resources = [...resourcesOf(device), new HostMemoryResource()];
  const calls = ["cuMemAllocFromPoolAsync", "cuMemHostAlloc", "cuMemAllocManaged", "cuMemAlloc_v2"];
  const frees = ["cuMemFreeAsync", "cuMemFreeHost", "cuMemFree_v2", "cuMemcpyDtoDAsync_v2", "cuMemsetD8Async"];
  for (const resource of resources) {
    const [one, other] = [resource.allocate(0, { stream }), resource.allocate(0)];
    assertEquals([one.ptr, one.size], [0n, 0]);
    one.copyFrom(other, { stream });
    one.copyFrom(other);
    one.fill(1, { stream });
    one.fill(1);
    if (resource instanceof ManagedMemoryResource) {
      resource.prefetch(one, device, { stream });
      resource.advise(one, "SET_READ_MOSTLY", device);
    }
    one.close();
    other.close();
  }
  for (const call of [...calls, ...frees]) assertEquals(simulated.calls(call), 0, call);
  stream.close();
  for (const one of resources) if (one instanceof DeviceMemoryResource) one.close();
  cuda.close();
  assertEquals(left(simulated), nothing);
});

test("a device without pools says what to use instead, which works", () => {
  const { device } = setUp({ poolsSupported: false });
  assertThrows(
    () => new DeviceMemoryResource(device),
    CudaError,
    "device 0 has no memory pools. Use SynchronousMemory",
  );
  new SynchronousMemoryResource(device).allocate(64).close();
});

test("memory without a stream has its home on the default stream of its device", () => {
  const { cuda } = setUp({ devices: 2 });
  for (const device of cuda.devices) assertEquals(device.memory.allocate(8).stream, device.defaultStream);
});

/** Everything that a user may do with memory; any driver call in it may fail. */
const actions = [
  "pool",
  "pinned",
  "managed",
  "synchronous",
  "copy",
  "fill",
  "home",
  "close",
  "elsewhere",
  "peers",
] as const;

test("whichever driver call fails, and when, the error has its name, and everything else is freed", () => {
  const failing = fc.constantFrom(
    ...["cuMemAllocFromPoolAsync", "cuMemHostAlloc", "cuMemAllocManaged", "cuMemAlloc_v2", "cuMemcpyDtoDAsync_v2"],
    ...[
      "cuMemsetD8Async",
      "cuEventCreate",
      "cuEventRecord",
      "cuStreamWaitEvent",
      "cuStreamQuery",
      "cuMemPoolSetAccess",
    ],
    ...["cuMemPoolGetAccess", "cuCtxPushCurrent_v2", "cuMemFreeAsync", "cuMemFreeHost", "cuMemFree_v2"],
  );
  const programs = fc.array(fc.tuple(fc.constantFrom(...actions), fc.nat(20)), {
    minLength: 4,
    maxLength: 25,
    size: "max",
  });
  let failures = 0;
  check(
    fc.property(programs, failing, fc.integer({ min: 1, max: 8 }), fc.nat(), (program, call, nth, seed) => {
      const { cuda, simulated, device } = setUp({ devices: 2, seed });
      const streams = [device.createStream(), device.createStream()];
      const own = new DeviceMemoryResource(device, {});
      const others = [
        new PinnedMemoryResource(device),
        new ManagedMemoryResource(device),
        new SynchronousMemoryResource(device),
      ];
      const made: MemoryBuffer[] = [];
      let thrown: unknown = null;
      const attempt = (work: () => void) => {
        try {
          work();
        } catch (error) {
          thrown ??= error;
        }
      };
      const act = (what: (typeof actions)[number], at: number) => {
        const stream = streams[at % 2];
        const [one, other] = [made[at % Math.max(1, made.length)], made[(at + 1) % Math.max(1, made.length)]];
        assert(stream !== undefined);
        if (what === "pool") made.push(own.allocate(64, { stream }));
        const index = ["pinned", "managed", "synchronous"].indexOf(what);
        const resource = others[index];
        if (resource !== undefined) made.push(resource.allocate(64, { stream }));
        if (what === "peers") own.peerAccessibleBy = at % 2 === 0 ? [1] : [];
        if (one === undefined || other === undefined || one === other || one.isClosed || other.isClosed) return;
        if (what === "copy") one.copyFrom(other, { stream });
        if (what === "fill") one.fill(at, { stream });
        if (what === "home") one.setHomeStream(stream);
        if (what === "close") one.close();
        if (what === "elsewhere") one.close(stream);
      };
      simulated.failNth(call, nth, CUresult.CUDA_ERROR_UNKNOWN);
      const before = simulated.calls(call);
      for (const [what, at] of program) attempt(() => act(what, at));
      for (const one of made) attempt(() => one.close());
      attempt(() => drainFrees());
      const hasFailed = simulated.calls(call) - before >= nth;
      const isFree = call.startsWith("cuMemFree");
      // A failed query only means that nothing more will run there; and without an event, the free itself waits.
      const isAbsorbed = ["cuStreamQuery", "cuEventCreate", "cuEventRecord", "cuCtxPushCurrent_v2"].includes(call);
      if (thrown !== null || !isAbsorbed) assertEquals(thrown !== null, hasFailed, `${call}: ${thrown}`);
      if (thrown !== null) {
        failures++;
        assert(thrown instanceof CudaError, String(thrown));
        assertEquals([thrown.call, thrown.codeName], [call, "CUDA_ERROR_UNKNOWN"]);
      }
      for (const one of streams) attempt(() => one.close());
      attempt(() => own.close());
      attempt(() => cuda.close());
      for (const one of made) one.close(); // buffers whose new home could not be set
      if (call === "cuCtxPushCurrent_v2") attempt(() => drainFrees()); // a pool marks the end of the work twice
      else drainFrees();
      const isLost = call === "cuCtxPushCurrent_v2" && simulated.calls(call) - before >= nth;
      if (isLost) return; // and so is everything that needed a context at that time
      const { allocations, pools, ...rest } = left(simulated);
      assertEquals(rest, { streams: 0, events: 0, contexts: 0 });
      assert(pools <= allocations, "a pool stays while some of its memory is left");
      assert(allocations <= (isFree && hasFailed ? 1 : 0), `${allocations} allocations are left`);
    }),
    800,
  );
  assert(failures > scaled(50), `only ${failures} failures`);
});
