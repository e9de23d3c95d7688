/** `cvt` between floats and integers, against exact rational arithmetic. */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { check, fc } from "../support/property.ts";
import { formats, fraction, isRounded, read, toNumber } from "./exact.ts";
import { anyBits, type Case, execute } from "../support/ptx/instruction.ts";

type Name = keyof typeof formats;
const names = ["f16", "bf16", "f32", "f64"] as const;

function cases(bits: number): fc.Arbitrary<Case[]> {
  const one = anyBits(bits).map((a): Case => [a, 0n, 0n]);
  return fc.array(one, { minLength: 1, maxLength: 200, size: "max" });
}

/** Floats, those of moderate size as frequent as all others. */
function floatCases(name: Name): fc.Arbitrary<Case[]> {
  const { bits, fractionBits } = formats[name];
  const bias = (1n << BigInt(bits - 2 - fractionBits)) - 1n;
  const moderate = fc.tuple(fc.bigInt({ min: -3n, max: 14n }), anyBits(fractionBits), fc.boolean()).map(
    ([exponent, low, negative]): Case => [
      ((bias + exponent) << BigInt(fractionBits)) | low | (negative ? 1n << BigInt(bits - 1) : 0n),
      0n,
      0n,
    ],
  );
  return fc.array(fc.oneof(anyBits(bits).map((a): Case => [a, 0n, 0n]), moderate), {
    minLength: 1,
    maxLength: 200,
    size: "max",
  });
}

/** Rounds a fraction to an integer, in a direction. */
function toInteger(n: bigint, d: bigint, mode: string): bigint {
  const floor = n / d - (n % d < 0n ? 1n : 0n);
  const rest = n - floor * d;
  if (rest === 0n) return floor;
  if (mode === "rmi") return floor;
  if (mode === "rpi") return floor + 1n;
  if (mode === "rzi") return n < 0n ? floor + 1n : floor;
  return rest * 2n > d || (rest * 2n === d && (floor & 1n) === 1n) ? floor + 1n : floor;
}

for (const from of names) {
  test(`${from} becomes integers of all widths, clamped, in all directions`, () => {
    for (const to of ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"]) {
      const bits = Number(to.slice(1));
      const limit = 1n << BigInt(bits - (to.startsWith("s") ? 1 : 0));
      const min = to.startsWith("s") ? -limit : 0n;
      const register = bits === 8 ? `${to[0]}16` : to;
      const line = (mode: string): string =>
        from === "bf16" && bits === 8
          ? `{ .reg .b8 %x; cvt.${mode}.${to}.bf16 %x, %a; cvt.${to[0]}16.${to} %d, %x; }`
          : `cvt.${mode}.${to}.${from} %d, %a;`;
      for (const mode of ["rni", "rzi", "rmi", "rpi"]) {
        check(
          fc.property(floatCases(from), (list) => {
            const results = execute(line(mode), [register, from], list);
            const expected = list.map(([code]) => {
              const { kind, negative, numerator, denominator } = read(formats[from], code);
              const nan = from === "f64" || bits === 64 ? 1n << BigInt(bits - 1) : 0n;
              const value = kind === "nan"
                ? BigInt.asUintN(bits, nan)
                : kind === "infinite"
                ? (negative ? min : limit - 1n)
                : toInteger(numerator, denominator, mode);
              const clamped = kind === "nan" ? value : value < min ? min : value >= limit ? limit - 1n : value;
              const fitted = to.startsWith("s") ? BigInt.asIntN(bits, clamped) : clamped;
              return BigInt.asUintN(Math.max(16, bits), fitted);
            });
            assertEquals(results, expected, `${mode}.${to}.${from}`);
          }),
          4,
        );
      }
    }
  });
}

for (const to of names) {
  test(`integers become ${to}, rounded in all directions`, () => {
    for (const from of ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"]) {
      const bits = Number(from.slice(1));
      const line = (mode: string): string =>
        to === "bf16" && bits === 8
          ? `{ .reg .b8 %x; cvt.u8.u16 %x, %a; cvt.${mode}.bf16.${from} %d, %x; }`
          : `cvt.${mode}.${to}.${from} %d, %a;`;
      for (const mode of to === "f16" || to === "bf16" ? ["rn"] : ["rn", "rz", "rm", "rp"]) {
        check(
          fc.property(cases(bits), (list) => {
            execute(line(mode), [to, from], list).forEach((result, i) => {
              const code = list[i]?.[0] ?? 0n;
              const value = from.startsWith("s") ? BigInt.asIntN(bits, code) : code;
              if (value === 0n) return assertEquals(result, 0n);
              const right = isRounded(formats[to], mode, result, value < 0n, fraction(value, 1n));
              assert(right, `${mode}.${to}.${from} of ${value} gives ${result.toString(16)}`);
            });
          }),
          4,
        );
      }
    }
  });
}

for (const from of names) {
  for (const to of names) {
    if (from === to) continue;
    test(`${from} becomes ${to}`, () => {
      const narrows = formats[to].bits < formats[from].bits || (formats[to].bits === 16 && formats[from].bits === 16);
      for (const mode of narrows ? (to === "f32" ? ["rn", "rz", "rm", "rp"] : ["rn", "rz"]) : [null]) {
        check(
          fc.property(floatCases(from), (list) => {
            const line = `cvt${mode === null ? "" : `.${mode}`}.${to}.${from} %d, %a;`;
            execute(line, [to, from], list).forEach((result, i) => {
              const code = list[i]?.[0] ?? 0n;
              const { kind, negative, numerator, denominator } = read(formats[from], code);
              const value = toNumber(formats[to], result);
              if (kind === "nan") return assert(Number.isNaN(value), line);
              if (kind === "infinite") return assertEquals(value, negative ? -Infinity : Infinity);
              if (numerator === 0n) return assert(Object.is(value, negative ? -0 : 0));
              const right = isRounded(formats[to], mode ?? "rn", result, negative, fraction(numerator, denominator));
              assert(right, `${line} of ${code.toString(16)} gives ${result.toString(16)}`);
            });
          }),
          10,
        );
      }
    });
  }
}

test("a float rounds to an integer of its own type and keeps the sign of zero", () => {
  for (const name of ["f32", "f64"] as const) {
    for (const mode of ["rni", "rzi", "rmi", "rpi"]) {
      check(
        fc.property(floatCases(name), (list) => {
          execute(`cvt.${mode}.${name}.${name} %d, %a;`, [name, name], list).forEach((result, i) => {
            const { kind, negative, numerator, denominator } = read(formats[name], list[i]?.[0] ?? 0n);
            if (kind !== "finite") return;
            const expected = Number(toInteger(numerator, denominator, mode));
            assert(Object.is(toNumber(formats[name], result), expected === 0 && negative ? -0 : expected));
          });
        }),
        6,
      );
    }
  }
});

test("pairs of 16-bit floats have the first operand above", () => {
  for (const to of ["f16", "bf16"] as const) {
    check(
      fc.property(floatCases("f32"), floatCases("f32"), (list, others) => {
        const pairs = list.map(([a], i): Case => [a, others[i % others.length]?.[0] ?? 0n, 0n]);
        const one = execute(`cvt.rn.${to}.f32 %d, %a;`, [to, "f32"], pairs);
        const two = execute(`cvt.rn.${to}.f32 %d, %a;`, [to, "f32"], pairs.map(([a, b, c]): Case => [b, a, c]));
        const both = execute(`cvt.rn.${to}x2.f32 %d, %a, %b;`, ["b32", "b32"], pairs);
        assertEquals(both, one.map((upper, i) => (upper << 16n) | (two[i] ?? 0n)));
      }),
      6,
    );
  }
});
