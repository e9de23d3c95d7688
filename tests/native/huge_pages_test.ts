/** Large new memory has large pages where the system gives them on request, and behaves like any other memory. */
import { assert, assertEquals, assertInstanceOf, assertMatch, assertThrows } from "@std/assert";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { HostMemoryResource } from "../../mod.ts";
import type { NativeCall } from "../../src/native/call_ring.ts";
import { newArrayBuffer, pageCalls, unwrittenArrayBuffer } from "../../src/native/huge_pages.ts";
import { canStartThreads, ThreadTeam } from "../../src/native/thread_team.ts";
import { ffiPort } from "../../src/ffi/port.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";

const MiB = 2 ** 20;

/** The kernel's values for a keyword, for the mapping that contains an address. */
function wordsOf(address: bigint, word: string): readonly string[] {
  let isWithin = false;
  for (const line of readFileSync("/proc/self/smaps", "utf8").split("\n")) {
    const range = /^([0-9a-f]+)-([0-9a-f]+) /.exec(line);
    if (range !== null) isWithin = BigInt(`0x${range[1]}`) <= address && address < BigInt(`0x${range[2]}`);
    else if (isWithin && line.startsWith(`${word}:`)) return line.split(/\s+/).slice(1);
  }
  return [];
}

const setting = "/sys/kernel/mm/transparent_hugepage/enabled";
const missing = existsSync(setting) ? null : `this kernel has no large pages on request: ${setting} is missing`;

test(...needs(missing, "the system is asked for large pages for all of a large array but its ends"), () => {
  for (const make of [newArrayBuffer, unwrittenArrayBuffer]) {
    for (const size of [4 * MiB, 9 * MiB + 5]) {
      const buffer = make(size);
      const address = ffiPort().addressOf(buffer);
      for (const at of [65_536n, BigInt(size >> 1), BigInt(size) - 2n * 65_536n]) {
        assert(wordsOf(address + at, "VmFlags").includes("hg"), `byte ${at} of ${size}`); // marked for large pages
      }
    }
  }
});

test("the calls for consecutive parts of memory create each large page once, and none beyond the end", () => {
  const [large, least] = [2 * MiB, 65_536];
  check(
    fc.property(
      fc.nat(9 * MiB),
      fc.nat(20 * MiB),
      fc.integer({ min: 100_000, max: 9 * MiB }),
      (start, length, part) => {
        const end = start + length;
        const made: (readonly [at: number, bytes: number])[] = [];
        for (let at = start; at < end; at += part) {
          const calls = pageCalls(BigInt(at), BigInt(Math.min(at + part, end)), BigInt(end));
          made.push(...calls.map(([, address = 0n, bytes = 0n]) => [Number(address), Number(bytes)] as const));
        }
        const expected: [number, number][] = [];
        for (let at = Math.ceil(start / large) * large; at < end; at += large) {
          const bytes = Math.min(large, Math.floor((end - at) / least) * least);
          if (bytes > 0) expected.push([at, bytes]);
        }
        assertEquals(made, expected);
      },
    ),
    300,
  );
});

test(...needs(canStartThreads() ? null : "machine code is forbidden here", "threads make pages of new memory"), () => {
  using memory = new HostMemoryResource().allocate(32 * MiB);
  const middle = memory.ptr + 16n * BigInt(MiB);
  const resident = () => Number(wordsOf(middle, "Rss")[0]) / 1024; // MiB
  const before = resident();
  const calls: NativeCall[] = pageCalls(memory.ptr, memory.ptr + 32n * BigInt(MiB), memory.ptr + 32n * BigInt(MiB));
  using team = ThreadTeam.start({ threads: 2, rounds: 1, calls: calls.length });
  team.begin(calls);
  team.finishAll();
  assert(resident() - before >= 29, `${resident() - before} MiB of 32 have become resident`);
  assert(memory.bytes().every((byte) => byte === 0));
});

test("an impossible size is refused with the size, the host's memory, and an alternative", () => {
  for (const make of [newArrayBuffer, unwrittenArrayBuffer]) {
    const error = assertThrows(() => make(1e12), RangeError, "Cannot make an ArrayBuffer of 1000000000000 bytes");
    assertMatch(error.message, /the host uses \d+ and has \d+ of \d+ free\. .* HostMemoryResource/);
    assertInstanceOf(error.cause, RangeError);
  }
});

test("new memory has the requested size, is zero, and keeps bytes written to it", () => {
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
    10,
  );
});

test("unwritten memory has the requested size, and keeps bytes written to it", () => {
  const sizes = fc.oneof(fc.nat(100), fc.integer({ min: 4 * MiB - 2, max: 4 * MiB + 2 }), fc.nat(12 * MiB));
  check(
    fc.property(sizes, fc.nat(255), (size, value) => {
      const buffer = unwrittenArrayBuffer(size);
      assertInstanceOf(buffer, ArrayBuffer);
      assertEquals([buffer.byteLength, buffer.resizable], [size, false]);
      const bytes = new Uint8Array(buffer).fill(value);
      const { length } = structuredClone(bytes, { transfer: [buffer] }); // transferable: nothing else owns it
      assertEquals([length, buffer.detached, bytes.length], [size, true, 0]);
    }),
    20,
  );
});
