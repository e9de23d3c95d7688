/** Host consumers have no stream that could wait: the memory that they get is ready. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import {
  ArrowArray,
  arrowField,
  Cuda,
  ExchangeError,
  ManagedMemoryResource,
  PinnedMemoryResource,
  StridedMemoryView,
} from "../../mod.ts";
import { ffiPort } from "../../src/ffi/port.ts";
import { readRawArray } from "../support/raw_arrow.ts";
import { readRaw } from "../support/raw_dlpack.ts";

interface Handed {
  readonly data: bigint;
  close(): void;
}

/** How host memory is exported to a consumer that reads it at once. */
const ways: Readonly<Record<string, (view: StridedMemoryView) => Handed>> = {
  dlpack: (view) => tensorOf(view, {}),
  "a copy by dlpack": (view) => tensorOf(view, { copy: true }),
  "the array interface": (view) => ({ data: view.__array_interface__?.data[0] ?? 0n, close: () => {} }),
  arrow(view) {
    const exported = view.__arrow_c_array__();
    return { data: readRawArray(exported.ptr).buffers[1] ?? 0n, close: () => exported.close() };
  },
};

function tensorOf(view: StridedMemoryView, options: Parameters<StridedMemoryView["toDlpack"]>[0]): Handed {
  const tensor = view.toDlpack(options);
  return { data: readRaw(tensor.ptr, "versioned").data, close: () => tensor.close() };
}

/** What a consumer sees of memory that a stream is about to fill with twos. */
function seen(hand: (view: StridedMemoryView) => Handed, how: "home" | "default stream", kind: "pinned" | "managed") {
  using cuda = Cuda.simulate({ schedule: "latest" });
  const device = cuda.device(0);
  using home = device.createStream({ nonBlocking: how === "home" });
  const resource = kind === "pinned" ? new PinnedMemoryResource(device) : new ManagedMemoryResource(device);
  using buffer = resource.allocate(8, { stream: home });
  buffer.bytes().fill(1);
  buffer.fill(2, { stream: how === "home" ? home : device.defaultStream });
  const view = StridedMemoryView.fromBuffer(buffer, { shape: [8], dtype: "uint8" });
  const handed = hand(view);
  const bytes = Array.from(new Uint8Array(ffiPort().memory(handed.data, 8)));
  handed.close();
  return bytes;
}

for (const [name, hand] of Object.entries(ways)) {
  test(`a consumer on the host sees in page-locked memory what streams had to write there: ${name}`, () => {
    // A blocking home stream is ordered after the default stream, whose work it does not contain.
    for (const how of ["home", "default stream"] as const) {
      assertEquals(seen(hand, how, "pinned"), new Array(8).fill(2), how);
      if (name === "arrow") assertEquals(seen(hand, how, "managed"), new Array(8).fill(2), how);
    }
  });
}

test("the host copies and reads page-locked memory after what streams have to write there", async () => {
  using cuda = Cuda.simulate({ schedule: "latest" });
  const device = cuda.device(0);
  const streams = Array.from({ length: 3 }, () => device.createStream());
  const [home = device.defaultStream, other = home, third = home] = streams;
  const pinned = new PinnedMemoryResource(device);
  using source = pinned.allocate(8, { stream: home });
  using target = pinned.allocate(8, { stream: other });
  const [from, to] = [source, target].map((buffer) =>
    StridedMemoryView.fromBuffer(buffer, { shape: [8], dtype: "uint8" })
  );
  assert(from !== undefined && to !== undefined);
  source.fill(2, { stream: home });
  target.fill(1, { stream: other });
  to.copyFrom(from);
  assertEquals([...target.bytes()], new Array(8).fill(2), "after both homes");
  third.wait(home);
  source.fill(3, { stream: third });
  to.copyFrom(from, { stream: third });
  assertEquals([...target.bytes()], new Array(8).fill(3), "after the stream");
  target.fill(4, { stream: other });
  assertEquals(Array.from(await to.toTypedArray(), Number), new Array(8).fill(4));
  for (const stream of streams) stream.close();
});

test("page-locked memory is read as it is when its home stream's next work could begin, whatever is enqueued later", async () => {
  for (const how of ["home", "default stream"] as const) {
    using cuda = Cuda.simulate({ schedule: "latest" });
    const device = cuda.device(0);
    using home = device.createStream({ nonBlocking: how === "home" });
    using buffer = new PinnedMemoryResource(device).allocate(8, { stream: home });
    buffer.bytes().fill(1);
    buffer.fill(2, { stream: how === "home" ? home : device.defaultStream });
    const reading = StridedMemoryView.fromBuffer(buffer, { shape: [8], dtype: "uint8" }).toTypedArray();
    buffer.fill(3, { stream: home });
    assertEquals(Array.from(await reading, Number), new Array(8).fill(2), how);
  }
});

test("the host does not wait for a host consumer that requests no order", () => {
  for (const stream of [null, -1n]) {
    assertEquals(seen((view) => tensorOf(view, { stream }), "home", "pinned"), new Array(8).fill(1));
  }
});

test("memory of a device is not exported to a consumer on the host", () => {
  using cuda = Cuda.simulate();
  const device = cuda.device(0);
  using buffer = device.memory.allocate(8, { stream: device.defaultStream });
  const view = StridedMemoryView.fromBuffer(buffer, { shape: [8], dtype: "uint8" });
  assertEquals(view.__array_interface__, undefined);
  assertThrows(() => view.__arrow_c_array__(), ExchangeError, "copy to host memory first");
  const array = new ArrowArray({ field: arrowField("C"), length: 8, nullCount: 0, buffers: [null, view] });
  assertThrows(() => array.__arrow_c_array__(), ExchangeError, "copy to host memory first");
});
