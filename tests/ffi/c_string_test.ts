import { assertEquals, assertThrows } from "@std/assert";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { HostMemoryResource } from "../../mod.ts";
import { MADV } from "../../bindings/libc.ts";
import { libc } from "../../src/ffi/libc.ts";
import { NativeArena } from "../../src/ffi/arena.ts";
import { cString, decodeText, readCString, readField, readString } from "../../src/ffi/c_string.ts";
import { check, fc } from "../support/property.ts";

const text = fc.string({ unit: "binary", maxLength: 100 });

test("cString is UTF-8 and a NUL, as Buffer encodes it", () => {
  check(
    fc.property(text, (text) => {
      if (text.includes("\0")) assertThrows(() => cString(text), TypeError, "it contains NUL");
      else assertEquals([...cString(text)], [...Buffer.from(text, "utf8"), 0]);
    }),
    500,
  );
});

test("half a surrogate pair is refused, wherever it stands", () => {
  const half = fc.oneof(fc.integer({ min: 0xdc00, max: 0xdfff }), fc.integer({ min: 0xd800, max: 0xdbff }));
  const plain = fc.string({ unit: "grapheme-ascii", maxLength: 5 });
  check(
    fc.property(plain, half, plain, (before, code, after) => {
      assertThrows(() => cString(before + String.fromCharCode(code) + after), TypeError, "half a surrogate pair");
    }),
    200,
  );
});

test("a string is read as it was written, up to the first NUL", () => {
  check(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 60 }), fc.nat(80), (bytes, size) => {
      using arena = new NativeArena();
      const memory = arena.bytes(Math.max(bytes.length + 1, size));
      memory.bytes.set(bytes);
      // Buffer's decoder is the oracle: it keeps a byte order mark, and replaces invalid UTF-8.
      const whole = Buffer.from(bytes);
      const end = bytes.indexOf(0);
      const cut = end < 0 ? whole : whole.subarray(0, end);
      assertEquals(readCString(memory.address), cut.toString("utf8"));
      assertEquals(readString(memory.address, bytes.length), whole.toString("utf8"));
      assertEquals(readField(new Uint8Array(bytes)), cut.toString("utf8"));
    }),
    500,
  );
});

test("a null pointer and an empty string read as an empty string", () => {
  using arena = new NativeArena();
  assertEquals([readCString(0n), readCString(arena.cString("")), readString(0n, 0)], ["", "", ""]);
});

test("a byte order mark is a character like any other", () => {
  using arena = new NativeArena();
  assertEquals(readCString(arena.cString("\ufeffa")), "\ufeffa");
});

test("a text longer than any string of the runtime is refused as what it is", () => {
  // No string is that long. Nothing is written, and the pages that are read are all the same one.
  const length = 2 ** 31;
  using memory = new HostMemoryResource().allocate(length + 2 ** 21);
  const start = (memory.ptr + 2n ** 21n - 1n) / 2n ** 21n * 2n ** 21n;
  libc().paging.madvise(start, BigInt(length), MADV.HUGEPAGE);
  assertThrows(() => readString(start, length), RangeError, "Cannot make a string of 2147483648 bytes");
  assertEquals(decodeText(new Uint8Array(0)), "");
});
