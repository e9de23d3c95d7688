/**
 * Copies on streams of a device other than the memory's, by default or by request: a view's copy works,
 * whichever devices have access to whose memory.
 */
import { assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { CUresult } from "../../bindings/cuda_types.ts";
import { SimulatedDriver } from "../../src/public/sim.ts";
import {
  Cuda,
  CudaError,
  DeviceMemoryResource,
  HostMemoryResource,
  ManagedMemoryResource,
  type MemoryBuffer,
  PinnedMemoryResource,
  slice,
  StridedMemoryView,
} from "../../mod.ts";
import { check, fc } from "../support/property.ts";

const kinds = ["host", "pinned", "managed", "device", "device", "device"] as const;
const side = fc.record({
  kind: fc.constantFrom(...kinds),
  device: fc.nat(2),
  home: fc.option(fc.nat(2)),
  /** Whether every device may use the memory. */
  isOpen: fc.boolean(),
  part: fc.constantFrom("all", "turned", "piece"),
});

/** 64 numbers in memory of a kind, and the view of the part that is copied, always 8 x 8 or 4 x 6. */
function make(cuda: Cuda, { kind, device, home, isOpen, part }: typeof side extends fc.Arbitrary<infer T> ? T : never) {
  const owner = cuda.device(device);
  const stream = home === null ? owner.defaultStream : cuda.device(home).createStream();
  const memory = (): MemoryBuffer => {
    switch (kind) {
      case "host":
        return new HostMemoryResource().allocate(64);
      case "pinned":
        return new PinnedMemoryResource(owner).allocate(64, { stream });
      case "managed":
        return new ManagedMemoryResource(owner).allocate(64, { stream });
      case "device": {
        using pool = new DeviceMemoryResource(owner, {});
        if (isOpen) pool.peerAccessibleBy = cuda.devices;
        const own = owner.createStream();
        const buffer = pool.allocate(64, { stream: own });
        buffer.setHomeStream(stream); // of any device
        return buffer;
      }
    }
  };
  const buffer = memory();
  const whole = StridedMemoryView.fromBuffer(buffer, { shape: [8, 8], dtype: "uint8" });
  const seen = part === "turned" ? whole.permuted([1, 0]) : whole;
  return { buffer, whole, view: (small: boolean) => small ? seen.sliced(slice(1, 5), slice(2, 8)) : seen, part };
}

test("whatever the stream, the elements arrive at their places, and nothing else changes", () => {
  const streams = fc.option(fc.nat(2), { freq: 2 });
  const schedules = fc.constantFrom("latest", "random", "round-robin");
  check(
    fc.property(side, side, streams, schedules, fc.nat(), fc.boolean(), (from, to, on, schedule, seed, hasPeers) => {
      const freesWait = seed % 2 === 1;
      const cuda = Cuda.simulate({ devices: 3, schedule, seed, freesWait, check: true, canAccessPeer: () => hasPeers });
      const opened = (one: typeof from) => ({ ...one, isOpen: one.isOpen && hasPeers });
      const [source, target] = [make(cuda, opened(from)), make(cuda, opened(to))];
      const numbers = Uint8Array.from({ length: 64 }, (_, i) => i + 1);
      const grid = (bytes: Uint8Array) => StridedMemoryView.fromTypedArray(bytes, { shape: [8, 8] });
      source.whole.copyFrom(grid(numbers));
      target.whole.copyFrom(grid(new Uint8Array(64)));
      const isSmall = source.part === "piece" || target.part === "piece";
      const options = on === null ? {} : { stream: cuda.device(on).createStream() };
      target.view(isSmall).copyFrom(source.view(isSmall), options);
      // The same between ordinary memory of the host, which has no streams.
      const expected = new Uint8Array(64);
      const turned = (bytes: Uint8Array, part: string) =>
        part === "turned" ? grid(bytes).permuted([1, 0]) : grid(bytes);
      const cut = (view: StridedMemoryView) => isSmall ? view.sliced(slice(1, 5), slice(2, 8)) : view;
      cut(turned(expected, target.part)).copyFrom(cut(turned(numbers, source.part)));
      const found = new Uint8Array(64);
      const finish = () => cuda.devices.forEach((device) => device.synchronize());
      finish(); // ordinary memory is not stream-ordered
      grid(found).copyFrom(target.whole);
      finish();
      assertEquals([...found], [...expected]);
      assertEquals(cuda.reports, []);
      for (const { buffer } of [source, target]) buffer.close();
    }),
    50,
  );
});

test("reading back works if the home is on another device, and returns the bytes as of the request", async () => {
  const cuda = Cuda.simulate({ devices: 2, schedule: "latest", check: true, canAccessPeer: () => false });
  const [one, other] = [cuda.device(0), cuda.device(1)];
  for (const home of [one.createStream(), other.createStream()]) {
    for (const kind of ["device", "pinned", "managed"] as const) {
      const own = one.createStream();
      const resources = {
        device: one.memory,
        pinned: new PinnedMemoryResource(one),
        managed: new ManagedMemoryResource(one),
      };
      const buffer = resources[kind].allocate(16, { stream: own });
      buffer.fill(7, { stream: own });
      buffer.setHomeStream(home);
      const view = StridedMemoryView.fromBuffer(buffer, { shape: [4, 4], dtype: "uint8" });
      const reads = [view.toTypedArray(), view.permuted([1, 0]).toTypedArray()];
      own.wait(home);
      buffer.fill(9, { stream: own });
      home.wait(own);
      buffer.close(); // reads in flight retain the memory
      for (const read of await Promise.all(reads)) assertEquals([...read], new Array(16).fill(7), kind);
    }
  }
});

test("a refusal by the driver for another reason is not reported as missing access", () => {
  const cuda = Cuda.simulate({ devices: 2 });
  const device = cuda.device(0);
  using stream = device.createStream();
  using buffer = device.memory.allocate(16, { stream });
  SimulatedDriver.of(cuda.driver)?.failNth("cuMemsetD8Async", 1, CUresult.CUDA_ERROR_INVALID_VALUE);
  const error = assertThrows(() => buffer.fill(1, { stream }), CudaError);
  assertEquals([error.codeName, error.message.includes("access")], ["CUDA_ERROR_INVALID_VALUE", false]);
});
