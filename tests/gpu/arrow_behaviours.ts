/**
 * Arrow arrays in device memory, real or simulated: the same addresses, an event that the consumer waits for, a free
 * that waits for the consumer.
 *
 * @module
 */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { liveExports } from "../../src/order/reclaim.ts";
import {
  ArrowArray,
  arrowField,
  type CudaDevice,
  CudaEvent,
  type CudaStream,
  DeviceMemoryResource,
  ExchangeError,
  HostMemoryResource,
  ManagedMemoryResource,
  MemoryBuffer,
  PinnedMemoryResource,
  StridedMemoryView,
} from "../../mod.ts";
import { ffiPort } from "../../src/ffi/port.ts";
import type { Behaviour, Root } from "../support/cuda_root.ts";
import { enqueueCopy } from "../../src/device/mod.ts";

/** Device memory that holds these bytes once the stream has reached this point. */
function upload(device: CudaDevice, bytes: Uint8Array, stream: CudaStream): MemoryBuffer {
  const buffer = new DeviceMemoryResource(device).allocate(bytes.length, { stream });
  const staging = new HostMemoryResource().allocate(bytes.length);
  staging.bytes().set(bytes);
  buffer.copyFrom(staging, { stream });
  stream.synchronize();
  staging.close();
  return buffer;
}

function bytesOf(buffer: MemoryBuffer): StridedMemoryView {
  return StridedMemoryView.fromBuffer(buffer, { shape: [buffer.size], dtype: "uint8" });
}

/** `device_id`, `device_type` and `sync_event` of an ArrowDeviceArray, and the event itself. */
function placeOf(ptr: bigint): { id: bigint; type: number; slot: bigint; event: bigint } {
  const view = new DataView(ffiPort().memory(ptr, 128));
  const slot = view.getBigUint64(96, true);
  const event = slot === 0n ? 0n : new DataView(ffiPort().memory(slot, 8)).getBigUint64(0, true);
  return { id: view.getBigInt64(80, true), type: view.getInt32(88, true), slot, event };
}

/** The behaviours. */
export const arrowBehaviours: readonly Behaviour[] = [
  {
    name: "a device view is exported by Arrow with an event, and imported at the same address",
    devices: 1,
    async run(root) {
      using cuda = root.open();
      const device = cuda.device(0);
      using home = device.createStream();
      using other = device.createStream();
      using buffer = upload(device, new Uint8Array(Float32Array.from({ length: 24 }, (_, i) => i).buffer), home);
      const view = StridedMemoryView.fromBuffer(buffer, { shape: [4, 6], dtype: "float32" });
      using exported = view.toArrowDevice();
      const { id, type, slot, event } = placeOf(exported.ptr);
      assertEquals([id, type], [0n, 2]);
      assert(slot !== 0n && event !== 0n, `sync_event ${slot} must point to an event, got ${event}`);
      assertThrows(() => StridedMemoryView.fromArrowDevice(exported), ExchangeError, "pass { stream }");
      assertThrows(() => view.__arrow_c_array__(), ExchangeError, "host memory");
      using back = StridedMemoryView.fromArrowDevice(exported, { stream: other });
      assertEquals([back.ptr, back.shape, back.device, back.stream], [view.ptr, [4, 6], device, other]);
      assertEquals(Array.from(await back.toTypedArray(), Number), Array.from({ length: 24 }, (_, i) => i));
      back.close();
      assertEquals([exported.released, liveExports()], [true, 0]);
      using waited = StridedMemoryView.fromArrowDevice(view, { device });
      assertEquals([waited.ptr, waited.stream === device.defaultStream], [view.ptr, true]);
      waited.close();
      assertEquals(liveExports(), 0);
    },
  },

  {
    name: "text in device memory crosses by Arrow: the size of its data is read from the device",
    devices: 1,
    run(root) {
      using cuda = root.open();
      const device = cuda.device(0);
      using home = device.createStream();
      using other = device.createStream();
      using third = device.createStream();
      using offsets = upload(device, new Uint8Array(Int32Array.of(0, 3, 3, 8).buffer), home);
      using data = upload(device, new TextEncoder().encode("oneright"), other);
      using bitmap = upload(device, Uint8Array.of(0b101), home);
      const words = new ArrowArray({
        field: arrowField("u"),
        length: 3,
        nullCount: 1,
        buffers: [bytesOf(bitmap), bytesOf(offsets), bytesOf(data)],
      });
      assertEquals(words.device, device);
      assertThrows(() => words.get(0), TypeError, "device memory");
      using back = ArrowArray.from(words, { stream: third });
      assertEquals(back.buffers.map((buffer) => buffer?.ptr), [bitmap.ptr, offsets.ptr, data.ptr]);
      assertEquals(back.buffers.map((buffer) => buffer?.nbytes), [1, 16, 8]);
      assertEquals(back.nullCount, 1);
      assertThrows(() => StridedMemoryView.fromArrowDevice(words, { stream: third }), ExchangeError, "nulls");
      back.close();
      assertEquals(liveExports(), 0);
    },
  },

  {
    name: "Arrow arrays in pinned and managed memory say so, and the host reads them once they are there",
    devices: 1,
    run(root) {
      using cuda = root.open();
      const device = cuda.device(0);
      using stream = device.createStream();
      const cases = [[new PinnedMemoryResource(device), 3], [new ManagedMemoryResource(device), 13]] as const;
      for (const [memory, type] of cases) {
        using buffer = memory.allocate(16, { stream });
        using source = upload(device, new Uint8Array(Int32Array.of(1, 2, 3, 4).buffer), stream);
        buffer.copyFrom(source, { stream });
        const view = StridedMemoryView.fromBuffer(buffer, { shape: [4], dtype: "int32" });
        using exported = view.toArrowDevice();
        const place = placeOf(exported.ptr);
        assertEquals([place.type, place.id, place.event !== 0n], [type, 0n, true]);
        using there = ArrowArray.from(exported, { device }); // the host waits for the event
        assertEquals(there.toArray(), [1, 2, 3, 4]);
        there.close();
        using here = ArrowArray.from(view.__arrow_c_array__()); // the data interface has no event: the export waited
        assertEquals([here.toArray(), here.device], [[1, 2, 3, 4], null]);
        here.close();
        assertEquals(liveExports(), 0);
      }
    },
  },

  {
    name: "an Arrow array whose buffers have several home streams is ready when all of them have reached that point",
    devices: 1,
    run(root) {
      using cuda = root.open();
      const device = cuda.device(0);
      const memory = new DeviceMemoryResource(device);
      const size = root.bytes / 4;
      using slow = device.createStream();
      using ballast = memory.allocate(root.bytes, { stream: slow });
      using more = memory.allocate(root.bytes, { stream: slow });
      using source = filled(size, 1);
      using seen = filled(size, 0);
      for (const order of [[0, 1], [1, 0]]) {
        using quick = device.createStream();
        using consumer = device.createStream();
        using taken = memory.allocate(size, { stream: consumer });
        const buffers = [slow, quick].map((stream) => memory.allocate(size, { stream }));
        slow.wait(quick); // for the allocation there
        for (const buffer of buffers) buffer.fill(9, { stream: slow });
        device.synchronize();
        for (let i = 0; i < 10; i++) more.copyFrom(ballast, { stream: slow });
        const [first, second] = buffers;
        if (first === undefined || second === undefined) throw new Error("there are two buffers");
        first.copyFrom(source, { stream: slow });
        const children = order.map((at) =>
          new ArrowArray({
            field: arrowField("C", { nullable: false }),
            length: size,
            buffers: [null, bytesOf(buffers[at] ?? first)],
          })
        );
        const field = arrowField({ kind: "struct", children: children.map((child) => child.field) });
        const table = new ArrowArray({ field, length: size, buffers: [null], children });
        using back = ArrowArray.from(table, { stream: consumer });
        const bytes = back.child(order.indexOf(0)).buffers[1];
        if (bytes === null || bytes === undefined) throw new Error("the child has values");
        taken.copyFrom(bytes.buffer, { stream: consumer });
        taken.copyTo(seen, { stream: consumer });
        consumer.synchronize();
        assert(seen.bytes().every((byte) => byte === 1), "the consumer must wait for both streams");
        back.close();
        for (const buffer of buffers) buffer.close();
      }
    },
  },

  {
    name: "an Arrow import is returned when the stream that it was used on has done its work",
    devices: 1,
    run(root) {
      using cuda = root.open();
      const device = cuda.device(0);
      using home = device.createStream();
      using consumer = device.createStream();
      const memory = new DeviceMemoryResource(device);
      using owner = memory.allocate(root.bytes, { stream: home });
      using target = memory.allocate(root.bytes, { stream: consumer });
      device.synchronize();
      const done: boolean[] = [];
      // A producer that frees at once, without a stream.
      const free = () => void done.push(consumer.isDone);
      const buffer = MemoryBuffer.fromAllocation({ ptr: owner.ptr, size: root.bytes, device, stream: null, free });
      const exported = StridedMemoryView.fromBuffer(buffer, { shape: [root.bytes], dtype: "uint8" }).toArrowDevice();
      assertEquals(placeOf(exported.ptr).slot, 0n, "without a home stream there is nothing to wait for");
      buffer.close();
      using view = StridedMemoryView.fromArrowDevice(exported, { stream: consumer });
      for (let i = 0; i < 10; i++) target.copyFrom(view.buffer, { stream: consumer });
      view.close();
      assertEquals([exported.released, done], [true, [true]]);
    },
  },

  {
    name: "an Arrow array over two devices is refused",
    devices: 2,
    run(root) {
      using cuda = root.open();
      const [one, two] = [cuda.device(0), cuda.device(1)];
      using first = one.createStream();
      using second = two.createStream();
      using x = upload(one, new Uint8Array(8), first);
      using y = upload(two, new Uint8Array(8), second);
      const children = [x, y].map((buffer, i) =>
        new ArrowArray({
          field: arrowField("i", { name: `${i}`, nullable: false }),
          length: 2,
          buffers: [null, bytesOf(buffer)],
        })
      );
      const field = arrowField({ kind: "struct", children: children.map((child) => child.field) });
      const table = new ArrowArray({ field, length: 2, buffers: [null], children });
      assertThrows(() => table.toArrowDevice(), ExchangeError, "devices 2:0 and 2:1");
      const view = StridedMemoryView.fromBuffer(x, { shape: [2], dtype: "int32" });
      assertThrows(() => ArrowArray.from(view, { stream: second }), ExchangeError, "expected device 1");
      assertEquals(liveExports(), 0);
    },
  },

  {
    name: "an Arrow export outlives its buffer, its stream and its Cuda, and is freed in order all the same",
    devices: 1,
    run(root) {
      const exported = (() => {
        using cuda = root.open();
        const device = cuda.device(0);
        using stream = device.createStream();
        using buffer = new DeviceMemoryResource(device).allocate(2 ** 20, { stream });
        return StridedMemoryView.fromBuffer(buffer, { shape: [2 ** 20], dtype: "uint8" }).toArrowDevice();
      })();
      assertEquals(exported.released, false);
      exported.close();
      assertEquals(exported.released, true);
      assertEquals(liveExports(), 0);
    },
  },
];

function filled(size: number, value: number): MemoryBuffer {
  const buffer = new HostMemoryResource().allocate(size);
  buffer.bytes().fill(value);
  return buffer;
}

/**
 * A slow producer, a slow consumer, and a release and a free right behind them, after which the pool gives the same
 * memory to an allocation that is overwritten at once. Unless the consumer waits for the producer's event it reads the
 * previous contents; unless the free is ordered after the consumer's work it reads the later ones.
 *
 * @returns what the consumer has read, and whether the pool did reuse the memory
 */
export function consumeArrowWhileFreeing(
  root: Root,
  how: "imported" | "by a consumer in C" | "event ignored",
): { readonly right: boolean; readonly reused: boolean } {
  using cuda = root.open();
  const device = cuda.device(0);
  const size = root.bytes / 4;
  const memory = new DeviceMemoryResource(device);
  using home = device.createStream();
  using consumer = device.createStream();
  using ballast = memory.allocate(root.bytes * 4, { stream: home });
  using more = memory.allocate(root.bytes * 4, { stream: home });
  using taken = memory.allocate(size, { stream: consumer });
  using stale = filled(size, 9);
  using old = filled(size, 1);
  using fresh = filled(size, 2);
  using seen = filled(size, 0);
  device.synchronize();
  const buffer = memory.allocate(size, { stream: home });
  buffer.copyFrom(stale, { stream: home });
  home.synchronize();
  for (let i = 0; i < 40; i++) more.copyFrom(ballast, { stream: home }); // about 20 ms before the data arrives
  buffer.copyFrom(old, { stream: home });
  const exported = StridedMemoryView.fromBuffer(buffer, { shape: [size], dtype: "uint8" }).toArrowDevice();
  const address = buffer.ptr;
  if (how === "imported") {
    const view = StridedMemoryView.fromArrowDevice(exported, { stream: consumer });
    for (let i = 0; i < 40; i++) more.copyFrom(ballast, { stream: consumer });
    taken.copyFrom(view.buffer, { stream: consumer });
    view.close();
  } else {
    if (how === "by a consumer in C") consumer.wait(new CudaEvent(device, placeOf(exported.ptr).event));
    for (let i = 0; i < 40; i++) more.copyFrom(ballast, { stream: consumer });
    enqueueCopy(consumer, taken.ptr, address, size, "DtoD");
    exported.close(); // the release callback is called while the consumer's work is still enqueued
  }
  assert(exported.released);
  buffer.close();
  using next = memory.allocate(size, { stream: home });
  next.copyFrom(fresh, { stream: home });
  taken.copyTo(seen, { stream: consumer });
  consumer.synchronize();
  home.synchronize();
  return { right: seen.bytes().every((byte) => byte === 1), reused: next.ptr === address };
}
