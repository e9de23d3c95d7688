/**
 * Arrow arrays that are copied to a device and back: the values stay the same, and the memory is freed.
 */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { ArrowArray, arrowField, Cuda, ExchangeError, PinnedMemoryResource, StridedMemoryView } from "../../mod.ts";
import { NativeArena } from "../../src/ffi/arena.ts";
import { encode, models, quirks, type Value, valueOf } from "../support/arrow_model.ts";
import { check, fc } from "../support/property.ts";
import { CountingRelease, RawWriter } from "../support/raw_arrow.ts";

/** A type and its values. */
const columns = models.chain((model) =>
  fc.record({ model: fc.constant(model), values: fc.array(valueOf(model), { maxLength: 6 }), quirk: quirks })
);

/** Whether the last buffer has the sizes of others. */
function hasSizes(type: ArrowArray["type"]): boolean {
  return (type.kind === "utf8" || type.kind === "binary") && type.offsets === "view";
}

/** Whether each buffer of an array and everything in it is on a device; null for the sizes of data buffers. */
function places({ type, buffers, children, dictionary }: ArrowArray): (boolean | null)[] {
  const own = buffers.flatMap((view, i) => {
    if (view === null) return [];
    return [hasSizes(type) && i === buffers.length - 1 && view.device === null ? null : view.device !== null];
  });
  return [...own, ...[...children, ...dictionary === null ? [] : [dictionary]].flatMap(places)];
}

test("an array of any type has the same values on a device and back, and its copies are freed with it", () => {
  using release = new CountingRelease();
  let moved = 0;
  check(
    fc.property(columns, fc.nat(6), fc.boolean(), ({ model, values, quirk }, start, isStream) => {
      using cuda = Cuda.simulate({ schedule: "latest", check: true }); // whose close reports what is not freed
      const device = cuda.device(0);
      using stream = device.createStream();
      using arena = new NativeArena();
      const writer = new RawWriter(arena, release);
      using host = ArrowArray.from({ schema: writer.schema(model), array: writer.array(encode(model, values, quirk)) });
      const part = host.sliced(Math.min(start, values.length));
      const before = places(part);
      using there = part.to(device, isStream ? { stream } : {});
      host.close(); // the copies need it no longer
      const moves = before.map((is) => is === null ? null : true);
      assertEquals(places(there), moves);
      moved += moves.length;
      using back = there.to("host");
      assertEquals(back.toArray() as Value[], values.slice(start));
      assertEquals([back.field, back.offset], [part.field, part.offset]);
      using shared = back.to("host");
      const sizes = hasSizes(back.type) ? back.buffers.length - 1 : -1;
      shared.buffers.forEach((one, i) => assert(i === sizes || one?.buffer === back.buffers[i]?.buffer, "not copied"));
      if (before.length > 0) assertThrows(() => host.to("host"), TypeError, "closed");
    }),
    600,
  );
  assert(moved > 500, `${moved} buffers were on a device`);
});

// Consumers read them on the host wherever the array is: ours, too, which ended the process.
test("sizes of an array of views that are on a device are refused", () => {
  using cuda = Cuda.simulate({ check: true });
  const device = cuda.device(0);
  const words = (numbers: readonly bigint[]) =>
    StridedMemoryView.fromTypedArray(BigInt64Array.from(numbers)).view("uint8");
  const [views, data, sizes] = [words([0n, 0n]), words([0n]), words([8n])];
  const parts = { field: arrowField("vu"), length: 1 };
  using there = new ArrowArray({ ...parts, buffers: [null, views, data, sizes] }).to(device);
  const onDevice = sizes.to(device);
  const wrong = () => new ArrowArray({ ...parts, buffers: [...there.buffers.slice(0, -1), onDevice] });
  assertThrows(wrong, ExchangeError, "buffer 3, the sizes of its data, is in device memory");
  onDevice.close();
});

test("an array that cannot be copied leaves nothing allocated, and the error for device memory names the way", () => {
  using cuda = Cuda.simulate({ check: true });
  const device = cuda.device(0);
  using pinned = new PinnedMemoryResource(device).allocate(8);
  using gone = new PinnedMemoryResource(device).allocate(8);
  pinned.fill(0); // the offsets of no text
  const bytesOf = (buffer: typeof pinned) => StridedMemoryView.fromBuffer(buffer, { shape: [8], dtype: "uint8" });
  const text = new ArrowArray({
    field: arrowField("u"),
    length: 1,
    buffers: [null, bytesOf(pinned), bytesOf(gone)],
  });
  gone.close();
  assertThrows(() => text.to(device), TypeError, "closed");
  // @ts-expect-error an untyped program
  assertThrows(() => text.to(0), TypeError, "use cuda.device(0)");
  const view = StridedMemoryView.fromTypedArray(Int32Array.of(7, 8));
  const numbers = new ArrowArray({ field: arrowField("i"), length: 2, buffers: [null, view.view("uint8")] });
  using there = numbers.to(device);
  assertThrows(() => there.get(0), TypeError, 'to("host") of an array');
  using back = there.to("host");
  assertEquals(`${back}`, "[7, 8]");
});
