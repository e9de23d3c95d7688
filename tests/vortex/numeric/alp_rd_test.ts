import { assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { joinInto, lookUpLeft } from "../../../src/vortex/numeric/alp_rd.ts";
import { check, fc } from "../../support/property.ts";
import { bytesOf, randomWords } from "../../support/vortex/words.ts";

test("the upper parts are put before the lower ones, at every width of these", () => {
  const column = fc.constantFrom(32 as const, 64 as const).chain((bits) =>
    fc.record({ bits: fc.constant(bits), width: fc.nat(bits - 1), length: fc.nat(100), seed: fc.nat() })
  );
  check(
    fc.property(column, ({ bits, width, length, seed }) => {
      const [left, right] = [randomWords(seed, length, 16), randomWords(seed + 1, length, width)];
      const out = new Uint8Array(length * bits / 8);
      joinInto(out, Uint16Array.from(left, Number), bytesOf(right, bits), bits, width);
      const joined = left.map((one, row) => BigInt.asUintN(bits, one << BigInt(width)) | (right[row] ?? 0n));
      assertEquals(out, bytesOf(joined, bits));
    }),
    500,
  );
});

test("upper parts are looked up, and one that is not in the dictionary is refused if its row is not null", () => {
  assertEquals(lookUpLeft(Uint16Array.of(1, 0, 1), [500, 40_000], null), Uint16Array.of(40_000, 500, 40_000));
  assertEquals(lookUpLeft(Uint8Array.of(1, 9), [5, 6], Uint8Array.of(0b01))[0], 6);
  assertThrows(() => lookUpLeft(Uint8Array.of(1, 2), [5, 6], null), Error, "Row 1 has code 2, expected one below 2");
  assertThrows(() => lookUpLeft(Uint8Array.of(1, 2), [5, 6], Uint8Array.of(0b10)), Error, "Row 1 has code 2");
});
