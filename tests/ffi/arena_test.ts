import { assert, assertEquals, assertGreaterOrEqual, assertStrictEquals, assertThrows } from "@std/assert";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { CScalar, StructDescription } from "../../bindings/abi.ts";
import { allocate, NativeArena } from "../../src/ffi/arena.ts";
import { FfiError } from "../../src/ffi/errors.ts";
import { libc } from "../../src/ffi/libc.ts";
import { ffiPort } from "../../src/ffi/port.ts";
import { cString, readCString } from "../../src/ffi/c_string.ts";
import { check, fc, scaled } from "../support/property.ts";
import { alignmentOf, descriptions, sizeOf } from "./layout_oracle.ts";
import { scalars } from "./scalars.ts";

/** One step of a program that allocates. */
type Step =
  | { readonly out: CScalar }
  | { readonly struct: StructDescription }
  | { readonly bytes: number; readonly alignment: number | undefined }
  | { readonly text: string };

const text = fc.string({ unit: "binary", maxLength: 40 }).filter((text) => text.isWellFormed() && !text.includes("\0"));

const program: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    fc.record({ out: fc.constantFrom(...scalars) }),
    fc.record({ struct: descriptions }),
    fc.record({
      bytes: fc.oneof(fc.nat(64), fc.nat(6000), fc.constantFrom(0, 1, 4095, 4096, 4097)),
      alignment: fc.oneof(fc.constant(undefined), fc.nat(13).map((bits) => 2 ** bits)),
    }),
    fc.record({ text }),
  ),
  { maxLength: 30 },
);

/** A slot of the arena, and its content. */
interface Slot {
  readonly address: bigint;
  readonly seen: Uint8Array;
  readonly alignment: number;
  readonly content: Uint8Array;
}

function take(arena: NativeArena, step: Step): Slot {
  const slot = (address: bigint, seen: Uint8Array, length: number, alignment: number, content?: Uint8Array) => {
    assertEquals(seen.length, length);
    return { address, seen, alignment, content: content ?? new Uint8Array(length) };
  };
  const ofView = ({ $address, $bytes }: { readonly $address: bigint; readonly $bytes: DataView<ArrayBuffer> }) =>
    [$address, new Uint8Array($bytes.buffer, $bytes.byteOffset, $bytes.byteLength)] as const;
  if ("out" in step) return slot(...ofView(arena.out(step.out)), sizeOf(step.out), sizeOf(step.out));
  if ("struct" in step) {
    return slot(...ofView(arena.struct(step.struct)), sizeOf(step.struct), alignmentOf(step.struct));
  }
  if ("text" in step) {
    const encoded = new TextEncoder().encode(`${step.text}\0`);
    const address = arena.cString(step.text);
    return slot(address, new Uint8Array(ffiPort().memory(address, encoded.length)), encoded.length, 1, encoded);
  }
  const { address, bytes } = step.alignment === undefined
    ? arena.bytes(step.bytes)
    : arena.bytes(step.bytes, step.alignment);
  return slot(address, bytes, step.bytes, step.alignment ?? 8);
}

test("slots of any program are zeroed, aligned, disjoint, and at their address", () => {
  check(
    fc.property(program, (steps) => {
      using arena = new NativeArena();
      const slots: Slot[] = [];
      for (const [i, step] of steps.entries()) {
        const slot = take(arena, step);
        assertEquals(slot.seen, slot.content); // free of data written to other slots
        assertEquals(slot.address % BigInt(slot.alignment), 0n, `alignment ${slot.alignment}`);
        slot.seen.fill(i + 1); // if it overlaps another slot, that slot changes
        slots.push(slot);
      }
      for (const [i, { address, seen }] of slots.entries()) {
        assert(seen.every((byte) => byte === i + 1));
        if (seen.length > 0) assertEquals(new Uint8Array(ffiPort().memory(address, seen.length)).slice(), seen.slice());
      }
      const total = slots.reduce((sum, { seen }) => sum + seen.length, 0);
      assertGreaterOrEqual(arena.allocated, total);
    }),
    200,
  );
});

test("small slots share a chunk: a thousand of them do not cost a thousand allocations", () => {
  using arena = new NativeArena();
  assertEquals(arena.allocated, 0); // nothing is allocated before the first slot
  arena.out("u64");
  const first = arena.allocated;
  for (let i = 0; i < 300; i++) arena.out("u64");
  assertEquals(arena.allocated, first);
  for (let i = 0; i < 1000; i++) arena.out("u64");
  assert(arena.allocated < 2 * 1301 * 8, `${arena.allocated} bytes for ${1301 * 8}`);
});

test("C writes an out-parameter, and value reads it", () => {
  using arena = new NativeArena();
  const { memset } = libc().memory;
  const number = arena.out("i32");
  assertEquals(number.value, 0);
  memset(number.$address, 0xff, 4n);
  assertEquals(number.value, -1);
  const pointer = arena.out("ptr");
  memset(pointer.$address, 0x7f, 8n);
  assertEquals(pointer.value, 0x7f7f_7f7f_7f7f_7f7fn);
  number.value = 42;
  assertEquals(new Int32Array(ffiPort().memory(number.$address, 4))[0], 42);
});

test("a string in the arena is what C reads: as long as its bytes, and the same text", () => {
  check(
    fc.property(text, (text) => {
      using arena = new NativeArena();
      const address = arena.cString(text);
      assertEquals(libc().loading.strlen(address), BigInt(new TextEncoder().encode(text).length));
      assertEquals(readCString(address), text);
    }),
    300,
  );
});

test("a string with NUL is refused", () => {
  using arena = new NativeArena();
  assertThrows(() => arena.cString("a\0b"), TypeError, 'Cannot pass "a\\u0000b" to C: it contains NUL');
  assertThrows(() => cString("\0"), TypeError);
});

test("a closed arena allocates nothing, and closing it twice is harmless", () => {
  const arena = new NativeArena();
  arena.out("i32");
  arena.bytes(10_000);
  arena.close();
  arena.close();
  arena[Symbol.dispose]();
  assertEquals(arena.allocated, 0);
  for (
    const use of [
      () => arena.out("i32"),
      () => arena.bytes(0),
      () => arena.cString(""),
      () => arena.struct({ a: "u8" }),
    ]
  ) {
    assertThrows(use, FfiError, "Cannot allocate from a closed arena");
  }
  const unused = new NativeArena();
  unused.close();
  assertThrows(() => unused.out("i32"), FfiError);
});

test("an invalid size or alignment is refused, and leaves the arena as it was", () => {
  using arena = new NativeArena();
  const first = arena.bytes(8);
  for (const size of [-1, -8, 0.5, NaN, Infinity, 2 ** 53]) {
    assertThrows(() => arena.bytes(size), RangeError, `Cannot allocate ${size} bytes`);
  }
  for (const alignment of [0, -8, 3, 0.5, 12, NaN, Infinity]) {
    assertThrows(() => arena.bytes(8, alignment), RangeError, `Cannot align to ${alignment} bytes`);
  }
  assertEquals(arena.bytes(8).address, first.address + 8n);
});

test("running out of memory is an FfiError that says how much was requested", () => {
  assertThrows(() => allocate(2 ** 52), FfiError, `Cannot allocate ${2 ** 52} bytes of host memory`);
  using arena = new NativeArena();
  assertThrows(() => arena.bytes(2 ** 52), FfiError, "of host memory: calloc returned NULL");
  assertEquals(arena.out("u8").value, 0); // the arena remains usable
});

test("allocate gives zeroed memory, aligned for any scalar that fits into it", () => {
  const addresses = Array.from({ length: 50 }, (_, i) => allocate(1 + i * 37));
  for (const [i, address] of addresses.entries()) {
    assertEquals(address % (i === 0 ? 1n : 16n), 0n); // jemalloc aligns 8 bytes to 8
    assertEquals(new Uint8Array(ffiPort().memory(address, 1 + i * 37)).slice(), new Uint8Array(1 + i * 37));
    libc().memory.memset(address, 0xff, BigInt(1 + i * 37)); // so that a reused block is not zero by chance
    libc().loading.free(address);
  }
});

test("opening and closing arenas leaves resident memory flat", () => {
  const round = (count: number) => {
    for (let i = 0; i < count; i++) {
      using arena = new NativeArena();
      arena.bytes(100_000).bytes.fill(1);
      arena.out("u64");
    }
  };
  round(2000);
  const before = residentBytes();
  round(scaled(10_000)); // leaking them would take a gigabyte
  assert(residentBytes() - before < 64e6, `${residentBytes() - before} bytes more`);
});

function residentBytes(): number {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1]) * 1024;
}

test("two slots of one type are views of one class", () => {
  using arena = new NativeArena();
  assertStrictEquals(Object.getPrototypeOf(arena.out("i32")), Object.getPrototypeOf(arena.out("i32")));
});
