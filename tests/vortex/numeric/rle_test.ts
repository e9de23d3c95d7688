import { assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { rleCodes } from "../../../src/vortex/numeric/rle.ts";
import { check, fc } from "../../support/property.ts";
import { encodeRle } from "../../support/vortex/encoders.ts";
import { randomWords } from "../../support/vortex/words.ts";

test("indices of each block are looked up in its own values, in any slice", () => {
  const column = fc.record({
    offset: fc.nat(1023),
    length: fc.nat(3000),
    distinct: fc.integer({ min: 1, max: 40 }),
    origin: fc.nat(100),
    seed: fc.nat(),
  });
  check(
    fc.property(column, ({ offset, length, distinct, origin, seed }) => {
      const known = randomWords(seed, distinct, 64);
      const words = randomWords(seed + 1, offset + length, 32).map((one) => known[Number(one) % distinct] ?? 0n);
      const { values, indices, starts } = encodeRle(words, origin);
      const [own, offsets] = [Uint16Array.from(indices), Float64Array.from(starts)];
      const codes = rleCodes(values.length, own, offsets, { offset, length, validity: null });
      assertEquals(Array.from(codes, (code) => values[code]), words.slice(offset));
    }),
    150,
  );
});

test("an index beyond its block's values is refused if its row is not null, and so are blocks without values", () => {
  const values = Uint8Array.of(10, 11, 12, 13);
  const decode = (starts: number[], index: number, validity: Uint8Array | null = null) => {
    const indices = new Uint8Array(2048);
    indices[5] = index;
    const codes = rleCodes(values.length, indices, Uint32Array.from(starts), { offset: 5, length: 1030, validity });
    return values[codes[0] ?? NaN];
  };
  assertEquals(decode([7, 9], 1), 11);
  assertEquals(decode([0, 1], 200), 10); // a single value, whatever the index
  assertThrows(() => decode([7, 9], 2), Error, "Row 0 has index 2, expected one below 2");
  decode([7, 9], 2, new Uint8Array(129));
  assertThrows(() => decode([7, 7], 0), Error, "Row 0 has index 0, expected one below 0");
  decode([7, 7], 0, new Uint8Array(129)); // a block of nulls only
  assertThrows(() => decode([7, 6], 0), Error, "Block 0 has values 0 to -1, expected a range within 0 to 4");
  assertThrows(() => decode([7, 12], 0), Error, "Block 0 has values 0 to 5");
  assertThrows(() => decode([7], 0), Error, "Block 1 has values NaN to 4");
  assertThrows(
    () => rleCodes(4, new Uint8Array(10), Uint8Array.of(0), { offset: 2, length: 9, validity: null }),
    Error,
    "Expected indices for 9 rows at offset 2, got 10",
  );
});
