/**
 * Pageable host memory that a copy on a stream uses lives until the copy has completed, even if released before.
 */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { SimulatedDriver } from "../../src/public/sim.ts";
import {
  Cuda,
  type CudaDevice,
  CudaStream,
  HostMemoryResource,
  MemoryBuffer,
  slice,
  StridedMemoryView,
} from "../../mod.ts";
import { internals } from "../../src/device/stream_internals.ts";
import { drainFrees } from "../../src/order/deferred_free.ts";
import { reclaim } from "../../src/order/reclaim.ts";
import { collectGarbage } from "../support/collect.ts";
import { check, fc } from "../support/property.ts";
import { until } from "../support/until.ts";
import { simulatorOf } from "../support/simulator_of.ts";

/** The value that freed bytes are set to at once. */
const poison = 0xee;

const size = 32;

/** The stream of a copy: one of ours, the device's default stream, or a foreign one. */
const lanes = ["ours", "ours", "default", "foreign"] as const;

interface Copy {
  readonly by: "buffers" | "views" | "columns of views";
  readonly direction: "up" | "down";
  readonly lane: number;
  /**
   * What happens after it: the program waits for the stream, or finds it done, or closes it, and another takes its
   * place.
   */
  readonly then: "nothing" | "synchronize" | "ask" | "wait until ready" | "close" | "reclaim";
}

const copy = fc.record<Copy>({
  by: fc.constantFrom("buffers", "views", "columns of views"),
  direction: fc.constantFrom("up", "down"),
  lane: fc.nat(lanes.length - 1),
  then: fc.oneof(
    { weight: 9, arbitrary: fc.constant("nothing" as const) },
    { weight: 1, arbitrary: fc.constantFrom("synchronize", "ask", "wait until ready", "close", "reclaim") },
  ),
});

/** Few copies, or more than are grouped together. */
const copies = fc.oneof(
  { weight: 9, arbitrary: fc.array(copy, { minLength: 1, maxLength: 12 }) },
  { weight: 1, arbitrary: fc.array(copy, { minLength: 100, maxLength: 200, size: "max" }) },
);

/** Copies all bytes, or copies by views that select every other element of pairs. */
function carry(by: Copy["by"], to: MemoryBuffer, from: MemoryBuffer, stream: CudaStream): void {
  if (by === "buffers") return to.copyFrom(from, { stream });
  const shape = by === "views" ? [size] : [size / 2, 2];
  const [target, source] = [to, from].map((buffer) => StridedMemoryView.fromBuffer(buffer, { shape, dtype: "uint8" }));
  assert(target !== undefined && source !== undefined);
  if (by === "views") return target.copyFrom(source, { stream });
  for (const column of [0, 1]) {
    target.sliced(slice(null, null), column).copyFrom(source.sliced(slice(null, null), column), { stream });
  }
}

/** Streams of all kinds, each replaced when it is closed. A foreign one is destroyed by its creator. */
class Lanes {
  readonly #device: CudaDevice;
  readonly #made: CudaStream[] = [];
  readonly #streams: CudaStream[] = [];

  constructor(device: CudaDevice) {
    this.#device = device;
    lanes.forEach((_, lane) => this.#open(lane));
  }

  #open(lane: number): void {
    const device = this.#device;
    if (lanes[lane] === "default") this.#streams[lane] = device.defaultStream;
    else {
      const made = this.#made[lane] = device.createStream({ nonBlocking: lane % 2 === 0 });
      this.#streams[lane] = lanes[lane] === "foreign" ? CudaStream.fromHandle(device, made.handle) : made;
    }
  }

  stream(lane: number): CudaStream {
    const stream = this.#streams[lane];
    assert(stream !== undefined);
    return stream;
  }

  replace(lane: number): void {
    this.#made[lane]?.close();
    this.#open(lane);
  }

  close(): void {
    for (const made of this.#made) made?.close();
  }
}

test("memory that a copy uses is unpinned once, after it, however many copies there are, and leaves no event", () => {
  check(
    fc.property(copies, fc.constantFrom("latest", "random", "round-robin"), fc.nat(), (program, schedule, seed) => {
      const cuda = Cuda.simulate({ schedule, seed, freesWait: seed % 2 === 1 });
      const device = cuda.device(0);
      const streams = new Lanes(device);
      const backing = new HostMemoryResource();
      const [keeper, own] = [backing.allocate(program.length * size), device.createStream()];
      /** The host side of each copy at every time it was freed. */
      const given: Uint8Array[][] = program.map(() => []);
      const targets = program.map(({ direction, by, lane, then }, i) => {
        const stream = streams.stream(lane);
        const bytes = keeper.bytes().subarray(i * size, (i + 1) * size).fill(direction === "up" ? i : 0);
        const free = () => {
          given[i]?.push(bytes.slice());
          bytes.fill(poison);
        };
        const host = MemoryBuffer.fromAllocation({
          ptr: keeper.ptr + BigInt(i * size),
          size,
          device: null,
          stream: null,
          free,
        });
        const target = device.memory.allocate(size, { stream: own });
        target.fill((100 + i) % 256, { stream: own });
        stream.wait(own);
        if (direction === "up") carry(by, target, host, stream);
        else carry(by, host, target, stream);
        own.wait(stream);
        host.close();
        if (then === "synchronize") stream.synchronize();
        else if (then === "ask") void stream.isDone;
        else if (then === "wait until ready") stream.waitUntilReady();
        else if (then === "close") streams.replace(lane);
        else if (then === "reclaim") reclaim();
        return target;
      });
      device.synchronize(); // no memory is notified of this
      program.forEach(({ direction }, i) => {
        const seen = new Uint8Array(size);
        const target = targets[i];
        assert(target !== undefined);
        target.copyTo(seen, { stream: own });
        own.synchronize();
        assertEquals([...new Set(seen)], [(direction === "up" ? i : 100 + i) % 256], `the device's side of copy ${i}`);
        target.close();
      });
      streams.close();
      own.close();
      cuda.close();
      drainFrees();
      program.forEach(({ direction }, i) => {
        const due = (direction === "up" ? i : 100 + i) % 256;
        assertEquals(given[i]?.map((bytes) => [...new Set(bytes)]), [[due]], `the host's side of copy ${i}`);
      });
      keeper.close();
      assertEquals(SimulatedDriver.of(cuda.driver)?.live.events, 0);
    }),
    150,
  );
});

// cuda.core and torch leave this to their users; an array referenced only by a copy would be collected under it.
test("a typed array that is only dropped is collected after the copy, not before", async () => {
  using cuda = Cuda.simulate({ schedule: "latest" });
  const device = cuda.device(0);
  using stream = device.createStream();
  using target = device.memory.allocate(size, { stream });
  const view = StridedMemoryView.fromBuffer(target, { shape: [size], dtype: "uint8" });
  const enqueue = [
    (array: Uint8Array<ArrayBuffer>) => target.copyFrom(array, { stream }),
    (array: Uint8Array<ArrayBuffer>) => target.copyTo(array, { stream }),
    (array: Uint8Array<ArrayBuffer>) => view.copyFrom(array, { stream }),
    (array: Uint8Array<ArrayBuffer>) => view.copyTo(array, { stream }),
  ];
  const arrays = enqueue.flatMap((one) =>
    Array.from({ length: 10 }, () => {
      const array = new Uint8Array(size);
      one(array);
      return new WeakRef(array.buffer);
    })
  );
  const left = () => arrays.filter((one) => one.deref() !== undefined).length;
  await collectGarbage();
  assertEquals(left(), arrays.length);
  stream.synchronize();
  reclaim();
  for (let i = 0; i < 20 && left() > arrays.length / 2; i++) await collectGarbage();
  assert(left() <= arrays.length / 2, `${left()} of ${arrays.length} are still there`); // the stack may hold a few
});

test("copies that are never waited for pin little memory: later copies find those that are done", () => {
  using cuda = Cuda.simulate({ schedule: "latest" });
  const device = cuda.device(0);
  using stream = device.createStream();
  for (const [bytes, copies, most] of [[64, 1000, 128], [2 ** 20, 60, 32], [2 ** 24, 10, 2]] as const) {
    using target = device.memory.allocate(bytes, { stream });
    using backing = new HostMemoryResource().allocate(bytes);
    let [kept, highest] = [0, 0];
    for (let i = 0; i < copies; i++) {
      if (i % 8 === 0) device.synchronize(); // now all work is done, but nothing has polled
      const free = () => void kept--;
      using host = MemoryBuffer.fromAllocation({ ptr: backing.ptr, size: bytes, device: null, stream: null, free });
      kept++;
      target.fill(0, { stream }); // a copy of pageable memory may complete before it returns; none here does
      target.copyFrom(host, { stream });
      highest = Math.max(highest, kept);
    }
    assert(highest > 1 && highest <= most + 8, `${highest} copies at a time of ${bytes} bytes were kept`);
    stream.synchronize();
    reclaim();
    assertEquals(kept, 0);
  }
});

test("a small copy from ordinary memory makes few driver calls besides the copy, and so do later copies", () => {
  using cuda = Cuda.simulate({ schedule: "latest" });
  const simulated = simulatorOf(cuda);
  const device = cuda.device(0);
  using stream = device.createStream();
  using target = device.memory.allocate(size, { stream });
  const backing = new HostMemoryResource();
  using host = backing.allocate(size);
  const names = ["cuEventCreate", "cuEventRecord", "cuEventQuery", "cuStreamQuery", "cuEventDestroy_v2"] as const;
  const asked = (work: () => void) => {
    const count = () => names.reduce((sum, name) => sum + simulated.calls(name), 0);
    const before = count();
    work();
    return count() - before;
  };
  const copies = (count: number) => {
    for (let i = 0; i < count; i++) target.copyFrom(host, { stream });
  };
  const calls = asked(() => copies(1000));
  assert(calls > 0 && calls < 100, `${calls} calls for 1000 copies`); // 64 share an event
  stream.synchronize();
  reclaim();
  let highest = 0;
  for (let i = 0; i < 2000; i++) {
    if (i % 200 === 0) device.synchronize(); // now all work is done, but nothing has polled
    copies(1);
    highest = Math.max(highest, simulated.live.events);
  }
  assert(highest <= 10, `${highest} marks for 64 copies each, of which 200 were in flight`);
  const small = backing.allocate(size);
  target.copyFrom(small, { stream });
  small.close();
  reclaim(); // polls for that one
  copies(1);
  stream.synchronize();
  reclaim();
  copies(1);
  assertEquals(asked(reclaim), 0); // nothing has been closed
});

test("waiting for a stream, or finding it done, unpins the memory that its copies have used", async () => {
  for (const nonBlocking of [true, false]) {
    const ways: readonly ((stream: CudaStream) => unknown)[] = [
      (stream) => stream.synchronize(),
      (stream) => stream.isDone,
      (stream) => stream.waitUntilReady(),
      (stream) => stream.completed(),
      (stream) => stream.close(),
    ];
    for (const way of ways) {
      using cuda = Cuda.simulate();
      const device = cuda.device(0);
      const stream = device.createStream({ nonBlocking });
      using target = device.memory.allocate(size, { stream: device.defaultStream });
      stream.wait(device.defaultStream);
      using backing = new HostMemoryResource().allocate(size);
      const freed: number[] = [];
      for (let i = 0; i < 3; i++) {
        const free = () => {
          freed.push(i);
          if (i === 0) throw new Error("an error of a free, unrelated to the others");
        };
        const host = MemoryBuffer.fromAllocation({ ptr: backing.ptr, size, device: null, stream: null, free });
        target.copyFrom(host, { stream });
        host.close();
      }
      device.synchronize();
      assertEquals(freed, []);
      await way(stream);
      assertEquals(freed, [0, 1, 2], `${way}`);
      stream.close();
    }
  }
});

test("memory used on a stream that is never closed is freed by itself after the Cuda is closed", async () => {
  drainFrees();
  await setTimeout(50); // the watcher of earlier copies has stopped
  for (const how of ["default stream", "closed stream", "closed Cuda"]) {
    const cuda = Cuda.simulate({ schedule: "latest" });
    const device = cuda.device(0);
    const stream = how === "closed stream" ? device.createStream() : device.defaultStream;
    using backing = new HostMemoryResource().allocate(size);
    const target = device.memory.allocate(size, { stream });
    target.fill(1, { stream });
    let frees = 0;
    const free = () => void frees++;
    const host = MemoryBuffer.fromAllocation({ ptr: backing.ptr, size, device: null, stream: null, free });
    if (how === "closed stream") stream.close(); // the target retains it
    if (how === "closed Cuda") cuda.close();
    const home = target.stream ?? stream;
    host.pinUntilPassed(home);
    assertEquals(home[internals].watcher === null, how !== "default stream"); // nothing would report the others' end
    host.close();
    cuda.close();
    target.close();
    await until(() => frees > 0);
    assertEquals(frees, 1);
  }
});

test("a stream that is closed while it is captured has no completion of its own: the device's is waited for", () => {
  using cuda = Cuda.simulate();
  const device = cuda.device(0);
  const stream = device.createStream();
  using target = device.memory.allocate(size, { stream });
  using backing = new HostMemoryResource().allocate(size);
  let frees = 0;
  const free = () => void frees++;
  const host = MemoryBuffer.fromAllocation({ ptr: backing.ptr, size, device: null, stream: null, free });
  target.copyFrom(host, { stream });
  host.close();
  const capture = stream.beginCapture();
  target.fill(1, { stream });
  stream.close();
  using graph = capture.end();
  assertEquals(graph.nodes.length, 1);
  device.synchronize();
  reclaim();
  assertEquals(frees, 1);
});

test("memory that a copy has used is freed when it is closed, if its last use is done: closing polls", () => {
  using cuda = Cuda.simulate({ schedule: "latest" });
  const device = cuda.device(0);
  using stream = device.createStream();
  using other = device.createStream();
  const bytes = 2 ** 24; // enough for its own mark
  using target = device.memory.allocate(bytes, { stream });
  using backing = new HostMemoryResource().allocate(bytes);
  let frees = 0;
  const free = () => void frees++;
  const make = (size: number) =>
    MemoryBuffer.fromAllocation({ ptr: backing.ptr, size, device: null, stream: null, free });
  const large = make(bytes);
  target.copyFrom(large, { stream });
  device.synchronize();
  assertEquals(frees, 0);
  large.close();
  assertEquals(frees, 1);
  const small = make(size);
  using part = device.memory.allocate(size, { stream });
  part.copyFrom(small, { stream });
  device.synchronize();
  small.close();
  assertEquals(frees, 1); // a mark would cost more than the copy
  device.memory.allocate(size, { stream: other }).close(); // every allocation polls
  assertEquals(frees, 2);
});

test("closing memory that a copy uses queries each stream once at most, however much is in flight", () => {
  using cuda = Cuda.simulate({ schedule: "latest" });
  const simulated = simulatorOf(cuda);
  using stream = cuda.device(0).createStream();
  using target = cuda.device(0).memory.allocate(size, { stream });
  const hosts = Array.from({ length: 1000 }, () => new HostMemoryResource().allocate(size));
  for (const host of hosts) target.copyFrom(host, { stream });
  const asked = simulated.calls("cuEventQuery");
  for (const host of hosts) host.close();
  assert(simulated.calls("cuEventQuery") - asked <= hosts.length);
  stream.synchronize();
  reclaim();
  assertEquals(simulated.live.events, 0);
});
