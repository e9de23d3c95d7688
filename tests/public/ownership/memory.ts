/**
 * Owners of buffers and of views that are created here.
 *
 * @module
 */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { Cuda, type CudaDevice, DeviceMemoryResource, MemoryBuffer, StridedMemoryView } from "../../../mod.ts";
import { SimulatedDriver } from "../../../src/public/sim.ts";
import { Collected, CountedMemory, type Dropped, type OwnershipRow } from "./row.ts";

/** A view of 16 bytes. */
export function viewOf(buffer: MemoryBuffer): StridedMemoryView<"float32"> {
  return StridedMemoryView.fromBuffer(buffer, { shape: [buffer.size / 4], dtype: "float32" });
}

function assertClosed(view: StridedMemoryView): void {
  assert(view.buffer.isClosed);
  assertThrows(() => view.ptr, TypeError, "closed");
}

/** Arrays of 1 KiB on a device, each made by a function and dropped. */
function onDevice(stack: AsyncDisposableStack, make: (device: CudaDevice) => StridedMemoryView): Dropped {
  const cuda = stack.use(Cuda.simulate());
  const device = cuda.device(0);
  const { pool } = device.memory;
  let made = 0;
  return {
    once: () => {
      made++;
      assertEquals(make(device).nbytes, 1024);
    },
    ended: () => {
      device.synchronize();
      return made - pool.use.used / 1024;
    },
  };
}

export const memoryRows: Readonly<Record<string, OwnershipRow>> = {
  "`resource.allocate(bytes)`": {
    ends() {
      using cuda = Cuda.simulate({ schedule: "latest" });
      const { memory } = cuda.device(0);
      using stream = cuda.device(0).createStream();
      const buffer = memory.allocate(64, { stream });
      assertEquals(memory.pool.use.used, 64);
      buffer.fill(1, { stream });
      buffer.close();
      buffer.close();
      stream.synchronize(); // the free is work of the home stream
      assertEquals(memory.pool.use.used, 0);
      assertThrows(() => buffer.ptr, TypeError, "closed");
    },
    drop: () => {
      const memory = new CountedMemory();
      return { once: () => void memory.allocate(16), ended: () => memory.freed };
    },
  },
  "`new DeviceMemoryResource(device, options)`": {
    ends() {
      const simulated = new SimulatedDriver({});
      using cuda = Cuda.over(simulated.driver);
      const pool = new DeviceMemoryResource(cuda.device(0), { maxSize: 2 ** 20 });
      const buffer = pool.allocate(64);
      pool.close();
      assertThrows(() => pool.allocate(64), TypeError, "closed");
      assertEquals(simulated.live.pools, 1); // retained by the buffer
      buffer.close();
      cuda.device(0).synchronize();
      assertEquals(simulated.live.pools, 0);
      cuda.device(0).memory.close(); // the device's own pool is left alone
      cuda.device(0).memory.allocate(64).close();
    },
    drop: (stack) => {
      const simulated = new SimulatedDriver({});
      const device = stack.use(Cuda.over(simulated.driver)).device(0);
      let made = 0;
      return {
        once: () => {
          made++;
          void new DeviceMemoryResource(device, { maxSize: 2 ** 20 }).allocate(64);
        },
        ended: () => {
          device.synchronize();
          return made - simulated.live.pools;
        },
      };
    },
  },
  "`MemoryBuffer.fromPointer(ptr, bytes, { owner })`": {
    ends() {
      const owner = new CountedMemory();
      using memory = owner.allocate(16);
      const buffer = MemoryBuffer.fromPointer(memory.ptr, 16, { owner: memory });
      buffer.close();
      assertEquals([owner.freed, buffer.owner], [0, undefined]);
    },
    drop: () => {
      const memory = new CountedMemory();
      return {
        once: () => {
          const owner = memory.allocate(16);
          void MemoryBuffer.fromPointer(owner.ptr, 16, { owner });
        },
        ended: () => memory.freed,
      };
    },
  },
  "`buffer.bytes()`": {
    ends() {
      const buffer = new CountedMemory().allocate(16);
      const bytes = buffer.bytes();
      buffer.close();
      assertEquals(bytes.length, 0);
    },
  },
  "`StridedMemoryView.fromBuffer(buffer, options)`": {
    ends() {
      const memory = new CountedMemory();
      const buffer = memory.allocate(16);
      const view = viewOf(buffer);
      view.close();
      assertEquals([memory.freed, view.ptr], [0, buffer.ptr]);
      buffer.close();
      assertEquals(memory.freed, 1);
      assertClosed(view);
    },
  },
  "`StridedMemoryView.fromTypedArray(array)`": {
    ends() {
      const array = Float32Array.of(1, 2);
      const view = StridedMemoryView.fromTypedArray(array);
      view.close();
      view.set(3, 0);
      assertEquals(array[0], 3);
      array.buffer.transfer();
      assertThrows(() => view.get(0), TypeError, "transferred");
    },
  },
  "`view.sliced(...items)`": {
    ends() {
      const view = StridedMemoryView.zeros([4]);
      const others = [view.sliced(0), view.reshaped([2, 2]), view.T, view.view("int64"), view.contiguous()];
      for (const other of others) other.close();
      assert(!view.buffer.isClosed);
      view.close();
      others.forEach(assertClosed);
    },
  },
  "`StridedMemoryView.zeros(shape)`": {
    ends() {
      const { zeros, full, arange, fromArray } = {
        zeros: StridedMemoryView.zeros([4]),
        full: StridedMemoryView.full([4], 1),
        arange: StridedMemoryView.arange(4),
        fromArray: StridedMemoryView.fromArray([1, 2]),
      };
      for (const view of [zeros, full, arange, fromArray]) {
        view.close();
        assertClosed(view);
      }
    },
    drop: (stack) => onDevice(stack, (device) => StridedMemoryView.zeros([1024], { dtype: "uint8", device })),
  },
  "`view.copy(options)`": {
    ends() {
      using view = StridedMemoryView.arange(4);
      const copy = view.copy();
      copy.close();
      assertClosed(copy);
      assertEquals(view.get(3), 3);
    },
    drop: (stack) => {
      const view = stack.use(StridedMemoryView.zeros([256], "float32"));
      return onDevice(stack, (device) => view.copy({ device }));
    },
  },
  "`view.to(place)`": {
    ends() {
      using cuda = Cuda.simulate();
      using view = StridedMemoryView.arange(4);
      const there = view.to(cuda.device(0));
      const again = there.to(cuda.device(0));
      assert(again.buffer === there.buffer);
      again.close();
      assert(!there.buffer.isClosed);
      there.close();
      assertClosed(there);
    },
    drop: (stack) => {
      const view = stack.use(StridedMemoryView.zeros([256], "float32"));
      return onDevice(stack, (device) => view.to(device));
    },
  },
  "`view.borrow(stream)`": {
    ends() {
      using cuda = Cuda.simulate();
      using stream = cuda.device(0).createStream();
      const memory = new CountedMemory();
      const buffer = memory.allocate(16);
      const lease = viewOf(buffer).borrow(stream);
      buffer.close();
      assertEquals(memory.freed, 0);
      lease.close();
      assertEquals(memory.freed, 1);
    },
    drop: (stack) => {
      const stream = stack.use(stack.use(Cuda.simulate()).device(0).createStream());
      const memory = new CountedMemory();
      return {
        once: () => {
          using buffer = memory.allocate(16);
          viewOf(buffer).borrow(stream);
        },
        ended: () => memory.freed,
      };
    },
  },
  "`buffer.pinned()`": {
    ends() {
      const memory = new CountedMemory();
      const buffer = memory.allocate(16);
      {
        using _ = buffer.pinned();
        buffer.close();
        assertEquals(memory.freed, 0);
      }
      assertEquals(memory.freed, 1);
    },
    drop: () => {
      const memory = new CountedMemory();
      return {
        once: () => {
          using buffer = memory.allocate(16);
          buffer.pinned();
        },
        ended: () => memory.freed,
      };
    },
  },
};

/** Objects that describe memory, each with its own memory, which is freed with it. */
export function describing(name: "__array_interface__" | "__cuda_array_interface__", cuda?: Cuda) {
  const collected = new Collected();
  const make = (): object => {
    const buffer = cuda?.device(0).memory.allocate(16) ?? new CountedMemory().allocate(16);
    const described = cuda === undefined ? viewOf(buffer).__array_interface__ : viewOf(buffer).__cuda_array_interface__;
    return collected.watch({ [name]: described, buffer });
  };
  return { make, collected };
}
