import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { packedBytes, unpackInto } from "../../../src/vortex/numeric/unpack.ts";
import { check, fc } from "../../support/property.ts";
import { pack } from "../../support/vortex/fastlanes.ts";
import { anyBits, bytesOf, randomWords } from "../../support/vortex/words.ts";

test("words of every size are unpacked from every width", () => {
  for (const bits of [8, 16, 32, 64] as const) {
    for (let width = 0; width <= bits; width++) {
      const words = randomWords(bits * 100 + width, 2048, width);
      const packed = pack(words, bits, width);
      const out = new Uint8Array(2048 * bits / 8);
      unpackInto(out, packed, { bits, width, offset: 0 });
      assertEquals(out, bytesOf(words, bits), `${bits} ${width}`);
    }
  }
});

test("any slice of a packed column is unpacked, with steps or without, whatever its neighbours are", () => {
  const slice = fc.record({
    bits: anyBits,
    width: fc.nat(64),
    offset: fc.nat(1023),
    length: fc.oneof(fc.nat(20), fc.nat(3000), fc.nat(40_000)),
    seed: fc.nat(),
    reference: fc.option(fc.bigInt(-(2n ** 63n), 2n ** 64n - 1n)),
  });
  check(
    fc.property(slice, ({ bits, width: any, offset, length, seed, reference }) => {
      const width = any % (bits + 1);
      const words = randomWords(seed, offset + length, width);
      const packed = pack(words, bits, width, 2n ** BigInt(width) - 1n);
      const steps = reference === null ? [] : [{ kind: "add", reference } as const];
      assertEquals(packed.length, packedBytes(length, { bits, width, offset }));
      // Surrounded by bytes that must not be touched.
      const room = new Uint8Array(length * bits / 8 + 16).fill(0xa5);
      unpackInto(room.subarray(8, -8), packed, { bits, width, offset, steps });
      const wanted = words.slice(offset).map((word) => BigInt.asUintN(bits, word + (reference ?? 0n)));
      const around = new Uint8Array(8).fill(0xa5);
      assertEquals(room, Uint8Array.from([...around, ...bytesOf(wanted, bits), ...around]));
    }),
    80,
  );
});
