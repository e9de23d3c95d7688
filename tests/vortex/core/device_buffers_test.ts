/**
 * Buffers of devices that are handed over with the event after which they are written: used after it, returned when
 * nothing of ours uses them any more, whatever the order in which the device does its work.
 */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { Cuda, ExchangeError, MemoryBuffer } from "../../../mod.ts";
import { NativeArena } from "../../../src/ffi/arena.ts";
import { littleEndian } from "../../../src/ffi/mod.ts";
import { pollAll } from "../../../src/order/exports.ts";
import { fromVortexMetadata } from "../../../src/vortex/mod.ts";
import { check, fc } from "../../support/property.ts";
import { CountingRelease, descriptor, numbers } from "../../support/vortex/descriptors.ts";

const DEVICE = 1;

/** The address of a struct that has nothing but an event's handle. */
function pointerTo(arena: NativeArena, handle: bigint): bigint {
  const memory = arena.bytes(8);
  new DataView(memory.bytes.buffer, memory.bytes.byteOffset).setBigUint64(0, handle, littleEndian);
  return memory.address;
}

const cases = fc.record({
  values: fc.array(fc.nat(), { minLength: 1, maxLength: 20 }),
  seed: fc.nat(),
  schedule: fc.constantFrom("latest" as const, "random" as const),
  onDevice: fc.boolean(),
});

test("a buffer of a device is read after its event, by whatever stream, and returned after what reads it", () => {
  check(
    fc.property(cases, ({ values, seed, schedule, onDevice }) => {
      using arena = new NativeArena();
      using cuda = Cuda.simulate({ seed, schedule, freesWait: false, check: true });
      const device = cuda.device(0);
      using producer = device.createStream();
      using consumer = device.createStream();
      const bytes = 4 * values.length;
      const memory = device.memory.allocate(bytes, { stream: producer });
      memory.copyFrom(Uint32Array.from(values), { stream: producer });
      using event = producer.record();
      const release = new CountingRelease(() => memory.close());
      const address = descriptor(arena, release, new Uint32Array(values.length), {
        kind: DEVICE,
        ptr: memory.ptr,
        device_id: 0,
        sync_event: pointerTo(arena, event.handle),
      });
      const array = fromVortexMetadata(numbers(values.length, [{ descriptor: address }]), { stream: consumer });
      assertEquals(release.count, 0);
      if (onDevice) {
        const exported = array.toArrowDevice({ stream: consumer });
        exported.close();
        pollAll();
      } else {
        assertEquals(array.toArrow().toArray(), values);
      }
      array.close();
      array.close();
      assertEquals(release.count, 1);
    }),
    60,
  );
});

test("a buffer of a device that does not say what it should, or another device, is refused, and stays its producer's", () => {
  using arena = new NativeArena();
  using cuda = Cuda.simulate({ devices: 2 });
  const [stream, other] = cuda.devices.map((device) => device.createStream());
  assert(stream !== undefined && other !== undefined);
  const memory = cuda.device(0).memory.allocate(8, { stream });
  const onDevice = { kind: DEVICE, ptr: memory.ptr, device_id: 0 };
  const refused = [
    [onDevice, {}, "it is on device 0: pass { stream } to say where it will be used"],
    [onDevice, { stream: other }, "it is on device 0, and the stream on device 1"],
    [{ ...onDevice, sync_event: pointerTo(arena, 0n) }, { stream }, "a pointer to an event that is NULL"],
  ] as const;
  for (const [change, options, text] of refused) {
    const release = new CountingRelease();
    const address = descriptor(arena, release, Uint32Array.of(1, 2), change);
    assertThrows(() => fromVortexMetadata(numbers(2, [{ descriptor: address }]), options), ExchangeError, text);
    assertEquals(release.count, 0, text);
  }
  memory.close();
});

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
