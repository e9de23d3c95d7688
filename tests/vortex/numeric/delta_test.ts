import { assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { deltaInto } from "../../../src/vortex/numeric/delta.ts";
import { check, fc } from "../../support/property.ts";
import { encodeDelta } from "../../support/vortex/encoders.ts";
import { anyBits, bytesOf, randomWords } from "../../support/vortex/words.ts";

test("differences add up to the words, whatever a lane begins with, in any slice", () => {
  const column = fc.record({
    bits: anyBits,
    offset: fc.nat(1023),
    length: fc.nat(3000),
    seed: fc.nat(),
    fromZero: fc.boolean(),
  });
  check(
    fc.property(column, ({ bits, offset, length, seed, fromZero }) => {
      const words = randomWords(seed, offset + length, bits);
      const { deltas, bases } = encodeDelta(words, bits, (word) => fromZero ? 0n : word);
      const out = new Uint8Array(length * bits / 8);
      deltaInto(out, bytesOf(deltas, bits), bytesOf(bases, bits), { bits, offset });
      assertEquals(out, bytesOf(words.slice(offset), bits));
    }),
    150,
  );
});

test("blocks without bases, and rows without blocks, are refused", () => {
  const decode = (rows: number, deltas: number, bases: number) =>
    deltaInto(new Uint8Array(4 * rows), new Uint8Array(4 * deltas), new Uint8Array(4 * bases), { bits: 32, offset: 5 });
  decode(1019, 1024, 32);
  assertThrows(() => decode(1020, 1024, 32), Error, "Expected deltas for 1020 words at offset 5, got 1 blocks");
  assertThrows(() => decode(5, 1024, 31), Error, "Expected 128 bytes of bases for each 4096 of deltas");
  assertThrows(() => decode(5, 1023, 32), Error, "got 128 for 4092");
});
