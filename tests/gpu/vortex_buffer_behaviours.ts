/**
 * Vortex buffers on a device: handed over with the event after which they are written, used after it, and returned
 * after their users' work; on a GPU or a simulated one.
 *
 * @module
 */
import { assertEquals, assertThrows } from "@std/assert";
import { ArrowArray, ExchangeError } from "../../mod.ts";
import { NativeArena } from "../../src/ffi/arena.ts";
import { littleEndian } from "../../src/ffi/mod.ts";
import { pollAll } from "../../src/order/exports.ts";
import { fromVortexMetadata } from "../../src/vortex/mod.ts";
import type { Behaviour, Root } from "../support/cuda_root.ts";
import { check, fc } from "../support/property.ts";
import { CountingRelease, descriptor, numbers } from "../support/vortex/descriptors.ts";

/** A descriptor's kind, if its bytes are on a device. */
export const DEVICE = 1;

/** The address of a struct that holds only an event's handle. */
export function pointerTo(arena: NativeArena, handle: bigint): bigint {
  const memory = arena.bytes(8);
  new DataView(memory.bytes.buffer, memory.bytes.byteOffset).setBigUint64(0, handle, littleEndian);
  return memory.address;
}

const cases = fc.record({ values: fc.array(fc.nat(), { minLength: 1, maxLength: 20 }), onDevice: fc.boolean() });

/** One buffer: written on a stream, handed over, read on another one or on the host, and returned. */
function readAfterItsEvent(root: Root): void {
  check(
    fc.property(cases, ({ values, onDevice }) => {
      using arena = new NativeArena();
      using cuda = root.open();
      const device = cuda.device(0);
      using producer = device.createStream();
      using consumer = device.createStream();
      const before = device.memory.allocate(root.bytes, { stream: producer });
      before.fill(1, { stream: producer }); // keeps the producer busy
      const memory = device.memory.allocate(4 * values.length, { stream: producer });
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
        const imported = ArrowArray.from(array.toArrowDevice({ stream: consumer }), { stream: consumer });
        const words = new Uint32Array(values.length);
        imported.values.copyTo(words, { stream: consumer });
        consumer.synchronize();
        assertEquals([...words], values);
        imported.close();
        pollAll();
      } else {
        assertEquals(array.toArrow().toArray(), values);
      }
      array.close();
      array.close();
      assertEquals(release.count, 1);
      before.close();
    }),
    40,
  );
}

/** Malformed descriptors. */
function refused(root: Root): void {
  using arena = new NativeArena();
  using cuda = root.open();
  using stream = cuda.device(0).createStream();
  const memory = cuda.device(0).memory.allocate(8, { stream });
  const onDevice = { kind: DEVICE, ptr: memory.ptr, device_id: 0 };
  const wrong = [
    [onDevice, {}, "it is on device 0: pass { stream } to say where it will be used"],
    [{ ...onDevice, device_id: 1 }, { stream }, "it is on device 1, but the stream is on device 0"],
    [{ ...onDevice, sync_event: pointerTo(arena, 0n) }, { stream }, "its sync_event points to a NULL event"],
  ] as const;
  for (const [change, options, text] of wrong) {
    const release = new CountingRelease();
    const address = descriptor(arena, release, Uint32Array.of(1, 2), change);
    assertThrows(() => fromVortexMetadata(numbers(2, [{ descriptor: address }]), options), ExchangeError, text);
    assertEquals(release.count, 0, text);
  }
  memory.close();
}

/** Behaviours that must hold on every root. */
export const vortexBufferBehaviours: readonly Behaviour[] = [
  {
    name: "a buffer of a device is read after its event, by whatever stream, and returned after its readers",
    devices: 1,
    run: readAfterItsEvent,
  },
  {
    name: "a buffer that does not say where it is, or is elsewhere, is refused, and stays its producer's",
    devices: 1,
    run: refused,
  },
];
