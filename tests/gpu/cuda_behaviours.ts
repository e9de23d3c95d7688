/**
 * What devices, streams, events and memory do, on a real GPU and on a simulated one.
 *
 * @module
 */
import { assert, assertEquals, assertMatch, assertThrows } from "@std/assert";
import { CudaError, DeviceMemoryResource, HostMemoryResource } from "../../mod.ts";
import { NativeArena } from "../../src/ffi/arena.ts";
import { check, fc } from "../support/property.ts";
import type { Behaviour } from "../support/cuda_root.ts";

/** The behaviours. */
export const cudaBehaviours: readonly Behaviour[] = [
  {
    name: "a device says what it is",
    devices: 1,
    run(root) {
      using cuda = root.open();
      const [device] = cuda.devices;
      assert(device !== undefined);
      assertEquals(device.attribute("COMPUTE_CAPABILITY_MAJOR"), device.computeCapability[0]);
      assert(device.totalMemory > 2 ** 30, `${device.totalMemory} bytes`);
      assertMatch(device.uuid, /^GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
      assertMatch(device.pciBusId, /^[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.\d$/);
      assert(device.name.length > 0 && !device.name.includes("\0"));
      assert(cuda.driverVersion[0] >= 11);
      assertThrows(() => cuda.device(cuda.devices.length), RangeError, "expected 0 to");
    },
  },

  {
    name: "a context that was current before a call is current after it",
    devices: 1,
    run(root) {
      using cuda = root.open();
      const device = cuda.device(0);
      using arena = new NativeArena();
      const out = arena.out("ptr");
      const current = () => {
        assertEquals(cuda.driver.context.cuCtxGetCurrent(out.$address), 0);
        return out.value;
      };
      const before = current();
      using stream = device.createStream();
      stream.synchronize();
      device.synchronize();
      assertEquals(current(), before);
    },
  },

  {
    name: "bytes survive the way to the device and back, at every size and offset",
    devices: 1,
    run(root) {
      using cuda = root.open();
      const device = cuda.device(0);
      using stream = device.createStream();
      const memory = new DeviceMemoryResource(device);
      const host = new HostMemoryResource();
      check(
        fc.property(fc.uint8Array({ minLength: 0, maxLength: 5000 }), (bytes) => {
          using up = host.allocate(bytes.length);
          using down = host.allocate(bytes.length);
          using there = memory.allocate(bytes.length, { stream });
          using copy = memory.allocate(bytes.length, { stream });
          up.bytes().set(bytes);
          there.copyFrom(up, { stream });
          copy.copyFrom(there, { stream });
          copy.copyTo(down, { stream });
          stream.synchronize();
          assertEquals(down.bytes(), up.bytes());
        }),
        300,
      );
    },
  },

  {
    name: "typed arrays are copied up and down, any part of them, and wherever the garbage collector is",
    devices: 1,
    run(root) {
      using cuda = root.open();
      const device = cuda.device(0);
      using stream = device.createStream();
      const bytes = fc.uint8Array({ minLength: 0, maxLength: 3000 });
      check(
        fc.property(bytes, fc.nat(20), fc.boolean(), (content, at, plain) => {
          const around = new Uint8Array(content.length + 40).fill(0xcc);
          const up = new Uint8Array(content);
          const part = [around.buffer, at, content.length] as const;
          const down = plain ? new Uint8Array(...part) : new DataView(...part);
          using there = device.memory.allocate(content.length, { stream });
          there.copyFrom(up, { stream });
          there.copyTo(down, { stream });
          stream.synchronize();
          assertEquals([...around.subarray(at, at + content.length)], [...content]);
          assertEquals(around.fill(0xcc, at, at + content.length), new Uint8Array(around.length).fill(0xcc));
        }),
        100,
      );
      using eight = device.memory.allocate(8, { stream });
      assertThrows(() => eight.copyFrom(new Uint8Array(7), { stream }), RangeError, "expected equal sizes");
      assertThrows(() => eight.copyFrom(new Uint8Array(8)), TypeError, "without a stream");
      const shared = new Uint8Array(new SharedArrayBuffer(8));
      assertThrows(() => eight.copyFrom(shared, { stream }), TypeError, "Cannot copy a SharedArrayBuffer");
      const resizable = new Uint8Array(new ArrayBuffer(8, { maxByteLength: 16 }));
      assertThrows(() => eight.copyTo(resizable, { stream }), TypeError, "resizable");
      using host = new HostMemoryResource().allocate(8);
      host.copyFrom(Float64Array.of(1.5));
      const back = new Float64Array(1);
      host.copyTo(back);
      assertEquals(back[0], 1.5);
    },
  },

  {
    name: "a stream waits for what another has enqueued",
    devices: 1,
    run(root) {
      using cuda = root.open();
      const device = cuda.device(0);
      const size = root.bytes;
      using producer = device.createStream();
      using consumer = device.createStream();
      using source = new HostMemoryResource().allocate(size);
      using sink = new HostMemoryResource().allocate(size);
      source.bytes().fill(0xab);
      const memory = new DeviceMemoryResource(device);
      using first = memory.allocate(size, { stream: producer });
      using second = memory.allocate(size, { stream: producer });
      first.copyFrom(source, { stream: producer });
      for (let i = 0; i < 50; i++) second.copyFrom(first, { stream: producer });
      consumer.wait(producer);
      using done = consumer.record();
      if (root.isSlow) assertEquals(consumer.isDone, false, `50 copies of ${size} bytes cannot be done already`);
      done.synchronize();
      assertEquals(producer.isDone, true);
      second.copyTo(sink, { stream: consumer });
      consumer.synchronize();
      assertEquals(sink.bytes().every((byte) => byte === 0xab), true);
    },
  },

  {
    name: "events measure time",
    devices: 1,
    run(root) {
      using cuda = root.open();
      const device = cuda.device(0);
      using stream = device.createStream();
      using start = device.createEvent({ timing: true });
      using end = device.createEvent({ timing: true });
      const memory = new DeviceMemoryResource(device);
      using a = memory.allocate(root.bytes, { stream });
      using b = memory.allocate(root.bytes, { stream });
      stream.record(start);
      b.copyFrom(a, { stream });
      stream.record(end);
      end.synchronize();
      using never = device.createEvent({ timing: true });
      assertThrows(() => never.millisecondsSince(start), CudaError, "The second event was not recorded");
      assertThrows(() => end.millisecondsSince(never), CudaError, "The first event was not recorded");
      const milliseconds = end.millisecondsSince(start);
      assert(milliseconds > 0 && milliseconds < 1000, `${milliseconds} ms`);
    },
  },

  {
    name: "a stream has the priority that it was created with, and no other than the range allows",
    devices: 1,
    run(root) {
      using cuda = root.open();
      const device = cuda.device(0);
      const [first, last] = device.priorityRange;
      assert(first <= last, `[${first}, ${last}]`);
      for (let priority = first; priority <= last; priority++) {
        for (const nonBlocking of [true, false]) {
          using stream = device.createStream({ priority, nonBlocking });
          assertEquals([stream.priority, stream.isNonBlocking], [priority, nonBlocking]);
        }
      }
      using plain = device.createStream();
      assertEquals([plain.priority, plain.isNonBlocking], [0, true]);
      for (const priority of [first - 1, last + 1, 0.5, Number.NaN]) {
        assertThrows(() => device.createStream({ priority }), RangeError, `expected an integer from ${first}`);
      }
      for (const stream of [device.defaultStream, device.perThreadStream]) {
        assertEquals([stream.priority, stream.isNonBlocking], [0, false]);
        stream.wait(plain);
        stream.synchronize();
        assertEquals(stream.isDone, true);
      }
      assertEquals(device.perThreadStream, device.perThreadStream);
    },
  },

  {
    name: "an event measures time or is for other processes, not both, and is gone once it is closed",
    devices: 1,
    run(root) {
      using cuda = root.open();
      const device = cuda.device(0);
      assertThrows(() => device.createEvent({ timing: true, interprocess: true }), TypeError, "choose one");
      using stream = device.createStream();
      using shared = device.createEvent({ interprocess: true });
      using local = device.createEvent();
      assertEquals([shared.isInterprocess, local.isInterprocess], [true, false]);
      stream.record(shared);
      shared.synchronize();
      assertEquals(shared.isDone, true);
      assertThrows(() => shared.millisecondsSince(local), TypeError, "created without timing");
      assertThrows(() => local.exportHandle(), TypeError, "interprocess: true");
      shared.close();
      shared.close();
      assertThrows(() => stream.record(shared), TypeError, "closed CudaEvent");
      assertThrows(() => stream.wait(shared), TypeError, "closed CudaEvent");
      assertThrows(() => shared.isDone, TypeError, "closed CudaEvent");
    },
  },

  {
    name: "a device has a memory resource over its current pool, made once",
    devices: 1,
    async run(root) {
      using cuda = root.open();
      const device = cuda.device(0);
      using stream = device.createStream();
      const { memory } = device;
      assertEquals(memory, device.memory);
      assertEquals(memory.pool.handle, new DeviceMemoryResource(device).pool.handle);
      using buffer = memory.allocate(64, { stream });
      using sink = new HostMemoryResource().allocate(64);
      buffer.fill(7, { stream });
      buffer.copyTo(sink, { stream });
      using event = stream.record();
      await event.completed();
      assertEquals(sink.bytes()[63], 7);
    },
  },

  {
    name: "out of memory is an error with the driver's code",
    devices: 1,
    run(root) {
      using cuda = root.open();
      const memory = new DeviceMemoryResource(cuda.device(0));
      const error = assertThrows(() => memory.allocate(2 ** 50), CudaError, "CUDA_ERROR_OUT_OF_MEMORY");
      assertEquals(error.code, 2);
    },
  },

  {
    name: "peer access is a matrix, and a device does not peer with itself",
    devices: 2,
    run(root) {
      using cuda = root.open();
      for (const one of cuda.devices) {
        for (const other of cuda.devices) {
          if (one === other) assertEquals(one.canAccessPeer(other), false);
          else assertEquals(one.canAccessPeer(other), other.canAccessPeer(one));
        }
      }
    },
  },
];
