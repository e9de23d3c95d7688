import { assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { alpStep } from "../../../src/vortex/numeric/alp.ts";
import type { Step } from "../../../src/vortex/numeric/kernel.ts";
import { applySteps } from "../../../src/vortex/numeric/unpack.ts";
import { check, fc } from "../../support/property.ts";
import { anyBits, bytesOf, randomWords } from "../../support/vortex/words.ts";

/** A step applied to one unsigned word. */
function applied(word: bigint, bits: number, step: Step): bigint {
  if (step.kind === "add") return BigInt.asUintN(bits, word + step.reference);
  if (step.kind === "zigzag") return BigInt.asUintN(bits, word % 2n === 0n ? word / 2n : -(word + 1n) / 2n);
  const view = new DataView(new ArrayBuffer(8));
  const [up, down] = step.factors;
  const integer = BigInt.asIntN(bits, word);
  if (bits === 64) {
    view.setFloat64(0, Number(integer) * up * down);
    return view.getBigUint64(0);
  }
  const round = Math.fround;
  view.setFloat32(0, round(round(round(Number(integer)) * round(up)) * round(down)));
  return BigInt(view.getUint32(0));
}

test("steps do to each word what they do to one", () => {
  const reference = fc.bigInt(-(2n ** 63n), 2n ** 64n - 1n);
  const integerStep = fc.oneof(
    fc.constant<Step>({ kind: "zigzag" }),
    reference.map((reference): Step => ({ kind: "add", reference })),
  );
  const exponent = fc.nat(18);
  const chain = fc.record({
    bits: anyBits,
    steps: fc.array(integerStep, { maxLength: 4 }),
    alp: fc.option(fc.tuple(exponent, exponent)),
    seed: fc.nat(),
    significant: fc.integer({ min: 1, max: 64 }),
    length: fc.oneof(fc.nat(40), fc.nat(10_000)),
    inPlace: fc.boolean(),
  });
  check(
    fc.property(chain, ({ bits, steps: integerSteps, alp, seed, significant, length, inPlace }) => {
      const isFloat = alp !== null && bits >= 32;
      const last = isFloat ? [bits === 64 ? alpStep(64, alp[0], alp[1]) : alpStep(32, alp[0] % 11, alp[1] % 11)] : [];
      const steps = [...integerSteps, ...last];
      const words = randomWords(seed, length, Math.min(bits, significant));
      const input = bytesOf(words, bits);
      const out = inPlace ? input : new Uint8Array(input.length);
      applySteps(out, input, bits, steps);
      assertEquals(
        out,
        bytesOf(words.map((word) => steps.reduce((one, step) => applied(one, bits, step), word)), bits),
      );
    }),
    300,
  );
});

test("integers of 64 bits become the nearest float, the ends of each exponent and ties among them", () => {
  const steps = [alpStep(64, 0, 0)];
  const near = Array.from({ length: 64 }, (_, bit) => 1n << BigInt(bit)).flatMap((power) =>
    [-1n, 0n, 1n, power >> 53n]
      .flatMap((off) => [power + off, -power - off, power + (power >> 53n) * 3n])
  );
  const words = near.map((one) => BigInt.asIntN(64, one));
  const out = new Uint8Array(words.length * 8);
  applySteps(out, bytesOf(words, 64), 64, steps);
  assertEquals(new Float64Array(out.buffer), Float64Array.from(words, Number));
});

test("exponents beyond the digits of a float's integer are refused", () => {
  assertThrows(() => alpStep(64, 19, 0), Error, "Expected exponents up to 18, got 19 and 0");
  assertThrows(() => alpStep(64, 0, 19), Error, "got 0 and 19");
  assertThrows(() => alpStep(32, 11, 0), Error, "up to 10");
});
