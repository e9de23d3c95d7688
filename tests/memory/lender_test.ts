/**
 * Memory of a buffer that is used in another guise, as the array that `bytes()` returned, a view of that, or a part by
 * its address, is the buffer's: closing the buffer frees it only when those uses are over, too.
 */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { Cuda, type CudaStream, HostMemoryResource, MemoryBuffer, slice, StridedMemoryView } from "../../mod.ts";
import { reclaim } from "../../src/order/reclaim.ts";
import { check, fc } from "../support/property.ts";

const size = 64;

const viewOf = (buffer: MemoryBuffer) => StridedMemoryView.fromBuffer(buffer, { shape: [buffer.size], dtype: "uint8" });

/** All or a part of a buffer's memory. */
const guises = {
  "the buffer": (buffer: MemoryBuffer) => viewOf(buffer),
  "its bytes": (buffer: MemoryBuffer) => StridedMemoryView.fromTypedArray(buffer.bytes()),
  "a part of its bytes": (buffer: MemoryBuffer) => StridedMemoryView.fromTypedArray(buffer.bytes().subarray(8, 24)),
  "their ArrayBuffer": (buffer: MemoryBuffer) => viewOf(MemoryBuffer.fromArrayBuffer(buffer.bytes().buffer, 16)),
  "the bytes of these": (buffer: MemoryBuffer) =>
    StridedMemoryView.fromTypedArray(MemoryBuffer.fromArrayBuffer(buffer.bytes().buffer).bytes()),
  "a typed array of it": (buffer: MemoryBuffer) => StridedMemoryView.fromTypedArray(viewOf(buffer).asTypedArray()),
  "a part by its address": (buffer: MemoryBuffer) =>
    viewOf(MemoryBuffer.fromPointer(buffer.ptr + 8n, 16, { owner: buffer })),
} as const;

/** What uses memory until it is ended, by the returned function. */
const uses: Readonly<
  Record<string, (view: StridedMemoryView, device: MemoryBuffer, stream: CudaStream) => () => void>
> = {
  "a copy to a device": (view, device, stream) => {
    viewOf(device).sliced(slice(0, view.size)).copyFrom(view, { stream });
    return () => stream.synchronize();
  },
  "a copy from a device": (view, device, stream) => {
    viewOf(device).sliced(slice(0, view.size)).copyTo(view, { stream });
    return () => stream.synchronize();
  },
  "a copy of its array": (view, device, stream) => {
    const array = view.asTypedArray();
    using part = MemoryBuffer.fromPointer(device.ptr, array.length, { owner: device, device: stream.device, stream });
    part.copyFrom(array, { stream });
    return () => stream.synchronize();
  },
  "a tensor": (view) => {
    const tensor = view.toDlpack();
    return () => tensor.close();
  },
  "an Arrow array": (view) => {
    const array = view.toArrowDevice();
    return () => array.close();
  },
  "a pin": (view) => {
    const pin = view.buffer.pinned();
    return () => pin[Symbol.dispose]();
  },
  "a pin without a handle": ({ buffer }) => {
    buffer.pin();
    return () => buffer.unpin();
  },
};

const names = { guises: Object.keys(guises) as (keyof typeof guises)[], uses: Object.keys(uses) }; // their own keys

const program = fc.array(
  fc.record({
    guise: fc.constantFrom(...names.guises),
    use: fc.constantFrom(...names.uses),
    /** Its place among the ends. */
    end: fc.nat(),
    /** Whether it ends before the buffer is closed. */
    isBrief: fc.boolean(),
  }),
  { maxLength: 6 },
);

test("memory is freed once, when its buffer is closed and all uses of it are over, in whatever guise", () => {
  check(
    fc.property(program, (steps) => {
      const cuda = Cuda.simulate({ schedule: "latest" });
      const device = cuda.device(0);
      using backing = new HostMemoryResource().allocate(size);
      let frees = 0;
      const free = () => void frees++;
      const buffer = MemoryBuffer.fromAllocation({ ptr: backing.ptr, size, device: null, stream: null, free });
      const begun = steps.map((step) => {
        const stream = device.createStream();
        const target = device.memory.allocate(size, { stream });
        const end = uses[step.use]?.(guises[step.guise](buffer), target, stream);
        return {
          ...step,
          over: () => {
            end?.();
            target.close();
            stream.close();
          },
        };
      });
      const [brief, lasting] = [true, false].map((isBrief) =>
        begun.filter((one) => one.isBrief === isBrief).sort((one, other) => one.end - other.end)
      );
      for (const { over } of brief ?? []) over();
      assertEquals(frees, 0);
      buffer.close();
      for (const [i, { use, guise, over }] of (lasting ?? []).entries()) {
        assertEquals(frees, 0, `${use} of ${guise}, ${(lasting?.length ?? 0) - i} left`);
        over();
      }
      reclaim(); // what has been released without a call of ours
      assertEquals(frees, 1);
      cuda.close();
    }),
    300,
  );
});

test("each guise, with each use", () => {
  using cuda = Cuda.simulate({ schedule: "latest" });
  const device = cuda.device(0);
  for (const guise of names.guises) {
    for (const use of names.uses) {
      using stream = device.createStream();
      using target = device.memory.allocate(size, { stream });
      using backing = new HostMemoryResource().allocate(size);
      let frees = 0;
      const free = () => void frees++;
      const buffer = MemoryBuffer.fromAllocation({ ptr: backing.ptr, size, device: null, stream: null, free });
      const end = uses[use]?.(guises[guise](buffer), target, stream);
      buffer.close();
      assertEquals(frees, 0, `${use} of ${guise}`);
      end?.();
      reclaim();
      assertEquals(frees, 1, `${use} of ${guise}`);
    }
  }
});

test("a part of memory that is closed cannot be pinned", () => {
  const buffer = new HostMemoryResource().allocate(size);
  const part = MemoryBuffer.fromPointer(buffer.ptr + 8n, 16, { owner: buffer });
  buffer.close();
  assertThrows(() => part.pinned(), TypeError, "Cannot pin a closed MemoryBuffer of 64 bytes");
  assert(!part.isClosed);
});
