/** Large new memory is backed by large pages where the system has them for who asks, and is memory like any other. */
import { assert, assertEquals, assertInstanceOf, assertMatch, assertThrows } from "@std/assert";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { newArrayBuffer } from "../../src/native/huge_pages.ts";
import { ffiPort } from "../../src/ffi/port.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";

const MiB = 2 ** 20;

/** The flags of the mapping that an address is in, as the kernel names them: `hg` for large pages. */
function flagsOf(address: bigint): readonly string[] {
  let isWithin = false;
  for (const line of readFileSync("/proc/self/smaps", "utf8").split("\n")) {
    const range = /^([0-9a-f]+)-([0-9a-f]+) /.exec(line);
    if (range !== null) isWithin = BigInt(`0x${range[1]}`) <= address && address < BigInt(`0x${range[2]}`);
    else if (isWithin && line.startsWith("VmFlags:")) return line.split(/\s+/).slice(1);
  }
  return [];
}

const setting = "/sys/kernel/mm/transparent_hugepage/enabled";
const missing = existsSync(setting) ? null : `this kernel has no large pages for who asks: ${setting} is missing`;

test(...needs(missing, "the system is asked for large pages for all of a large array but its ends"), () => {
  for (const size of [4 * MiB, 9 * MiB + 5]) {
    const buffer = newArrayBuffer(size);
    const address = ffiPort().addressOf(buffer);
    for (const at of [65_536n, BigInt(size >> 1), BigInt(size) - 2n * 65_536n]) {
      assert(flagsOf(address + at).includes("hg"), `byte ${at} of ${size}`);
    }
  }
});

test("more than there can be is refused with what was asked for, what the host has, and a way out", () => {
  const error = assertThrows(
    () => newArrayBuffer(1e12),
    RangeError,
    "Cannot make an ArrayBuffer of 1000000000000 bytes",
  );
  assertMatch(error.message, /the host uses \d+ and has \d+ of \d+ free\. .* HostMemoryResource/);
  assertInstanceOf(error.cause, RangeError);
});

test("new memory has the size that was asked for, is zero, and keeps what is written", () => {
  const sizes = fc.oneof(fc.nat(100), fc.integer({ min: 4 * MiB - 2, max: 4 * MiB + 2 }), fc.nat(12 * MiB));
  check(
    fc.property(sizes, fc.nat(), (size, seed) => {
      const bytes = new Uint8Array(newArrayBuffer(size));
      assertEquals(bytes.length, size);
      const ends = [...bytes.subarray(0, 9), ...bytes.subarray(-9)];
      assert(ends.every((byte) => byte === 0) && bytes.every((byte) => byte === 0));
      bytes.fill(seed & 255 | 1);
      assertEquals([bytes[0], bytes.at(-1)], size === 0 ? [undefined, undefined] : [seed & 255 | 1, seed & 255 | 1]);
    }),
    20,
  );
});
