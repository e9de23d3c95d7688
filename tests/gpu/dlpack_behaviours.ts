/**
 * DLPack on device memory, real or simulated: the same address, the consumer's order, a free that waits for the consumer.
 *
 * @module
 */
import { assert, assertEquals, assertThrows } from "@std/assert";
import {
  DeviceMemoryResource,
  ExchangeError,
  HostMemoryResource,
  liveExports,
  slice,
  StridedMemoryView,
} from "../../mod.ts";
import type { Behaviour, Root } from "./root.ts";

/** The behaviours. */
export const dlpackBehaviours: readonly Behaviour[] = [
  {
    name: "a device view goes out by DLPack and comes back at the same address",
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
];

/**
 * Frees a buffer while a consumer still reads it, and lets the pool give the same memory to the next allocation, which
 * is overwritten at once. If the free does not come after the consumer's work, the consumer reads the new bytes.
 *
 * @param on where the consumer works: a peer has its own context, with work of its own
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
  // The consumer is slow: about 20 ms of copies stand before its read.
  for (let i = 0; i < 40; i++) more.copyFrom(ballast, { stream: consumer });
  other.copy(taken.ptr, address, size, "DtoD", consumer);
  if (tensor !== null) {
    tensor.close(); // the deleter is called while the consumer's work is still enqueued
    assert(tensor.released);
  }
  buffer.close(); // on the home stream; in the control nothing tells that stream to wait for the consumer
  using next = memory.allocate(size, { stream: home });
  next.copyFrom(fresh, { stream: home });
  taken.copyTo(seen, { stream: consumer });
  consumer.synchronize();
  home.synchronize();
  return { right: seen.bytes().every((byte) => byte === 1), reused: next.ptr === address };
}
