/** Which stream waits for which when memory changes hands: shown by a byte that one sets and the other must find. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { CUresult } from "../../bindings/cuda_types.ts";
import { SimulatedDriver } from "../../src/public/sim.ts";
import {
  Cuda,
  CudaError,
  type CudaStream,
  DeviceMemoryResource,
  ManagedMemoryResource,
  MemoryBuffer,
  PinnedMemoryResource,
  SynchronousMemoryResource,
} from "../../mod.ts";
import { consumerWaits, hostWaitsBeforeReturn, producerWaits, recordReady } from "../../src/order/waits.ts";
import { ReleaseOrder } from "../../src/order/release_order.ts";
import { otherContext } from "../support/other_context.ts";
import { check, fc } from "../support/property.ts";
import { simulatorOf } from "../support/simulator_of.ts";

/** Streams that run as late as possible, each with a byte that it sets. */
function setUp(driverVersion = 13000) {
  const cuda = Cuda.simulate({ schedule: "latest", driverVersion });
  const simulated = simulatorOf(cuda);
  const device = cuda.device(0);
  device.releaseEvent(device.acquireEvent()); // the one event that a device keeps, for ordering streams
  const pinned = new PinnedMemoryResource(device);
  const flags = pinned.allocate(4);
  const bytes = flags.bytes().fill(0);
  const streams = Array.from({ length: 4 }, () => device.createStream());
  const work = (lane: number): CudaStream => {
    const stream = streams[lane];
    assert(stream !== undefined);
    const set = cuda.driver.fill.cuMemsetD8Async(flags.ptr + BigInt(lane), 1, 1n, stream.handle);
    assertEquals(set, 0);
    return stream;
  };
  const waits = () =>
    ["cuStreamSynchronize", "cuCtxSynchronize", "cuEventSynchronize"].map((call) => simulated.calls(call));
  return { simulated, device, pinned, bytes, streams, work, waits };
}

test("a consumer comes after its producer's work, if it wants order, and the host waits for nothing", () => {
  for (const order of ["consumer", "streams", "none", "no home"] as const) {
    const { device, pinned, bytes, streams, work, waits, simulated } = setUp();
    const [home, consumer = null] = streams;
    assert(home !== undefined && consumer !== null);
    using buffer = device.memory.allocate(8, { stream: home });
    using withoutHome = pinned.allocate(8);
    work(0);
    if (order === "consumer") consumerWaits(buffer, consumer);
    else if (order === "streams") consumer.wait(home);
    else if (order === "none") consumerWaits(buffer, null);
    else consumerWaits(withoutHome, consumer);
    assertEquals([waits(), simulated.live.events], [[0, 0, 0], 1]);
    consumer.synchronize();
    assertEquals(bytes[0], order === "consumer" || order === "streams" ? 1 : 0, order);
  }
});

test("after a release the home stream comes after the work of every stream of the context", () => {
  for (const kind of ["device", "pinned"] as const) {
    for (const driverVersion of [13000, 12040]) {
      const { device, pinned, bytes, streams, work, waits, simulated } = setUp(driverVersion);
      const [home] = streams;
      assert(home !== undefined);
      using buffer = (kind === "device" ? device.memory : pinned).allocate(8, { stream: home });
      for (const lane of [1, 2, 3]) work(lane);
      new ReleaseOrder().add(buffer);
      // A driver older than CUDA 12.5 cannot order it without the host.
      assertEquals([waits(), simulated.live.events], [driverVersion < 12050 ? [0, 1, 0] : [0, 0, 0], 1]);
      home.synchronize();
      assertEquals([...bytes], [0, 1, 1, 1], kind);
    }
  }
});

test("a release comes after the work of every device that can reach the memory, and of no other", () => {
  const kinds = fc.constantFrom("pool", "closed pool", "synchronous", "pinned", "managed", "import");
  const devices = 4;
  check(
    fc.property(
      kinds,
      fc.subarray([1, 2, 3]),
      fc.subarray([1, 2, 3]),
      fc.boolean(),
      fc.boolean(),
      (kind, peers, active, isOld, isAlone) => {
        const driverVersion = isOld ? 12040 : 13000;
        // Devices that cannot access each other can access host memory, too; and random programs have shown that an
        // import may be host memory without saying so.
        const canAccessPeer = () => kind !== "pinned" && kind !== "managed" && kind !== "import";
        const cuda = Cuda.simulate({ devices, schedule: "latest", driverVersion, canAccessPeer });
        const simulated = SimulatedDriver.of(cuda.driver);
        const owner = cuda.device(0);
        const flags = new PinnedMemoryResource(owner).allocate(devices);
        const bytes = flags.bytes().fill(0);
        const home = owner.createStream();
        const pool = new DeviceMemoryResource(owner, {});
        if (canAccessPeer()) pool.peerAccessibleBy = peers;
        const imported = new ManagedMemoryResource(owner).allocate(8, { stream: home });
        const resources = {
          pool,
          import: { allocate: () => MemoryBuffer.fromAllocation(importOf(imported)) },
          "closed pool": pool,
          synchronous: new SynchronousMemoryResource(owner),
          pinned: new PinnedMemoryResource(owner),
          managed: new ManagedMemoryResource(owner),
        };
        const buffer = resources[kind].allocate(8, { stream: home });
        if (kind === "closed pool") pool.close();
        for (const ordinal of [0, ...active]) {
          const consumer = cuda.device(ordinal).createStream();
          assertEquals(cuda.driver.fill.cuMemsetD8Async(flags.ptr + BigInt(ordinal), 1, 1n, consumer.handle), 0);
        }
        const contexts = simulated?.live.contexts;
        for (const device of cuda.devices) if (device.isActive) device.releaseEvent(device.acquireEvent()); // one each
        using other = new DeviceMemoryResource(owner, {}).allocate(8, { stream: home }); // no peer can access it
        const order = new ReleaseOrder();
        if (!isAlone) order.add(other);
        order.add(buffer);
        assertEquals([simulated?.live.contexts, simulated?.live.events], [contexts, contexts]);
        if (!isOld) assertEquals(simulated?.calls("cuCtxSynchronize"), 0, "the host does not wait");
        home.synchronize();
        const isPooled = kind.endsWith("pool");
        const seen = (ordinal: number) => active.includes(ordinal) && (!isPooled || peers.includes(ordinal)) ? 1 : 0;
        assertEquals([...bytes], [1, seen(1), seen(2), seen(3)]);
        buffer.close();
        imported.close();
        cuda.close();
      },
    ),
    200,
  );
});

/** Memory imported by a protocol that knows only device memory. */
function importOf(owner: MemoryBuffer) {
  const { ptr, size, device, stream } = owner;
  return { ptr, size, device, stream, owner, free: () => {} };
}

test("memory without a home needs no order when it is released", () => {
  const { pinned, simulated } = setUp();
  using buffer = pinned.allocate(8);
  const before = simulated.calls("cuCtxRecordEvent");
  new ReleaseOrder().add(buffer);
  assertEquals(simulated.calls("cuCtxRecordEvent"), before);
});

// Found by random programs: waiting for a blocking stream alone does not cover the default stream's work.
test("foreign memory is returned after all that its home would wait for, the default stream's work included", () => {
  const { device, pinned, simulated } = setUp();
  using home = device.createStream({ nonBlocking: false });
  using flag = pinned.allocate(1);
  const seen = flag.bytes().fill(0);
  flag.fill(1, { stream: home });
  flag.fill(2, { stream: device.defaultStream });
  hostWaitsBeforeReturn(home);
  assertEquals([...seen], [2]);
  const { events } = simulated.live;
  hostWaitsBeforeReturn(home);
  assertEquals(simulated.live.events, events, "a used event is reused");
  // Where waiting has become impossible, that is no reason to keep another owner's memory.
  simulated.failNth("cuEventRecord", 1, CUresult.CUDA_ERROR_ILLEGAL_ADDRESS);
  simulated.failNth("cuStreamSynchronize", 1, CUresult.CUDA_ERROR_ILLEGAL_ADDRESS);
  hostWaitsBeforeReturn(home);
  simulated.failNth("cuEventRecord", 1, CUresult.CUDA_ERROR_OUT_OF_MEMORY);
  flag.fill(3, { stream: device.defaultStream });
  hostWaitsBeforeReturn(home); // the host waits for the device
  assertEquals([...seen], [3]);
  simulated.failNth("cuEventRecord", 1, CUresult.CUDA_ERROR_OUT_OF_MEMORY);
  simulated.failNth("cuCtxSynchronize", 1, CUresult.CUDA_ERROR_UNKNOWN);
  assertThrows(() => hostWaitsBeforeReturn(home), CudaError, "UNKNOWN");
});

test("a consumer may work in a context of its own, whose streams take no event of ours", () => {
  const { device, pinned, streams: [home = device.defaultStream] } = setUp();
  using other = otherContext(device);
  const { stream: theirs } = other;
  using flag = pinned.allocate(1);
  const seen = flag.bytes().fill(0);
  for (const order of [hostWaitsBeforeReturn, (consumer: CudaStream) => producerWaits(consumer, home)]) {
    seen.fill(0);
    assertEquals(device.driver.fill.cuMemsetD8Async(flag.ptr, 5, 1n, theirs.handle), 0);
    order(theirs);
    assertEquals([...seen], [5]);
  }
});

test("one event comes after the homes of any buffers, and leaves nothing behind", () => {
  check(
    fc.property(fc.array(fc.constantFrom(0, 1, 2, null), { maxLength: 6 }), (homes) => {
      const { device, pinned, bytes, streams, work, simulated } = setUp();
      const buffers: MemoryBuffer[] = homes.map((lane) => {
        const stream = lane === null ? undefined : streams[lane];
        return stream === undefined ? pinned.allocate(8) : device.memory.allocate(8, { stream });
      });
      const lanes = new Set(homes.filter((lane) => lane !== null));
      for (const lane of lanes) work(lane);
      const created = simulated.calls("cuStreamCreate");
      const event = recordReady(buffers);
      assertEquals(event === null, lanes.size === 0);
      assertEquals(simulated.calls("cuStreamCreate") - created, lanes.size > 1 ? 1 : 0);
      assertEquals([simulated.live.streams, simulated.live.events], [4, event === null ? 1 : 2]);
      event?.synchronize();
      for (const lane of lanes) assertEquals(bytes[lane], 1);
      event?.close();
      const [records, consumer] = [simulated.calls("cuCtxRecordEvent"), streams[3]];
      assert(consumer !== undefined);
      work(3);
      const order = new ReleaseOrder();
      for (const one of buffers) order.add(one);
      assertEquals(simulated.calls("cuCtxRecordEvent") - records, lanes.size, "each home waits once");
      for (const lane of lanes) streams[lane]?.synchronize();
      assertEquals([bytes[3], simulated.live.events], [lanes.size > 0 ? 1 : 0, 1]);
      for (const one of buffers) one.close();
    }),
    200,
  );
});
