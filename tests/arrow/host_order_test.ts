/**
 * Arrow arrays over memory that streams write and the host can read: the host waits before it reads. Importing by
 * address gives what was exported, or an error.
 */
import { assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { liveExports } from "../../src/order/reclaim.ts";
import {
  ArrowArray,
  arrowField,
  ArrowStream,
  Cuda,
  ExchangeError,
  ManagedMemoryResource,
  PinnedMemoryResource,
  StridedMemoryView,
} from "../../mod.ts";

test("elements, nulls and offsets are read after they are written, the first time and every later one", () => {
  for (const Resource of [PinnedMemoryResource, ManagedMemoryResource]) {
    using cuda = Cuda.simulate({ schedule: "latest" });
    const device = cuda.device(0);
    for (const nonBlocking of [true, false]) {
      using stream = device.createStream({ nonBlocking });
      const made = () => {
        const buffer = new Resource(device).allocate(16, { stream });
        buffer.bytes().fill(255);
        return buffer;
      };
      const [elements, bits] = [made(), made()];
      const view = (buffer: typeof elements) => StridedMemoryView.fromBuffer(buffer, { shape: [16], dtype: "uint8" });
      const array = new ArrowArray({ field: arrowField("C"), length: 16, buffers: [view(bits), view(elements)] });
      elements.fill(7, { stream });
      assertEquals(array.get(0), 7);
      elements.fill(8, { stream });
      assertEquals(array.get(15), 8);
      // Without nulls only the elements are read.
      const plain = new ArrowArray({ field: arrowField("C"), length: 16, buffers: [null, view(elements)] });
      assertEquals(plain.get(0), 8);
      elements.fill(6, { stream });
      assertEquals(plain.get(0), 6);
      bits.fill(0b11111101, { stream });
      assertEquals([array.isNull(1), array.isNull(0), array.get(9)], [true, false, null]);
      elements.fill(9, { stream });
      assertEquals(array.toArray().filter((value) => value === 9).length, 14);
      bits.fill(1, { stream });
      assertEquals(array.nullCount, 14);
      const offsets = new Resource(device).allocate(16, { stream });
      offsets.bytes().fill(255);
      offsets.fill(0, { stream, width: 4 });
      new ArrowArray({ field: arrowField("u"), length: 3, buffers: [null, view(offsets), view(elements)] });
      for (const buffer of [elements, bits, offsets]) buffer.close();
      for (const closed of [array, plain]) {
        assertThrows(() => closed.get(0), TypeError, "a closed MemoryBuffer of 16 bytes");
      }
    }
  }
});

test("slices of structs, also empty ones, are exported without reading what streams have yet to write", () => {
  using cuda = Cuda.simulate({ schedule: "latest", check: true });
  const device = cuda.device(0);
  using stream = device.createStream();
  using other = device.createStream();
  const pinned = new PinnedMemoryResource(device);
  const bytesOf = (array: Int32Array | Uint8Array) => {
    const buffer = pinned.allocate(array.byteLength, { stream });
    buffer.bytes().set(new Uint8Array(array.buffer, array.byteOffset, array.byteLength));
    return buffer;
  };
  const held = [bytesOf(Int32Array.of(0, 1, 2, 3, 4)), bytesOf(new TextEncoder().encode("abcd"))];
  const views = held.map((one) => StridedMemoryView.fromBuffer(one, { shape: [one.size], dtype: "uint8" }));
  const texts = new ArrowArray({ field: arrowField("u", { name: "x" }), length: 4, buffers: [null, ...views] });
  const field = arrowField({ kind: "struct", children: [texts.field] });
  const part = new ArrowArray({ field, length: 4, buffers: [null], children: [texts] }).sliced(1, 3);
  held[1]?.fill(120, { stream }); // "x"
  part.toArrowDevice().close();
  assertEquals(held[1]?.bytes()[0], 97, "the stream has not been waited for");
  using graph = other.capture(() => part.toArrowDevice().close());
  assertEquals(graph.nodes.length, 0);
  const taken = ArrowArray.from(part, { stream });
  assertEquals(taken.toArray(), [{ x: "x" }, { x: "x" }]);
  taken.close();
  const empty = new ArrowArray({ field: texts.field, length: 0, buffers: [null, null, null] });
  const nothing = new ArrowArray({ field, length: 0, offset: 3, buffers: [null], children: [empty] });
  const back = ArrowArray.from(nothing.toArrowDevice());
  assertEquals([back.length, back.children[0]?.length], [0, 0]);
  for (const one of [back, ...held]) one.close();
});

test("taken structs are imported: device memory in place, pinned memory after its event", () => {
  using cuda = Cuda.simulate({ schedule: "latest", check: true });
  const device = cuda.device(0);
  using stream = device.createStream();
  using buffer = device.memory.allocate(16, { stream });
  const view = StridedMemoryView.fromBuffer(buffer, { shape: [4], dtype: "int32" });
  const array = ArrowArray.from(view.toArrowDevice().take(), { stream });
  assertEquals([array.device === device, array.buffers[1]?.ptr], [true, buffer.ptr]);
  array.close();
  using pinned = new PinnedMemoryResource(device).allocate(16, { stream });
  pinned.bytes().fill(0);
  pinned.fill(7, { stream });
  const bytes = StridedMemoryView.fromBuffer(pinned, { shape: [16], dtype: "uint8" });
  const back = StridedMemoryView.fromArrowDevice(bytes.toArrowDevice().take(), { device });
  assertEquals([...back.buffer.bytes()].every((byte) => byte === 7), true);
  back.close();
  assertEquals(liveExports(), 0);
});

test("invalid addresses are refused before anything is read", () => {
  for (const address of [-8n, 1n << 64n, 1n << 70n, -(1n << 80n)]) {
    const attempts = [
      () => StridedMemoryView.fromDlpack({ managedTensorVersioned: address }),
      () => StridedMemoryView.fromDlpack({ managedTensor: address }),
      () => ArrowArray.from({ schema: address, array: address }),
      () => ArrowArray.from({ schema: address, deviceArray: address }),
      () => ArrowStream.from({ stream: address }),
      () => ArrowStream.from({ deviceStream: address }),
    ];
    for (const attempt of attempts) assertThrows(attempt, ExchangeError, "64 bits", `${attempt} with ${address}`);
  }
});

test("unknown options are refused by name, and null stands for Python's None", () => {
  using cuda = Cuda.simulate({ devices: 2 });
  using other = Cuda.simulate();
  const [device, next] = [cuda.device(0), cuda.device(1)];
  using stream = device.createStream();
  using buffer = device.memory.allocate(8, { stream });
  const view = StridedMemoryView.fromBuffer(buffer, { shape: [8], dtype: "uint8" });
  view.toDlpack({ maxVersion: null, copy: null, dlDevice: null, stream: null }).close();
  const wrong = (value: unknown) => value as never;
  const refused: [message: string, attempt: () => unknown][] = [
    ["version 1 of DLPack: expected [major, minor]", () => view.toDlpack({ maxVersion: wrong(1) })],
    ["copy: 1: expected true, false or null", () => view.toDlpack({ copy: wrong(1) })],
    ["device 5: expected [type, number]", () => view.toDlpack({ dlDevice: wrong(5) })],
    ["Cannot lend to a stream: expected a CudaStream, got undefined", () => view.borrow(wrong(undefined))],
    ["Cannot lend to a stream: expected a CudaStream, got 1n", () => view.borrow(wrong(1n))],
    ["expected a CudaStream, got 5", () => view.copyFrom(new Uint8Array(8), { stream: wrong(5) })],
    ["expected a CudaStream, got 5", () => view.explainCopyFrom(new Uint8Array(8), { stream: wrong(5) })],
    ["of another Cuda", () => view.copyFrom(new Uint8Array(8), { stream: other.device(0).defaultStream })],
    ["of another Cuda", () => view.explainCopyFrom(new Uint8Array(8), { stream: other.device(0).defaultStream })],
    ["memory of device 0 as memory of device 1", () => StridedMemoryView.from(view, { device: next })],
  ];
  for (const [message, attempt] of refused) assertThrows(attempt, TypeError, message, `${attempt}`);
  const theirs = other.device(0).memory.allocate(8);
  const foreign = StridedMemoryView.fromBuffer(theirs, { shape: [8], dtype: "uint8" });
  for (const attempt of [() => view.copyFrom(foreign), () => view.explainCopyFrom(foreign)]) {
    assertThrows(attempt, TypeError, "Cannot copy a view of another Cuda");
  }
  theirs.close();
  assertEquals(liveExports(), 0);
});
