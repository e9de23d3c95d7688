/**
 * What converting a number means, spelled out with big integers; and numbers worth converting.
 *
 * @module
 */
import type { Complex, DType, ElementValue, Scalar } from "../../src/layout/mod.ts";
import { type NumberType, numberTypes } from "../../src/copy/conversion.ts";
import { fc } from "./property.ts";

/** All pairs of types, including those between which nothing is converted. */
export const pairsOfTypes: readonly { readonly from: NumberType; readonly to: NumberType }[] = numberTypes.flatMap((
  from,
) => numberTypes.map((to) => ({ from, to })));

const precisions: Readonly<Record<string, bigint>> = { float16: 11n, bfloat16: 8n, float32: 24n, float64: 53n };

/** An integer, rounded to the nearest with `precision` bits, ties to even. */
function nearest(value: bigint, precision: bigint): number {
  const size = value < 0n ? -value : value;
  const extra = BigInt(size.toString(2).length) - precision;
  if (extra <= 0n) return Number(value);
  const [kept, rest, half] = [size >> extra, size & ((1n << extra) - 1n), 1n << (extra - 1n)];
  const up = rest > half || (rest === half && (kept & 1n) === 1n) ? 1n : 0n;
  return Number((kept + up) << extra) * (value < 0n ? -1 : 1);
}

function clamp(value: bigint, { kind, bits }: NumberType): bigint {
  const [least, most] = kind === "int"
    ? [-(1n << BigInt(bits - 1)), (1n << BigInt(bits - 1)) - 1n]
    : [0n, (1n << BigInt(bits)) - 1n];
  return value < least ? least : value > most ? most : value;
}

function toInteger(value: number | bigint, from: NumberType, to: NumberType): Scalar {
  const isExact = from.kind !== "float" && from.kind !== "bfloat";
  const size = BigInt(to.bits);
  let result: bigint;
  if (isExact) {
    result = to.kind === "int" ? BigInt.asIntN(to.bits, BigInt(value)) : BigInt.asUintN(to.bits, BigInt(value));
  } else if (Number.isNaN(value)) result = 0n;
  else if (value === Infinity || value === -Infinity) result = clamp((value > 0 ? 1n : -1n) << (size + 1n), to);
  else result = clamp(BigInt(Math.trunc(Number(value))), to);
  return to.bits === 64 ? result : Number(result);
}

function isComplex(value: Scalar): value is Complex {
  return typeof value === "object";
}

/** The converted element. */
export function convertedByHand(value: Scalar, from: NumberType, to: NumberType): Scalar {
  if (to.kind === "bool") {
    return isComplex(value)
      ? value.re !== 0 || value.im !== 0
      : typeof value === "boolean"
      ? value
      : Number(value) !== 0;
  }
  const real = isComplex(value) ? value.re : typeof value === "boolean" ? Number(value) : value;
  if (to.kind === "int" || to.kind === "uint") return toInteger(real, from, to);
  const name = to.isComplex ? `float${to.bits}` : to.name;
  // Writing a double rounds it; an integer that no double represents must not be rounded twice.
  const re = typeof real === "bigint" ? nearest(real, precisions[name] ?? 0n) : real;
  return to.isComplex ? { re, im: isComplex(value) ? value.im : 0 } : re;
}

/** Boundary numbers: limits of types, midpoints between two representable numbers, and their neighbours. */
const corners: readonly number[] = [7, 8, 10, 11, 15, 16, 23, 24, 31, 32, 53, 63, 64, 127, 128]
  .flatMap((exponent) => [-1, -0.5, 0, 0.5, 1, 3].map((more) => 2 ** exponent + more))
  .concat([0, 0.5, 1, 1.5, 65504, 65519.99, 65520, 2 ** -24, 2 ** -25, 2 ** -126, 2 ** -149, 2 ** -150, 2 ** -1074])
  // On or just beside the midpoint between two bfloat16: to be rounded once.
  .concat([1 + 2 ** -8, 1 + 2 ** -8 + 2 ** -30, 1 + 2 ** -8 + 2 ** -52, 1 + 3 * 2 ** -8, 1 + 2 ** -11 + 2 ** -40])
  .flatMap((value) => [value, -value])
  .concat([1.7e308, 3.3895313892515355e38]);

const special = [NaN, Infinity, -Infinity, -0];

/** 64-bit integers at and around the midpoints between neighbouring floats. */
const longs: readonly bigint[] = [
  ...[24n, 25n, 33n, 53n, 54n, 62n].flatMap((exponent) =>
    [0n, 1n, (1n << exponent) >> 8n, (1n << exponent) >> 24n].flatMap((half) =>
      [-1n, 0n, 1n].map((more) => (1n << exponent) + half + more)
    )
  ),
  (1n << 63n) - 1n,
  -(1n << 63n),
  (1n << 62n) + (1n << 38n) + 1n,
  (1n << 60n) + (1n << 52n) + 2047n,
];

const boundary = fc.oneof(
  { weight: 1, arbitrary: fc.constantFrom(...special) },
  { weight: 4, arbitrary: fc.constantFrom(...corners) },
  { weight: 2, arbitrary: fc.double() },
  { weight: 1, arbitrary: fc.float() },
  { weight: 2, arbitrary: fc.integer() },
  {
    weight: 1,
    arbitrary: fc.tuple(fc.double({ min: 1, max: 2 }), fc.integer({ min: -30, max: 70 })).map(([f, e]) => f * 2 ** e),
  },
);

/** An element of a type: a number worth converting, or any bits. */
export function elements(type: NumberType): fc.Arbitrary<Scalar> {
  if (type.kind === "bool") return fc.boolean();
  if (type.isComplex) {
    return fc.record({ re: boundary, im: fc.oneof(fc.constantFrom(0, -0), boundary) });
  }
  if (type.kind === "float" || type.kind === "bfloat") return boundary;
  const any = fc.oneof(
    fc.constantFrom(...longs),
    fc.constantFrom(...longs).map((value) => -value),
    fc.bigInt({ min: -(1n << 64n), max: 1n << 64n }),
    fc.integer().map(BigInt),
  );
  return any.map((value) => {
    const fit = type.kind === "int" ? BigInt.asIntN(type.bits, value) : BigInt.asUintN(type.bits, value);
    return type.bits === 64 ? fit : Number(fit);
  });
}

/** A value in words after being stored: one NaN, two zeros. */
export function stored(dtype: DType, value: ElementValue): string {
  const view = new DataView(new ArrayBuffer(dtype.itemsize));
  dtype.write(view, 0, value);
  return shown(dtype.read(view, 0));
}

/** A value in words: one NaN, two zeros. */
export function shown(value: ElementValue): string {
  const one = (part: unknown) => Object.is(part, -0) ? "-0" : String(part);
  return typeof value === "object" && "re" in value ? `${one(value.re)},${one(value.im)}` : one(value);
}
