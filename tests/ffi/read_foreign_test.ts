/**
 * Reading memory that nothing retains.
 */
import { assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { NativeArena } from "../../src/ffi/arena.ts";
import { maxForeignBytes, readForeign } from "../../src/ffi/read_foreign.ts";
import { check, fc } from "../support/property.ts";

test("foreign memory is read as it is, whatever the address and the length, and as a copy", () => {
  using arena = new NativeArena();
  const { address, bytes } = arena.bytes(2 * maxForeignBytes);
  const contents = fc.uint8Array({ minLength: 2 * maxForeignBytes, maxLength: 2 * maxForeignBytes });
  check(
    fc.property(contents, fc.nat(maxForeignBytes), fc.nat(maxForeignBytes), (contents, from, length) => {
      bytes.set(contents);
      const read = readForeign(address + BigInt(from), length);
      bytes.fill(0);
      assertEquals([...new Uint8Array(read.buffer, 0, length)], [...contents.subarray(from, from + length)]);
    }),
    200,
  );
});

test("NULL is not read, nor more than the destination holds", () => {
  assertThrows(() => readForeign(0n, 8), RangeError, "not at NULL");
  assertThrows(() => readForeign(8n, maxForeignBytes + 1), RangeError, `at most ${maxForeignBytes}`);
});
