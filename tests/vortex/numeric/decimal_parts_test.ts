import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { joinPartsInto } from "../../../src/vortex/numeric/decimal_parts.ts";
import { check, fc } from "../../support/property.ts";
import { anyBits, bytesOf, randomWords } from "../../support/vortex/words.ts";

test("parts are put behind each other, the first with its sign", () => {
  const column = fc.record({
    first: anyBits,
    lower: fc.array(anyBits, { minLength: 1, maxLength: 3 }),
    length: fc.nat(50),
    seed: fc.nat(),
    isWide: fc.boolean(),
  });
  check(
    fc.property(column, ({ first, lower, length, seed, isWide }) => {
      const width = isWide || lower.length > 1 ? 32 : 16;
      const top = randomWords(seed, length, first);
      const parts = lower.map((bits, index) => randomWords(seed + 1 + index, length, bits));
      const wanted = top.map((word, row) =>
        parts.reduce((joined, part) => joined << 64n | (part[row] ?? 0n), BigInt.asIntN(first, word))
      );
      const out = new Uint8Array(length * width);
      joinPartsInto(
        out,
        width,
        { bytes: bytesOf(top, first), bits: first },
        parts.map((part, index) => ({ bytes: bytesOf(part, lower[index] ?? 0), bits: lower[index] ?? 8 })),
      );
      assertEquals(out, bytesOf(wanted, 8 * width));
    }),
    500,
  );
});
