/**
 * Device buffers that are handed over with an event that completes when they are written: used after it, and returned
 * once no work of ours uses them any more, in whatever order the device works.
 */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { Cuda, MemoryBuffer } from "../../../mod.ts";
import { NativeArena } from "../../../src/ffi/arena.ts";
import { fromVortexMetadata } from "../../../src/vortex/mod.ts";
import { DEVICE, vortexBufferBehaviours } from "../../gpu/vortex_buffer_behaviours.ts";
import type { Root } from "../../support/cuda_root.ts";
import { CountingRelease, descriptor, numbers } from "../../support/vortex/descriptors.ts";

let seed = 0;

/** A simulated device that works as late as allowed, or in any allowed order. */
const simulatedRoot: Root = {
  open: () => Cuda.simulate({ seed, schedule: seed++ % 2 === 0 ? "latest" : "random", freesWait: false, check: true }),
  bytes: 64,
  isSlow: false,
};

for (const { name, run } of vortexBufferBehaviours) test(name, () => run(simulatedRoot));

test("a buffer of a device without an event is used at once, and one without bytes is returned at once", () => {
  using arena = new NativeArena();
  using cuda = Cuda.simulate();
  using stream = cuda.device(0).createStream();
  const memory = cuda.device(0).memory.allocate(8, { stream });
  memory.copyFrom(Uint32Array.of(3, 4), { stream });
  stream.synchronize();
  const release = new CountingRelease();
  const onDevice = { kind: DEVICE, ptr: memory.ptr, device_id: 0 };
  const tree = numbers(2, [{ descriptor: descriptor(arena, release, new Uint32Array(2), onDevice) }]);
  using array = fromVortexMetadata(tree, { stream });
  assertEquals(array.toArrow().toArray(), [3, 4]);
  const empty = new CountingRelease();
  fromVortexMetadata(numbers(0, [{ descriptor: descriptor(arena, empty, new Uint32Array(0), onDevice) }]), { stream });
  assertEquals(empty.count, 1);
  memory.close();
});

test("a buffer is returned after what a program itself has enqueued on it", () => {
  using arena = new NativeArena();
  using cuda = Cuda.simulate({ schedule: "latest" });
  using stream = cuda.device(0).createStream();
  using produced = cuda.device(0).memory.allocate(8, { stream });
  using into = cuda.device(0).memory.allocate(8, { stream });
  stream.synchronize();
  const done: boolean[] = [];
  const release = new CountingRelease(() => done.push(stream.isDone));
  const place = { kind: DEVICE, ptr: produced.ptr, device_id: 0 };
  const tree = numbers(2, [{ descriptor: descriptor(arena, release, new Uint32Array(2), place) }]);
  const array = fromVortexMetadata(tree, { stream });
  const [buffer] = array.toMetadata()[4] as MemoryBuffer[]; // the buffers, not only their count
  buffer?.copyTo(into, { stream });
  assertEquals(stream.isDone, false);
  array.close();
  assertEquals(done, [true], "it was returned during a copy");
});

test("memory of this package, on the host or a device, is a buffer that stays its owner's", () => {
  using cuda = Cuda.simulate({ schedule: "latest" });
  using stream = cuda.device(0).createStream();
  const onDevice = cuda.device(0).memory.allocate(12, { stream });
  onDevice.copyFrom(Uint32Array.of(1, 2, 3), { stream });
  const arena = new NativeArena();
  const host = arena.bytes(12);
  new Uint32Array(host.bytes.buffer, host.bytes.byteOffset, 3).set([1, 2, 3]);
  for (const memory of [onDevice, MemoryBuffer.fromPointer(host.address, 12, { owner: arena })]) {
    using array = fromVortexMetadata(numbers(3, [memory]));
    assertEquals(array.toArrow().toArray(), [1, 2, 3]);
    array.close();
    assertEquals(memory.size, 12);
    memory.close();
  }
  arena.close();
});
