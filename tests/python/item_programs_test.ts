/**
 * The programs that read many items, on emulated processors of both architectures: they read all items before the first
 * that needs more, make the calls this requires, and release what an iterator has returned.
 */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { layoutOf } from "../../src/ffi/struct.ts";
import { Status } from "../../src/python/call_programs.ts";
import { item_block, itemOffsets, itemProgram } from "../../src/python/item_programs.ts";
import { type Architecture, base, type Call, emulate, memoryFor, place } from "../support/emulated_calls.ts";
import { missingUnicorn } from "../support/emulator.ts";
import { needs } from "../support/needs.ts";
import { testOnce } from "../support/once.ts";
import { check, fc } from "../support/property.ts";

const named = ["PyFloat_AsDouble", "PyLong_AsLongLongAndOverflow", "PyIter_Next", "Py_DecRef"] as const;
type Name = typeof named[number];

// The block is longer than the space before the functions, but no case has that many items.
const objectAt = (i: number) => place.objects + 0x40 * i;
const kinds = ["float", "int", "other", "none", "true", "false"] as const;
const addresses = new Map(kinds.map((kind, i) => [kind, BigInt(base + objectAt(i + 1))]));
const addressOf = (kind: typeof kinds[number]) => addresses.get(kind) ?? 0n;
const types = { float: 0x7000_0001n, int: 0x7000_0002n } as const;
const listAt = place.objects + 0x400;
const iterator = 0xabcd_ef01n;
const minus = (value: bigint) => BigInt.asUintN(64, -value);
const anything = fc.bigInt({ min: 0n, max: (1n << 64n) - 1n });

const cases = fc.record({
  isIterator: fc.boolean(),
  typeAt: fc.constantFrom(8, 24),
  items: fc.array(
    fc.record({
      kind: fc.oneof({ weight: 6, arbitrary: fc.constantFrom(...kinds) }, {
        weight: 8,
        arbitrary: fc.constantFrom("float" as const, "int" as const),
      }),
      value: anything,
      overflow: fc.oneof(
        { weight: 9, arbitrary: fc.constant(0n) },
        { weight: 1, arbitrary: fc.constantFrom(1n, 0xffff_ffffn) },
      ),
    }),
    { maxLength: 20 },
  ),
  /** How many more items are requested than exist; none for a list. */
  more: fc.nat(2),
});
type Case = typeof cases extends fc.Arbitrary<infer C> ? C : never;

const countOf = (one: Case) => one.items.length + (one.isIterator ? one.more : 0);

/** The expected calls, what was read, and what takes the place of the next item. */
function expectedOf(one: Case) {
  const calls: Call<Name>[] = [];
  const call = (name: Name, args: readonly bigint[], result = 0n, second = 0n) =>
    calls.push({ name, args, returns: [result, second] });
  const read: { status: bigint; value: bigint | null }[] = [];
  const end = (result: bigint | null) => ({ calls, read, result });
  for (const { kind, value, overflow } of one.items) {
    const item = addressOf(kind);
    if (one.isIterator) call("PyIter_Next", [iterator], item);
    if (kind === "other") return end(item);
    if (kind === "float") call("PyFloat_AsDouble", [item], value);
    if (kind === "int") {
      call("PyLong_AsLongLongAndOverflow", [item, BigInt(base + itemOffsets.overflow)], value, overflow);
      if (overflow !== 0n) return end(item);
    }
    read.push({ status: BigInt(Status[kind]), value: kind === "float" || kind === "int" ? value : null });
    if (one.isIterator) call("Py_DecRef", [item]);
  }
  if (countOf(one) === one.items.length) return end(null);
  call("PyIter_Next", [iterator]);
  return end(0n);
}

function memoryOf(one: Case, arch: Architecture, calls: readonly Call<Name>[]) {
  const { memory, set, functionAt } = memoryFor(named, arch, calls);
  kinds.forEach((kind, i) => set(objectAt(i + 1) + one.typeAt, kind in types ? types[kind as keyof typeof types] : 5n));
  one.items.forEach(({ kind }, i) => set(listAt + 8 * i, addressOf(kind)));
  const fields: Partial<Record<keyof typeof itemOffsets, bigint>> = {
    ...Object.fromEntries(named.map((name) => [name, functionAt(name)])),
    ...{ minusFloat: minus(types.float), minusInt: minus(types.int), minusNone: minus(addressOf("none")) },
    ...{ minusTrue: minus(addressOf("true")), minusFalse: minus(addressOf("false")) },
    ...{ source: one.isIterator ? iterator : BigInt(base + listAt), left: BigInt(countOf(one)), result: 0x77n },
  };
  for (const [name, value] of Object.entries(fields)) set(itemOffsets[name as keyof typeof itemOffsets], value);
  return memory;
}

for (const arch of ["x86_64", "aarch64"] as const) {
  testOnce(...needs(missingUnicorn, `${arch}: a program reads items up to the first that needs more`), () => {
    check(
      fc.property(fc.noShrink(fc.array(cases, { minLength: 60, maxLength: 60 })), (all) => {
        const expected = all.map(expectedOf);
        const programs = all.map((one, i) => ({
          program: itemProgram(one.typeAt, one.isIterator),
          memory: memoryOf(one, arch, expected[i]?.calls ?? []),
        }));
        emulate(arch, programs).forEach(({ read, returned, preserved, calls }, i) => {
          const { calls: wanted, read: values, result } = expected[i] ?? { calls: [], read: [], result: null };
          const one = all[i];
          assertEquals(
            calls.map(({ id, args }, k) => ({ name: named[id], args: args.slice(0, wanted[k]?.args.length) })),
            wanted.map(({ name, args }) => ({ name, args: [...args] })),
          );
          assertEquals({ returned, preserved }, { returned: true, preserved: true });
          const left = Number(read(itemOffsets.left));
          assertEquals(left, (one === undefined ? 0 : countOf(one)) - values.length);
          if (left > 0) assertEquals(read(itemOffsets.result), result);
          values.forEach(({ status, value }, k) => {
            assertEquals(read(itemOffsets.items + 16 * k), status);
            if (value !== null) assertEquals(read(itemOffsets.items + 16 * k + 8), value);
          });
        });
      }),
      3,
    );
  });
}

test("the block of items matches its description, and everything that the programs address in it is in reach", () => {
  const { size } = layoutOf(item_block);
  for (const [name, offset] of Object.entries(itemOffsets)) {
    assertEquals(offset % 8, 0, name);
    if (name !== "beyond") assertEquals(offset <= 4088 - 16, true, name);
  }
  assertEquals(size, itemOffsets.beyond + 8, "there is room for the last double");
});
