import { assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { takeInto } from "../../../src/vortex/numeric/take.ts";
import { check, fc } from "../../support/property.ts";
import { bytesOf, randomWords, wordsOf } from "../../support/vortex/words.ts";

const codeArrays = [Uint8Array, Uint16Array, Uint32Array, Float64Array] as const;

test("each code is looked up, to the bit, and codes of null rows mean nothing", () => {
  const column = fc.record({
    width: fc.constantFrom(1, 2, 4, 8, 16, 32),
    count: fc.integer({ min: 1, max: 250 }),
    length: fc.nat(400),
    codes: fc.constantFrom(...codeArrays),
    seed: fc.nat(),
    hasNulls: fc.boolean(),
  });
  check(
    fc.property(column, ({ width, count, length, codes: Codes, seed, hasNulls }) => {
      const values = randomWords(seed, count, 8 * width);
      const validity = hasNulls ? bytesOf(randomWords(seed + 1, Math.ceil(length / 8), 8), 8) : null;
      const isThere = (row: number) => validity === null || ((validity[row >> 3] ?? 0) >> (row & 7) & 1) === 1;
      const random = randomWords(seed + 2, length, 8).map(Number);
      const codes = Codes.from(random.map((code, row) => isThere(row) ? code % count : 255));
      const out = new Uint8Array(length * width);
      takeInto(out, bytesOf(values, 8 * width), width, codes, validity);
      const found = wordsOf(out, 8 * width);
      for (let row = 0; row < length; row++) {
        if (isThere(row)) assertEquals(found[row], values[(random[row] ?? 0) % count]);
      }
    }),
    500,
  );
});

test("a code without a value is refused if its row is not null", () => {
  const take = (validity: Uint8Array | null) =>
    takeInto(new Uint8Array(8), new Uint8Array(12), 4, Uint8Array.of(2, 3), validity);
  take(Uint8Array.of(0b01));
  assertThrows(() => take(null), Error, "Row 1 has code 3, expected one below 3");
  assertThrows(() => take(Uint8Array.of(0b10)), Error, "Row 1 has code 3");
});
