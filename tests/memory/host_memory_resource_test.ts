import { assert, assertEquals, assertNotEquals, assertThrows } from "@std/assert";
import { totalmem } from "node:os";
import { test } from "node:test";
import { FfiError } from "../../src/ffi/errors.ts";
import { HostMemoryResource } from "../../src/memory/host_memory_resource.ts";
import type { MemoryBuffer } from "../../src/memory/memory_buffer.ts";
import { check, fc } from "../support/property.ts";

test("host allocations are aligned, writable to the last byte, and do not overlap", () => {
  const alignments = fc.integer({ min: 3, max: 14 }).map((exponent) => 2 ** exponent);
  check(
    fc.property(alignments, fc.array(fc.nat(5000), { minLength: 1, maxLength: 8 }), (alignment, sizes) => {
      const resource = new HostMemoryResource({ alignment });
      assertEquals(resource.alignment, alignment);
      const buffers = sizes.map((size) => resource.allocate(size));
      buffers.forEach((buffer, i) => {
        assertEquals(buffer.ptr % BigInt(alignment), 0n);
        buffer.bytes().fill(i + 1);
      });
      const ranges = buffers.filter(({ size }) => size > 0).map(({ ptr, size }) => [ptr, ptr + BigInt(size)] as const);
      ranges.sort(([a], [b]) => a < b ? -1 : 1);
      ranges.forEach(([, end], i) => assert(end <= (ranges[i + 1]?.[0] ?? end)));
      buffers.forEach((buffer, i) => assert(buffer.bytes().every((byte) => byte === i + 1)));
      for (const buffer of buffers) buffer.close();
    }),
    200,
  );
});

test("memory is aligned to a cache line unless requested otherwise", () => {
  const resource = new HostMemoryResource();
  assertEquals(resource.alignment, 64);
  assert(resource.isHostAccessible);
  assertEquals(resource.isDeviceAccessible, false);
  const buffers = Array.from({ length: 50 }, (_, i) => resource.allocate(i + 1));
  for (const { ptr } of buffers) assertEquals(ptr % 64n, 0n);
  assertEquals(new Set(buffers.map(({ ptr }) => ptr)).size, 50);
  for (const buffer of buffers) buffer.close();
});

test("a buffer of zero bytes has no address, and is closed like any other", () => {
  const buffer: MemoryBuffer = new HostMemoryResource().allocate(0);
  assertEquals(buffer.ptr, 0n);
  assertEquals(buffer.bytes().length, 0);
  buffer.close();
  assertThrows(() => buffer.ptr, TypeError, "closed");
});

test("an invalid size or alignment is refused", () => {
  const resource = new HostMemoryResource();
  for (const size of [-1, 1.5, NaN, Infinity, 2 ** 53]) {
    assertThrows(() => resource.allocate(size), RangeError, `Cannot allocate ${size} bytes`);
  }
  for (const alignment of [0, 4, 12, 63, -64, 64.5, NaN, 2 ** 53]) {
    assertThrows(() => new HostMemoryResource({ alignment }), RangeError, `Cannot align memory to ${alignment} bytes`);
  }
});

test("a size that no machine has is an error, not a crash", () => {
  const error = assertThrows(() => new HostMemoryResource().allocate(2 ** 52), FfiError, `Cannot allocate ${2 ** 52}`);
  const [, used, free, total] = /the host uses (\d+) and has (\d+) of (\d+) free$/.exec(error.message) ?? [];
  assertEquals(Number(used) + Number(free), Number(total));
  assert(Math.abs(Number(total) - totalmem()) < 2 ** 20, `${total} bytes in all, and the runtime says ${totalmem()}`);
});

test("freed memory is reused", () => {
  const resource = new HostMemoryResource();
  const addresses = new Set<bigint>();
  for (let i = 0; i < 1000; i++) {
    using buffer = resource.allocate(1 << 16);
    addresses.add(buffer.ptr);
  }
  assertNotEquals(addresses.size, 0);
  assert(addresses.size < 100, `${addresses.size} different addresses for one buffer at a time`);
});
