import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { joinTimesInto } from "../../../src/vortex/numeric/date_time_parts.ts";
import { check, fc } from "../../support/property.ts";
import { anyBits, bytesOf, randomWords } from "../../support/vortex/words.ts";

test("instants are days, seconds and the rest in units of each size, and wrap", () => {
  const integer = fc.record({ bits: anyBits, isSigned: fc.boolean() });
  const column = fc.record({
    kinds: fc.tuple(integer, integer, integer),
    perSecond: fc.constantFrom(1, 1000, 1_000_000, 1_000_000_000),
    length: fc.oneof(fc.nat(20), fc.nat(5000)),
    seed: fc.nat(),
  });
  check(
    fc.property(column, ({ kinds, perSecond, length, seed }) => {
      const words = kinds.map(({ bits }, index) => randomWords(seed + index, length, bits));
      const valued = ({ bits, isSigned }: typeof kinds[number], word: bigint) =>
        isSigned ? BigInt.asIntN(bits, word) : word;
      const wanted = Array.from({ length }, (_, row) => {
        const [days = 0n, seconds = 0n, rest = 0n] = kinds.map((kind, index) =>
          valued(kind, words[index]?.[row] ?? 0n)
        );
        return (days * 86_400n + seconds) * BigInt(perSecond) + rest;
      });
      const part = (index: 0 | 1 | 2) => ({ ...kinds[index], bytes: bytesOf(words[index] ?? [], kinds[index].bits) });
      const out = new Uint8Array(8 * length);
      joinTimesInto(out, [part(0), part(1), part(2)], perSecond);
      assertEquals(out, bytesOf(wanted, 64));
    }),
    150,
  );
});
