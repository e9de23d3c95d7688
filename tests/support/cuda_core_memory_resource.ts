/**
 * What cuda.core's memory resources do, as behaviours of ours. Where ours differ on purpose, the name says what ours do
 * and a comment why.
 *
 * @module
 */
import { assert, assertEquals, assertNotEquals, assertStrictEquals, assertThrows } from "@std/assert";
import { type AllocateOptions, MemoryPool } from "../../src/public/cuda.ts";
import {
  CudaError,
  DeviceMemoryResource,
  HostMemoryResource,
  ManagedMemoryResource,
  MemoryBuffer,
  MemoryResource,
  PinnedMemoryResource,
  SynchronousMemoryResource,
} from "../../mod.ts";
import type { Behaviour } from "./cuda_root.ts";

/** A user-defined allocator: hands out pieces of one allocation of another resource, and counts them. */
class ArenaResource extends MemoryResource {
  override readonly isDeviceAccessible: boolean;
  override readonly isHostAccessible: boolean;
  readonly #block: MemoryBuffer;
  #at = 0;
  live = 0;

  constructor(block: MemoryBuffer) {
    super();
    this.#block = block;
    this.isDeviceAccessible = block.isDeviceAccessible;
    this.isHostAccessible = block.isHostAccessible;
  }

  override allocate(bytes: number, { stream }: AllocateOptions = {}): MemoryBuffer {
    if (this.#at + bytes > this.#block.size) throw new RangeError(`Cannot take ${bytes} bytes: the arena is full`);
    const ptr = this.#block.ptr + BigInt(this.#at);
    const { device, kind } = this.#block;
    this.#at += bytes;
    this.live++;
    return MemoryBuffer.fromAllocation({ ptr, size: bytes, device, kind, stream: stream ?? null, free: this.#free });
  }

  readonly #free = () => void this.live--;
}

/** The behaviours. */
export const cudaCoreMemoryResources: readonly Behaviour[] = [
  {
    name: "a user's own resource makes buffers as good as any",
    devices: 1,
    run(root) {
      using cuda = root.open();
      const device = cuda.device(0);
      using stream = device.createStream();
      const blocks = [device.memory, new ManagedMemoryResource(device), new HostMemoryResource()];
      for (const from of blocks) {
        using block = from.allocate(256, { stream });
        const arena = new ArenaResource(block);
        const [one, other] = [arena.allocate(100, { stream }), arena.allocate(100, { stream })];
        assertEquals([arena.live, other.ptr - one.ptr, one.kind], [2, 100n, block.kind]);
        one.fill(4, { stream });
        stream.synchronize();
        other.copyFrom(one, { stream });
        using sink = new HostMemoryResource().allocate(100);
        other.copyTo(sink, { stream });
        stream.synchronize();
        assertEquals(new Set(sink.bytes()), new Set([4]));
        assertThrows(() => arena.allocate(100), RangeError, "the arena is full");
        one.close();
        other.close();
        assertEquals(arena.live, 0);
      }
    },
  },
  {
    name: "a resource without options uses the pool that the device uses, keeps its memory, and never destroys it",
    devices: 1,
    run(root) {
      using cuda = root.open();
      const device = cuda.device(0);
      const [one, other] = [new DeviceMemoryResource(device), new DeviceMemoryResource(device)];
      assertEquals([one.pool.handle, one.pool.isOwned], [other.pool.handle, false]);
      assert(one.pool.releaseThreshold > 0);
      one.close();
      assertThrows(() => one.allocate(1), TypeError, "Cannot use a closed memory pool");
      other.allocate(1024).close();
    },
  },
  {
    name: "any options make a pool of one's own, with its own limits",
    devices: 1,
    run(root) {
      using cuda = root.open();
      const device = cuda.device(0);
      using free = new DeviceMemoryResource(device, {});
      using limited = new DeviceMemoryResource(device, { maxSize: 2 ** 25, releaseThreshold: 4096 });
      const handles = [free, limited, device.memory].map(({ pool }) => pool.handle);
      assertEquals(new Set(handles).size, 3);
      assertEquals([free.pool.isOwned, limited.pool.isOwned, limited.pool.releaseThreshold], [true, true, 4096]);
      const error = assertThrows(() => limited.allocate(2 ** 26), CudaError, `${2 ** 26} bytes were requested`);
      assertEquals(error.codeName, "CUDA_ERROR_OUT_OF_MEMORY");
      free.allocate(2 ** 26).close();
    },
  },
  {
    name: "the attributes of a pool are read from the driver, each time",
    devices: 1,
    run(root) {
      using cuda = root.open();
      const device = cuda.device(0);
      using stream = device.createStream();
      using resource = new DeviceMemoryResource(device, {});
      const { pool } = resource;
      assertEquals(pool.use, { reserved: 0, reservedHigh: 0, used: 0, usedHigh: 0 });
      const one = resource.allocate(2 ** 20, { stream });
      const other = resource.allocate(2 ** 20, { stream });
      assertEquals([pool.use.used, pool.use.usedHigh], [2 ** 21, 2 ** 21]);
      one.close();
      other.close();
      stream.synchronize();
      assertEquals([pool.use.used, pool.use.usedHigh], [0, 2 ** 21]);
      assert(pool.use.reserved > 0 && pool.use.reservedHigh >= pool.use.reserved);
      pool.trim();
      pool.resetHighMarks();
      assertEquals(pool.use, { reserved: 0, reservedHigh: 0, used: 0, usedHigh: 0 });
    },
  },
  {
    name: "a resource can be closed before its buffers, which stay usable, and then allocates no more",
    devices: 1,
    run(root) {
      using cuda = root.open();
      const device = cuda.device(0);
      using stream = device.createStream();
      const resource = new DeviceMemoryResource(device, {});
      const buffer = resource.allocate(64, { stream });
      resource.close();
      resource.close();
      buffer.fill(1, { stream });
      buffer.close();
      assertThrows(() => resource.allocate(64, { stream }), TypeError, "Cannot use a closed memory pool");
      assertThrows(() => resource.peerAccessibleBy.size, TypeError, "Cannot use a closed memory pool");
      assertThrows(() => resource.pool.use, TypeError, "Cannot use a closed memory pool");
    },
  },
  {
    name: "memory that is freed on a stream is available to the next allocation on it, without any wait",
    devices: 1,
    run(root) {
      using cuda = root.open();
      const device = cuda.device(0);
      using stream = device.createStream();
      using resource = new DeviceMemoryResource(device, {});
      const first = resource.allocate(2 ** 20, { stream });
      const { ptr } = first;
      first.close();
      using second = resource.allocate(2 ** 20, { stream });
      assertEquals(second.ptr, ptr);
    },
  },
  {
    name: "zero bytes are allocated without an address; an invalid size is refused",
    devices: 1,
    run(root) {
      using cuda = root.open();
      const device = cuda.device(0);
      const resources = [
        device.memory,
        new PinnedMemoryResource(device),
        new ManagedMemoryResource(device),
        new SynchronousMemoryResource(device),
        new HostMemoryResource(),
      ];
      for (const resource of resources) {
        using empty = resource.allocate(0);
        assertEquals([empty.ptr, empty.size], [0n, 0]);
        for (const size of [-1, 1.5, NaN, 2 ** 53]) {
          assertThrows(() => resource.allocate(size), RangeError, `Cannot allocate ${size} bytes`);
        }
      }
    },
  },
  {
    // There, allocating while the stream is captured is refused, except from a resource for graphs, which does not
    // exist here.
    name: "allocating on a stream that is captured is refused",
    devices: 1,
    run(root) {
      using cuda = root.open();
      const device = cuda.device(0);
      using stream = device.createStream();
      assertThrows(() => stream.capture(() => void device.memory.allocate(64, { stream })), Error);
      device.memory.allocate(64, { stream }).close();
    },
  },
  {
    name: "pinned memory is the host's and the device's, needs no stream, and belongs to no device",
    devices: 1,
    run(root) {
      using cuda = root.open();
      const device = cuda.device(0);
      const resource = new PinnedMemoryResource(device);
      assertEquals([resource.isHostAccessible, resource.isDeviceAccessible], [true, true]);
      using buffer = resource.allocate(64);
      assertEquals([buffer.device, buffer.stream], [null, null]);
      using stream = device.createStream();
      buffer.bytes().fill(1);
      buffer.fill(2, { stream });
      stream.synchronize();
      assertEquals(new Set(buffer.bytes()), new Set([2]));
    },
  },
  {
    name: "managed memory is the host's and every device's, and takes hints where it should be",
    devices: 1,
    run(root) {
      using cuda = root.open();
      const device = cuda.device(0);
      using stream = device.createStream();
      const resource = new ManagedMemoryResource(device);
      assertEquals([resource.isHostAccessible, resource.isDeviceAccessible], [true, true]);
      using buffer = resource.allocate(2 ** 16, { stream });
      resource.advise(buffer, "SET_PREFERRED_LOCATION", device);
      resource.advise(buffer, "SET_ACCESSED_BY", null);
      resource.advise(buffer, "SET_READ_MOSTLY", device);
      resource.advise(buffer, "UNSET_READ_MOSTLY", device);
      resource.prefetch(buffer, device, { stream });
      buffer.fill(0x77, { stream });
      resource.prefetch(buffer, null, { stream });
      stream.synchronize();
      assertEquals(new Set(buffer.bytes()), new Set([0x77]));
    },
  },
  {
    name: "synchronous memory is available at once, for every stream",
    devices: 1,
    run(root) {
      using cuda = root.open();
      const device = cuda.device(0);
      using one = device.createStream();
      using other = device.createStream();
      const resource = new SynchronousMemoryResource(device);
      assertEquals([resource.isHostAccessible, resource.isDeviceAccessible], [false, true]);
      using buffer = resource.allocate(64);
      using sink = new HostMemoryResource().allocate(64);
      buffer.fill(5, { stream: one });
      other.wait(one);
      buffer.copyTo(sink, { stream: other });
      other.synchronize();
      assertEquals(new Set(sink.bytes()), new Set([5]));
    },
  },
  {
    name: "every device has a resource of its own, ready to use, over the pool that it uses",
    devices: 1,
    run(root) {
      using cuda = root.open();
      for (const device of cuda.devices) {
        assertStrictEquals(device.memory, device.memory);
        assertStrictEquals(device.memory.device, device);
        assertEquals(device.memory.pool.handle, MemoryPool.current(device).handle);
        using buffer = device.memory.allocate(64);
        assertEquals([buffer.device?.ordinal, buffer.stream], [device.ordinal, device.defaultStream]);
      }
      const [first, second] = cuda.devices;
      if (second !== undefined) assertNotEquals(first?.memory.pool.handle, second.memory.pool.handle);
    },
  },
];
