/** Ordinary memory of the host that a copy on a stream uses stays until the copy is over, whoever lets go of it before. */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import {
  Cuda,
  type CudaStream,
  HostMemoryResource,
  MemoryBuffer,
  SimulatedDriver,
  slice,
  StridedMemoryView,
} from "../../mod.ts";
import { reclaim } from "../../src/memory/reclaim.ts";
import { collectGarbage } from "../support/collect.ts";
import { check, fc } from "../support/property.ts";

/** What a freed byte becomes at once. */
const poison = 0xee;

const size = 32;

interface Copy {
  readonly by: "buffers" | "views" | "columns of views";
  readonly direction: "up" | "down";
  readonly stream: number;
  readonly wait: boolean;
}

const copies = fc.array(
  fc.record<Copy>({
    by: fc.constantFrom("buffers", "views", "columns of views"),
    direction: fc.constantFrom("up", "down"),
    stream: fc.nat(1),
    wait: fc.boolean(),
  }),
  { minLength: 1, maxLength: 12 },
);

/** Copies all bytes, or by views that see every other element of pairs. */
function copy(by: Copy["by"], to: MemoryBuffer, from: MemoryBuffer, stream: CudaStream): void {
  if (by === "buffers") return to.copyFrom(from, { stream });
  const shape = by === "views" ? [size] : [size / 2, 2];
  const [target, source] = [to, from].map((buffer) => StridedMemoryView.fromBuffer(buffer, { shape, dtype: "uint8" }));
  assert(target !== undefined && source !== undefined);
  if (by === "views") return target.copyFrom(source, { stream });
  for (const column of [0, 1]) {
    target.sliced(slice(null, null), column).copyFrom(source.sliced(slice(null, null), column), { stream });
  }
}

test("memory that a copy uses is given back once, after it, however many copies there are, and leaves no event", () => {
  check(
    fc.property(copies, fc.constantFrom("latest", "random", "round-robin"), fc.nat(), (program, schedule, seed) => {
      const cuda = Cuda.simulate({ schedule, seed });
      const device = cuda.device(0);
      const streams = [device.createStream(), device.createStream()];
      const backing = new HostMemoryResource();
      const [keeper, up] = [backing.allocate(program.length * size), device.createStream()];
      /** What the host's side of each copy was when it was given back, and how often that was. */
      const given: Uint8Array[][] = program.map(() => []);
      const targets = program.map(({ direction, by, stream: at, wait }, i) => {
        const stream = streams[at];
        assert(stream !== undefined);
        const bytes = keeper.bytes().subarray(i * size, (i + 1) * size).fill(direction === "up" ? i + 1 : 0);
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
        const target = device.memory.allocate(size, { stream });
        target.fill(100 + i, { stream });
        if (direction === "up") copy(by, target, host, stream);
        else copy(by, host, target, stream);
        host.close();
        if (wait) stream.synchronize();
        return target;
      });
      for (const one of streams) one.synchronize();
      reclaim();
      program.forEach(({ direction }, i) => {
        const due = direction === "up" ? i + 1 : 100 + i;
        assertEquals(given[i]?.map((bytes) => [...new Set(bytes)]), [[due]], `the host's side of copy ${i}`);
        const seen = new Uint8Array(size);
        const target = targets[i];
        assert(target !== undefined);
        up.wait(target.stream ?? up);
        target.copyTo(seen, { stream: up });
        up.synchronize();
        assertEquals([...new Set(seen)], [due], `the device's side of copy ${i}`);
        target.close();
      });
      for (const one of [...streams, up]) one.close();
      cuda.close();
      reclaim();
      assertEquals(SimulatedDriver.of(cuda.driver)?.live.events, 0);
    }),
    300,
  );
});

// cuda.core and torch leave it to their users; an array that only a copy knows would be collected under it.
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
  assert(left() <= arrays.length / 2, `${left()} of ${arrays.length} are still there`); // a stack may still show a few
});

test("copies that nobody waits for keep little memory: what is over is found by those that come after it", () => {
  using cuda = Cuda.simulate({ schedule: "latest" });
  const simulated = SimulatedDriver.of(cuda.driver);
  assert(simulated !== null);
  const device = cuda.device(0);
  using stream = device.createStream();
  for (const [bytes, most] of [[64, 128], [2 ** 20, 24]] as const) {
    using target = device.memory.allocate(bytes, { stream });
    using host = new HostMemoryResource().allocate(bytes);
    let highest = 0;
    for (let i = 0; i < 1000; i++) {
      if (i % 8 === 0) stream.synchronize(); // now all is over, but nobody has looked
      target.copyFrom(host, { stream });
      highest = Math.max(highest, simulated.live.events); // one for each copy that is looked after
    }
    assert(highest > 16 && highest <= most, `${highest} copies of ${bytes} bytes were kept`);
    stream.synchronize();
    reclaim();
    assertEquals(simulated.live.events, 0);
  }
});

test("memory that a copy has used can be given back with its last use over: closing it looks", () => {
  using cuda = Cuda.simulate({ schedule: "latest" });
  const device = cuda.device(0);
  using stream = device.createStream();
  using target = device.memory.allocate(size, { stream });
  using backing = new HostMemoryResource().allocate(size);
  let frees = 0;
  const free = () => void frees++;
  const host = MemoryBuffer.fromAllocation({ ptr: backing.ptr, size, device: null, stream: null, free });
  target.copyFrom(host, { stream });
  stream.synchronize();
  assertEquals(frees, 0);
  host.close();
  assertEquals(frees, 1);
});

test("where many copies are under way, closing what one of them uses asks after none: others will", () => {
  using cuda = Cuda.simulate({ schedule: "latest" });
  const simulated = SimulatedDriver.of(cuda.driver);
  assert(simulated !== null);
  using stream = cuda.device(0).createStream();
  using target = cuda.device(0).memory.allocate(size, { stream });
  const hosts = Array.from({ length: 100 }, () => new HostMemoryResource().allocate(size));
  for (const host of hosts) target.copyFrom(host, { stream });
  const asked = simulated.calls("cuEventQuery");
  for (const host of hosts) host.close();
  assertEquals(simulated.calls("cuEventQuery"), asked);
  stream.synchronize();
  reclaim();
  assertEquals(simulated.live.events, 0);
});
