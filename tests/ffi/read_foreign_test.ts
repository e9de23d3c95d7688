/**
 * Reading memory that nobody keeps.
 */
import { assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { NativeArena } from "../../src/ffi/arena.ts";
import { peek, peekBytes } from "../../src/ffi/read_foreign.ts";
import { check, fc } from "../support/property.ts";

test("what is read is what is there, whatever the address and the length, and it is a copy", () => {
  using arena = new NativeArena();
  const { address, bytes } = arena.bytes(2 * peekBytes);
  const contents = fc.uint8Array({ minLength: 2 * peekBytes, maxLength: 2 * peekBytes });
  check(
    fc.property(contents, fc.nat(peekBytes), fc.nat(peekBytes), (contents, from, length) => {
      bytes.set(contents);
      const read = peek(address + BigInt(from), length);
      bytes.fill(0);
      assertEquals([...new Uint8Array(read.buffer, 0, length)], [...contents.subarray(from, from + length)]);
    }),
    200,
  );
});

test("NULL is not read, nor more than there is a place for", () => {
  assertThrows(() => peek(0n, 8), RangeError, "not at NULL");
  assertThrows(() => peek(8n, peekBytes + 1), RangeError, `at most ${peekBytes}`);
});
