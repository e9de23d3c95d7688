/**
 * DLPack on device memory, real or simulated: the same address, the consumer's order, a free that waits for the
 * consumer.
 *
 * @module
 */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { liveExports } from "../../src/order/reclaim.ts";
import { DeviceMemoryResource, ExchangeError, HostMemoryResource, slice, StridedMemoryView } from "../../mod.ts";
import { DLManagedTensorVersioned, DLPACK_FLAG_BITMASK } from "../../bindings/dlpack.ts";
import { libc } from "../../src/ffi/libc.ts";
import { struct } from "../../src/ffi/struct.ts";
import type { Behaviour, Root } from "../support/cuda_root.ts";
import { enqueueCopy } from "../../src/device/mod.ts";

/** The behaviours. */
export const dlpackBehaviours: readonly Behaviour[] = [
  {
    name: "a device view is exported by DLPack and imported at the same address",
    devices: 1,
    async run(root) {
      using cuda = root.open();
      const device = cuda.device(0);
      using home = device.createStream();
      using other = device.createStream();
      using buffer = new DeviceMemoryResource(device).allocate(96, { stream: home });
      using up = new HostMemoryResource().allocate(96);
      new Float32Array(up.bytes().buffer).set(Array.from({ length: 24 }, (_, i) => i));
      buffer.copyFrom(up, { stream: home });
      const view = StridedMemoryView.fromBuffer(buffer, { shape: [4, 6], dtype: "float32" }).sliced(
        slice(null, null, -1),
        2,
      );
      for (const maxVersion of [[1, 3], [0, 8]] as const) {
        using back = StridedMemoryView.fromDlpack(view.toDlpack({ stream: other, maxVersion }), { stream: other });
        assertEquals(back.ptr, view.ptr);
        assertEquals(back.shape, [4]);
        assertEquals(back.strides, [-6]);
        assertEquals(back.device, device);
        assertEquals(Array.from(await back.toTypedArray(), Number), [20, 14, 8, 2]);
      }
      assertEquals(liveExports(), 0);
      assertThrows(() => view.toDlpack({ stream: 0n }), ExchangeError, "stream 0");
      using refused = view.toDlpack({ stream: null });
      assertThrows(() => StridedMemoryView.fromDlpack(refused), ExchangeError, "pass { stream }");
    },
  },

  {
    name: "an export outlives its buffer, its stream and its Cuda, and is freed in order all the same",
    devices: 1,
    run(root) {
      const tensor = (() => {
        using cuda = root.open();
        const device = cuda.device(0);
        using stream = device.createStream();
        using buffer = new DeviceMemoryResource(device).allocate(2 ** 20, { stream });
        return StridedMemoryView.fromBuffer(buffer, { shape: [2 ** 20], dtype: "uint8" }).toDlpack({ stream });
      })();
      assertEquals(tensor.released, false);
      tensor.close();
      assertEquals(tensor.released, true);
      assertEquals(liveExports(), 0);
    },
  },

  ...([[1, 0], [2, 0], [2, 1]] as const).map(([type, id]): Behaviour => ({
    name: `a consumer that asks for a copy on device (${type}, ${id}) gets it in order, and it is its own`,
    devices: id + 1,
    run: (root) => copyForConsumer(root, type, id),
  })),
];

/** Exports a copy of an array that is still being written, overwrites the array, and reads the copy. */
function copyForConsumer(root: Root, type: number, id: number): void {
  using cuda = root.open();
  const [device, target] = [cuda.device(0), cuda.device(id)];
  const size = root.bytes / 4;
  using home = device.createStream();
  using consumer = target.createStream();
  using ballast = device.memory.allocate(root.bytes * 4, { stream: home });
  using more = device.memory.allocate(root.bytes * 4, { stream: home });
  using buffer = device.memory.allocate(size, { stream: home });
  using taken = target.memory.allocate(size, { stream: consumer });
  using seen = new HostMemoryResource().allocate(size);
  const view = StridedMemoryView.fromBuffer(buffer, { shape: [size / 4, 4], dtype: "uint8" }).permuted([1, 0]);
  device.synchronize();
  target.synchronize();
  buffer.fill(7, { stream: home });
  const corner = StridedMemoryView.fromBuffer(buffer, { shape: [1], dtype: "uint8" });
  corner.copyFrom(Uint8Array.of(9), { stream: home });
  // The producer is slow: a copy that is not ordered after it reads the previous contents.
  for (let i = 0; i < 40; i++) more.copyFrom(ballast, { stream: home });
  buffer.fill(8, { stream: home });
  corner.copyFrom(Uint8Array.of(9), { stream: home });
  const { address, tensor } = (() => {
    const tensor = view.toDlpack({
      copy: true,
      dlDevice: [type, id],
      ...(type === 2 ? { stream: consumer.handle } : {}),
    });
    const fields = struct(DLManagedTensorVersioned).at(tensor.ptr);
    const { device_type, device_id } = fields.dl_tensor.device;
    assertEquals([device_type, device_id, fields.flags], [type, id, DLPACK_FLAG_BITMASK.IS_COPIED]);
    return { address: fields.dl_tensor.data, tensor };
  })();
  buffer.fill(1, { stream: home }); // the copy does not see it
  if (type === 1) libc().memory.memcpy(seen.ptr, address, BigInt(size));
  else {
    enqueueCopy(consumer, taken.ptr, address, size, "DtoD");
    taken.copyTo(seen, { stream: consumer });
    consumer.synchronize();
  }
  const bytes = seen.bytes();
  assertEquals([bytes[0], bytes.findIndex((byte, i) => byte !== 8 && i > 0)], [9, -1]);
  tensor.close();
  assertEquals([tensor.released, liveExports()], [true, 0]);
  assertThrows(() => view.toDlpack({ copy: false, dlDevice: [3, 0] }), ExchangeError, "without a copy");
}

/**
 * Frees a buffer while a consumer still reads it, and lets the pool give the same memory to the next allocation, which
 * is overwritten at once. If the free is not ordered after the consumer's work, the consumer reads the new bytes.
 *
 * @param on where the consumer works: a peer has its own context, with its own work
 * @returns what the consumer has read, and whether the pool did reuse the memory
 */
export function consumeWhileFreeing(
  root: Root,
  release: "ordered" | "unordered",
  on: "the same device" | "a peer" = "the same device",
): { readonly right: boolean; readonly reused: boolean } {
  using cuda = root.open();
  const device = cuda.device(0);
  const other = on === "a peer" ? cuda.device(1) : device;
  const size = root.bytes / 4;
  using memory = new DeviceMemoryResource(device, {});
  memory.peerAccessibleBy = [other];
  using home = device.createStream();
  using consumer = other.createStream();
  using ballast = other.memory.allocate(root.bytes * 4, { stream: consumer });
  using more = other.memory.allocate(root.bytes * 4, { stream: consumer });
  using taken = other.memory.allocate(size, { stream: consumer });
  using old = new HostMemoryResource().allocate(size);
  using fresh = new HostMemoryResource().allocate(size);
  using seen = new HostMemoryResource().allocate(size);
  old.bytes().fill(1);
  fresh.bytes().fill(2);
  device.synchronize();
  other.synchronize();
  const buffer = memory.allocate(size, { stream: home });
  buffer.copyFrom(old, { stream: home });
  const view = StridedMemoryView.fromBuffer(buffer, { shape: [size], dtype: "uint8" });
  const tensor = release === "ordered" ? view.toDlpack({ stream: consumer }) : null;
  if (tensor === null) consumer.wait(home); // what the export does
  const address = buffer.ptr;
  // The consumer is slow: about 20 ms of copies precede its read.
  for (let i = 0; i < 40; i++) more.copyFrom(ballast, { stream: consumer });
  enqueueCopy(consumer, taken.ptr, address, size, "DtoD");
  if (tensor !== null) {
    tensor.close(); // the deleter is called while the consumer's work is still enqueued
    assert(tensor.released);
  }
  buffer.close(); // on the home stream; in the control nothing makes that stream wait for the consumer
  using next = memory.allocate(size, { stream: home });
  next.copyFrom(fresh, { stream: home });
  taken.copyTo(seen, { stream: consumer });
  consumer.synchronize();
  home.synchronize();
  return { right: seen.bytes().every((byte) => byte === 1), reused: next.ptr === address };
}
