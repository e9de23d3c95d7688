/**
 * Pieces of native memory: disjoint, zeroed once, and returned to the C allocator when many are free.
 */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { libc } from "../../src/ffi/libc.ts";
import { ffiPort } from "../../src/ffi/port.ts";
import { SlabPool, type Slot } from "../../src/ffi/slab.ts";
import { check, fc } from "../support/property.ts";

interface Content {
  readonly address: bigint;
  readonly bytes: DataView<ArrayBuffer>;
}

test("pieces in use never share a byte, keep what is written, and the memory of free ones is returned", () => {
  const functions = libc();
  const { loading } = functions;
  const blocks = new Map<bigint, bigint>();
  const put = (value: typeof loading) => Object.defineProperty(functions, "loading", { value, configurable: true });
  put({
    ...loading,
    calloc(count, size) {
      const address = loading.calloc(count, size);
      blocks.set(address, count * size);
      return address;
    },
    free(at) {
      assert(blocks.delete(at), "freed what was not allocated, or twice");
      loading.free(at);
    },
  });
  try {
    const steps = fc.array(fc.record({ take: fc.constantFrom(true, true, false), pick: fc.nat() }), {
      maxLength: 600,
      size: "max",
    });
    check(
      fc.property(fc.integer({ min: 1, max: 40 }), steps, (words, steps) => {
        const bytes = 8 * words;
        const pool = new SlabPool(bytes, (address, view): Content => {
          for (let at = 0; at < bytes; at += 8) assertEquals(view.getBigUint64(at, true), 0n, "a new piece is zeroed");
          return { address, bytes: view };
        });
        const isAllocated = (at: bigint) =>
          [...blocks].some(([block, size]) => block <= at && at + BigInt(bytes) <= block + size);
        const out: { slot: Slot<Content>; mark: number }[] = [];
        const returned = new Map<bigint, number>(); // number of allocations so far
        let taken = 0;
        let most = 0;
        steps.forEach(({ take, pick }, mark) => {
          if (take) {
            const slot = pool.allocate();
            const before = returned.get(slot.address) ?? -Infinity;
            assert(taken++ - before >= 64, "a piece is reused too soon");
            assert(isAllocated(slot.address), "a piece of a block that was freed");
            assertEquals([slot.content.address, slot.content.bytes.byteLength], [slot.address, bytes]);
            for (let at = 0; at < bytes; at += 8) slot.content.bytes.setFloat64(at, mark + at, true);
            out.push({ slot, mark });
            most = Math.max(most, out.length);
          } else {
            for (const { slot } of out.splice(pick % Math.max(out.length, 1), 1)) {
              pool.free(slot);
              returned.set(slot.address, taken);
            }
          }
          assert(
            blocks.size <= Math.ceil(most / 64),
            "a block is made only when half of the pieces of all others are in use",
          );
        });
        for (const { slot: { address }, mark } of out) {
          const native = new DataView(ffiPort().memory(address, bytes)); // a fresh view, not the piece's own
          for (let at = 0; at < bytes; at += 8) assertEquals(native.getFloat64(at, true), mark + at);
        }
        for (const { slot } of out.splice(0)) pool.free(slot);
        assertEquals(blocks.size, most > 0 ? 1 : 0, "one block is kept for the next");
        for (let i = 0; i < most; i++) {
          assert(isAllocated(pool.allocate().address), "a piece of a block that was freed");
        }
        for (const block of blocks.keys()) loading.free(block);
        blocks.clear();
      }),
      100,
    );
  } finally {
    put(loading);
  }
});

test("a piece has a positive number of whole words", () => {
  for (const bytes of [0, -8, 4, 12, NaN, 2 ** 60]) {
    assertThrows(() => new SlabPool(bytes, () => null), RangeError, `pieces of ${bytes} bytes`);
  }
});
