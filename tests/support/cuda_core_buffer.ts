/**
 * What cuda.core's Buffer does, as behaviours of MemoryBuffer. Where ours differs on purpose, the name says what ours
 * does and a comment why.
 *
 * @module
 */
import { assert, assertEquals, assertNotEquals, assertStrictEquals, assertThrows } from "@std/assert";
import {
  type CudaStream,
  HostMemoryResource,
  ManagedMemoryResource,
  MemoryBuffer,
  PinnedMemoryResource,
  StridedMemoryView,
  SynchronousMemoryResource,
} from "../../mod.ts";
import type { Behaviour, Root } from "./cuda_root.ts";
import { check, fc } from "./property.ts";

/** One device with a stream, and memory of every resource. */
function setUp(root: Root) {
  const cuda = root.open();
  const device = cuda.device(0);
  const stream = device.createStream();
  const resources = {
    pool: device.memory,
    synchronous: new SynchronousMemoryResource(device),
    pinned: new PinnedMemoryResource(device),
    managed: new ManagedMemoryResource(device),
    host: new HostMemoryResource(),
  };
  const close = () => {
    stream.synchronize();
    stream.close();
    cuda.close();
  };
  return { cuda, device, stream, resources, [Symbol.dispose]: close };
}

/** The bytes of a buffer, by way of the host. */
function read(buffer: MemoryBuffer, stream: CudaStream): number[] {
  using sink = new HostMemoryResource().allocate(buffer.size);
  stream.synchronize(); // work enqueued on host memory has completed
  buffer.copyTo(sink, { stream });
  stream.synchronize();
  return Array.from(sink.bytes());
}

/** The behaviours. */
export const cudaCoreBuffer: readonly Behaviour[] = [
  {
    name: "a buffer from an address owns nothing: closing it frees nothing",
    devices: 1,
    run(root) {
      using all = setUp(root);
      const { device, stream } = all;
      using memory = device.memory.allocate(64, { stream });
      const borrowed = MemoryBuffer.fromPointer(memory.ptr, 64, { device });
      assertEquals([borrowed.ptr, borrowed.size, borrowed.owner], [memory.ptr, 64, undefined]);
      assertStrictEquals(borrowed.stream, device.defaultStream);
      borrowed.close();
      memory.fill(7, { stream });
      assertEquals(read(memory, stream), Array(64).fill(7));
    },
  },
  {
    name: "a buffer with an owner keeps it alive until it is closed",
    devices: 1,
    run(root) {
      using all = setUp(root);
      const owner = { of: "the memory" };
      using memory = all.device.memory.allocate(64);
      const borrowed = MemoryBuffer.fromPointer(memory.ptr, 64, { device: all.device, owner });
      assertStrictEquals(borrowed.owner, owner);
      borrowed.close();
      assertEquals(borrowed.owner, undefined);
    },
  },
  {
    // There, an owner and a deleter exclude each other. Here an import has both: its maker and its deleter.
    name: "a buffer of an allocator is returned to it once, on close, with its address, owner or not",
    devices: 1,
    run(root) {
      using all = setUp(root);
      for (const owner of [undefined, {}]) {
        const freed: unknown[] = [];
        using memory = all.device.memory.allocate(64);
        const buffer = MemoryBuffer.fromAllocation({
          ptr: memory.ptr,
          size: 64,
          device: all.device,
          stream: all.stream,
          ...(owner === undefined ? {} : { owner }),
          free: (ptr, stream) => freed.push(ptr, stream),
        });
        buffer.close();
        buffer.close();
        assertEquals(freed, [memory.ptr, all.stream]);
      }
    },
  },
  {
    name: "a buffer closes itself at the end of its scope, and closing it again is harmless",
    devices: 1,
    run(root) {
      using all = setUp(root);
      for (const resource of Object.values(all.resources)) {
        let outside: MemoryBuffer;
        {
          using buffer = resource.allocate(64, { stream: all.stream });
          outside = buffer;
          assertEquals(buffer.isClosed, false);
        }
        outside.close();
        assertEquals(outside.isClosed, true);
      }
    },
  },
  {
    // There, the address of a closed buffer is 0, which the next call accepts as an address.
    name: "a closed buffer gives no address, no bytes, no copy and no new home: each is a TypeError",
    devices: 1,
    run(root) {
      using all = setUp(root);
      const { stream } = all;
      using other = all.resources.pinned.allocate(64);
      for (const resource of Object.values(all.resources)) {
        const buffer = resource.allocate(64, { stream });
        buffer.close();
        const uses: (() => unknown)[] = [
          () => buffer.ptr,
          () => buffer.bytes(),
          () => buffer.copyFrom(other, { stream }),
          () => buffer.copyTo(other, { stream }),
          () => buffer.fill(1, { stream }),
          () => buffer.setHomeStream(stream),
          () => buffer.pinned(),
        ];
        for (const use of uses) assertThrows(use, TypeError, "a closed MemoryBuffer of 64 bytes");
        assertEquals(buffer.size, 64);
      }
    },
  },
  {
    name: "memory is freed on the stream that it was allocated on, unless another one is given",
    devices: 1,
    run(root) {
      using all = setUp(root);
      const { device, stream } = all;
      using other = device.createStream();
      const freed: (CudaStream | null)[] = [];
      const make = () =>
        MemoryBuffer.fromAllocation({ ptr: 64n, size: 8, device, stream, free: (_, home) => freed.push(home) });
      make().close();
      make().close(other);
      const moved = make();
      moved.setHomeStream(other);
      assertStrictEquals(moved.stream, other);
      moved.close();
      assertEquals(freed.map((one) => one?.handle), [stream.handle, other.handle, other.handle]);
    },
  },
  {
    // There, closing on another stream does not order that stream after the old one: that is left to the user.
    name: "closing on another stream frees after the former home's remaining work",
    devices: 1,
    run(root) {
      using all = setUp(root);
      const { device, stream } = all;
      using other = device.createStream();
      const sink = all.resources.pinned.allocate(4096);
      const buffer = device.memory.allocate(4096, { stream });
      buffer.fill(1, { stream });
      buffer.copyTo(sink, { stream });
      buffer.close(other);
      using next = device.memory.allocate(4096, { stream: other });
      next.fill(2, { stream: other });
      device.synchronize();
      assertEquals(new Set(sink.bytes()), new Set([1]));
      sink.close();
    },
  },
  {
    name: "a closed stream cannot be a home",
    devices: 1,
    run(root) {
      using all = setUp(root);
      const gone = all.device.createStream();
      gone.close();
      using buffer = all.device.memory.allocate(64, { stream: all.stream });
      assertThrows(() => buffer.setHomeStream(gone), TypeError, "got a closed CudaStream");
      assertThrows(() => buffer.close(gone), TypeError, "got a closed CudaStream");
      assertThrows(() => all.device.memory.allocate(64, { stream: gone }), TypeError, "got a closed CudaStream");
      assertEquals([buffer.isClosed, buffer.stream === all.stream], [false, true]);
    },
  },
  {
    // There, copy_to() without a destination allocates one; here the caller allocates from a resource of its choice,
    // and closes the buffer.
    name: "copies move all bytes between buffers of every two resources, and only between equal sizes",
    devices: 1,
    run(root) {
      using all = setUp(root);
      const { stream } = all;
      for (const from of Object.values(all.resources)) {
        for (const to of Object.values(all.resources)) {
          using source = from.allocate(48, { stream });
          using destination = to.allocate(48, { stream });
          using small = to.allocate(47, { stream });
          source.fill(0x5a, { stream });
          destination.fill(0, { stream });
          stream.synchronize();
          destination.copyFrom(source, { stream });
          assertEquals(read(destination, stream), Array(48).fill(0x5a));
          for (const wrong of [() => small.copyFrom(source, { stream }), () => source.copyTo(small, { stream })]) {
            assertThrows(wrong, RangeError, "Cannot copy 48 bytes into a buffer of 47: expected equal sizes");
          }
        }
      }
    },
  },
  {
    name: "a fill repeats a value of one, two or four bytes, and refuses one that does not fit",
    devices: 1,
    run(root) {
      using all = setUp(root);
      const { stream } = all;
      const widths = fc.constantFrom(1 as const, 2 as const, 4 as const);
      const kinds = fc.constantFrom(...Object.values(all.resources));
      check(
        fc.property(widths, fc.nat(0xffff_ffff), fc.nat(20), kinds, (width, random, count, resource) => {
          const value = random % 256 ** width;
          using buffer = resource.allocate(count * width, { stream });
          buffer.fill(value, { stream, width });
          const bytes = Array.from({ length: width }, (_, i) => Math.floor(value / 256 ** i) % 256);
          assertEquals(read(buffer, stream), Array.from({ length: count * width }, (_, i) => bytes[i % width]));
        }),
        100,
      );
      using buffer = all.resources.pool.allocate(6, { stream });
      for (const [value, width] of [[-1, 1], [256, 1], [65536, 2], [2 ** 32, 4], [0.5, 1], [NaN, 1]] as const) {
        const most = 256 ** width - 1;
        const words = `Cannot fill with ${value}: expected an integer from 0 to ${most}`;
        assertThrows(() => buffer.fill(value, { stream, width }), RangeError, words);
      }
      assertThrows(() => buffer.fill(1, { stream, width: 4 }), RangeError, "Cannot fill 6 bytes with values of 4");
      using block = all.resources.pool.allocate(16, { stream });
      for (const [offset, width] of [[1, 2], [1, 4], [2, 4]] as const) {
        const shifted = MemoryBuffer.fromPointer(block.ptr + BigInt(offset), 8, { device: all.device });
        assertThrows(() => shifted.fill(1, { stream, width }), RangeError, `Cannot fill from address ${shifted.ptr}`);
        shifted.fill(1, { stream });
      }
    },
  },
  {
    name: "a buffer says where it is and who can use it",
    devices: 1,
    run(root) {
      using all = setUp(root);
      const { device, stream } = all;
      const expected = {
        pool: ["device", device, false, true],
        synchronous: ["device", device, false, true],
        pinned: ["pinned", null, true, true], // its device_id is -1 there
        managed: ["managed", device, true, true],
        host: ["host", null, true, false],
      } as const;
      for (const [name, resource] of Object.entries(all.resources)) {
        using buffer = resource.allocate(64, { stream });
        const { kind, isHostAccessible, isDeviceAccessible } = buffer;
        const seen = [kind, buffer.device, isHostAccessible, isDeviceAccessible];
        assertEquals(seen.map(String), expected[name as keyof typeof expected].map(String), name);
        assertEquals([resource.isHostAccessible, resource.isDeviceAccessible], [isHostAccessible, isDeviceAccessible]);
      }
    },
  },
  {
    // There, a buffer over a foreign address queries the driver on its own, and needs a driver even for host memory.
    name: "the driver is asked about an address only when the answer is read",
    devices: 1,
    run(root) {
      using all = setUp(root);
      const { cuda, stream } = all;
      for (const resource of Object.values(all.resources)) {
        using buffer = resource.allocate(64, { stream });
        const { kind, device } = cuda.pointerAttributes(buffer.ptr);
        assertEquals(kind, buffer.kind);
        assertEquals(device?.ordinal ?? null, kind === "host" ? null : 0);
      }
      using host = all.resources.host.allocate(8);
      const borrowed = MemoryBuffer.fromPointer(host.ptr, 8);
      assertEquals([borrowed.kind, borrowed.device], ["host", null]);
    },
  },
  {
    // There, two buffers over the same range are equal. In JavaScript an object is equal to itself.
    name: "two buffers over the same bytes share them, and are two objects",
    devices: 1,
    run(root) {
      using all = setUp(root);
      using memory = all.resources.managed.allocate(16, { stream: all.stream });
      all.stream.synchronize();
      const [one, other] = [MemoryBuffer.fromPointer(memory.ptr, 16), MemoryBuffer.fromPointer(memory.ptr, 16)];
      one.bytes().fill(9);
      assertEquals(other.bytes()[15], 9);
      assertNotEquals(one === other, true);
    },
  },
  {
    // There, the buffer protocol is not implemented.
    name: "the bytes of memory that the host can use are an array without a copy, which closing empties",
    devices: 1,
    run(root) {
      using all = setUp(root);
      const { host, pinned, managed, pool, synchronous } = all.resources;
      for (const resource of [host, pinned, managed]) {
        const buffer = resource.allocate(16);
        const bytes = buffer.bytes();
        bytes[3] = 200;
        assertEquals(read(buffer, all.stream)[3], 200);
        buffer.close();
        assertEquals(bytes.length, 0);
      }
      for (const resource of [pool, synchronous]) {
        using buffer = resource.allocate(16, { stream: all.stream });
        assertThrows(() => buffer.bytes(), TypeError, "Copy it first: copyTo() of a buffer");
      }
    },
  },
  {
    // There, every call requires a stream. Here calls that complete before returning need none, and memory has a home
    // stream by default.
    name: "device memory is copied and filled on a stream, which must be given",
    devices: 1,
    run(root) {
      using all = setUp(root);
      using host = all.resources.host.allocate(16);
      using pinned = all.resources.pinned.allocate(16);
      for (const resource of [all.resources.pool, all.resources.synchronous]) {
        using buffer = resource.allocate(16);
        const uses = [() => buffer.copyFrom(host), () => pinned.copyFrom(buffer), () => buffer.fill(1)];
        for (const use of uses) assertThrows(use, TypeError, "without a stream: pass { stream }");
      }
      pinned.fill(3);
      host.copyFrom(pinned);
      assertEquals(new Set(host.bytes()), new Set([3]));
      using pooled = all.resources.pool.allocate(16);
      assertStrictEquals(pooled.stream, all.device.defaultStream);
    },
  },
  {
    name: "a buffer is exported by DLPack as its bytes: signed ones in one axis, on the device where they are",
    devices: 1,
    run(root) {
      using all = setUp(root);
      const { stream, device } = all;
      for (const resource of [all.resources.pool, all.resources.host]) {
        using buffer = resource.allocate(24, { stream });
        const view = StridedMemoryView.fromBuffer(buffer, { shape: [24], dtype: "int8" });
        using tensor = view.toDlpack(buffer.device === null ? {} : { stream });
        using back = StridedMemoryView.fromDlpack(tensor, { device, stream: buffer.device === null ? null : stream });
        assertEquals([back.ptr, back.shape, back.strides, back.dtype.name], [buffer.ptr, [24], [1], "int8"]);
        assertEquals(back.device, buffer.device);
      }
    },
  },
  {
    name: "zero bytes are a buffer, too",
    devices: 1,
    run(root) {
      using all = setUp(root);
      const { stream } = all;
      for (const resource of Object.values(all.resources)) {
        using empty = resource.allocate(0, { stream });
        using other = all.resources.pool.allocate(0, { stream });
        empty.fill(1, { stream });
        empty.copyFrom(other, { stream });
        assertEquals([empty.size, empty.ptr], [0, 0n]);
      }
      assert(MemoryBuffer.fromPointer(0n, 0).ptr === 0n);
    },
  },
];
