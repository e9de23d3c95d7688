/**
 * The definition of correct rounding, without rounding anything: a result is right if none of its neighbours in
 * the format would be, which is decided in exact rational arithmetic.
 *
 * @module
 */

/** A binary format. */
export interface Format {
  readonly bits: number;
  readonly fractionBits: number;
}

/** The formats of PTX. */
export const formats: Readonly<Record<"f16" | "bf16" | "f32" | "f64", Format>> = {
  f16: { bits: 16, fractionBits: 10 },
  bf16: { bits: 16, fractionBits: 7 },
  f32: { bits: 32, fractionBits: 23 },
  f64: { bits: 64, fractionBits: 52 },
};

/** A decoded code: its kind, and if finite `numerator / denominator`. */
export interface Read {
  readonly kind: "finite" | "infinite" | "nan";
  readonly negative: boolean;
  readonly numerator: bigint;
  readonly denominator: bigint;
}

function fieldsOf(
  { bits, fractionBits }: Format,
  code: bigint,
): { negative: boolean; field: bigint; fraction: bigint; top: bigint } {
  const top = (1n << BigInt(bits - 1 - fractionBits)) - 1n;
  return {
    negative: code >> BigInt(bits - 1) === 1n,
    field: (code >> BigInt(fractionBits)) & top,
    fraction: code & ((1n << BigInt(fractionBits)) - 1n),
    top,
  };
}

/** The magnitude of a code as `numerator / denominator`, infinity as the power of two in its place. */
function size(format: Format, code: bigint): readonly [numerator: bigint, denominator: bigint] {
  const { field, fraction, top } = fieldsOf(format, code);
  const bias = top >> 1n;
  const significand = field === 0n ? fraction : fraction | (1n << BigInt(format.fractionBits));
  const exponent = (field === 0n ? 1n : field) - bias - BigInt(format.fractionBits);
  return exponent < 0n ? [significand, 1n << -exponent] : [significand << exponent, 1n];
}

/** Reads a code. */
export function read(format: Format, code: bigint): Read {
  const { negative, field, fraction, top } = fieldsOf(format, code);
  const kind = field < top ? "finite" : fraction === 0n ? "infinite" : "nan";
  const [numerator, denominator] = size(format, code);
  return { kind, negative, numerator: negative ? -numerator : numerator, denominator };
}

/** The number that a code represents, for special cases: formats beyond f64 do not exist. */
export function toNumber(format: Format, code: bigint): number {
  const { kind, negative, numerator, denominator } = read(format, code);
  const sign = negative ? -1 : 1;
  if (kind === "nan") return NaN;
  if (kind === "infinite") return sign * Infinity;
  if (numerator === 0n) return sign * 0;
  const view = new DataView(new ArrayBuffer(8));
  if (format.bits === 64) {
    view.setBigUint64(0, code);
    return view.getFloat64(0);
  }
  // At most 24 bits over a power of two: each is a double, and so is the quotient.
  const shift = denominator.toString(2).length - 1;
  return Number(numerator) * 2 ** -shift;
}

/** Compares an exact nonzero value with a positive fraction: negative if smaller in magnitude, zero if equal. */
export type Compare = (numerator: bigint, denominator: bigint) => bigint;

/** The comparison for a fraction. */
export function fraction(numerator: bigint, denominator: bigint): Compare {
  const [n, d] = [numerator < 0n ? -numerator : numerator, denominator < 0n ? -denominator : denominator];
  return (otherNumerator, otherDenominator) => n * otherDenominator - otherNumerator * d;
}

/** The comparison for the square root of a positive fraction. */
export function root(numerator: bigint, denominator: bigint): Compare {
  return (n, d) => numerator * d * d - n * n * denominator;
}

/**
 * Whether a code is the correct rounding of an exact nonzero value.
 *
 * @param negative the sign of the exact value
 * @param compare how its magnitude compares with others
 */
export function isRounded(format: Format, mode: string, code: bigint, negative: boolean, compare: Compare): boolean {
  const signBit = 1n << BigInt(format.bits - 1);
  if ((code >= signBit) !== negative) return false;
  const infinity = ((1n << BigInt(format.bits - 1 - format.fractionBits)) - 1n) << BigInt(format.fractionBits);
  const here = code & (signBit - 1n);
  if (here > infinity) return false;
  const order = (other: bigint): bigint => compare(...size(format, other));
  if (mode === "rn") {
    const half = (other: bigint): bigint => {
      const [[n, d], [m, e]] = [size(format, here), size(format, other)];
      return compare(n * e + m * d, 2n * d * e);
    };
    const even = (here & 1n) === 0n;
    const above = here === infinity || (even ? half(here + 1n) <= 0n : half(here + 1n) < 0n);
    const below = here === 0n || (even ? half(here - 1n) >= 0n : half(here - 1n) > 0n);
    return above && below;
  }
  const outwards = mode === (negative ? "rm" : "rp");
  if (outwards) return (here === infinity || order(here) <= 0n) && (here === 0n || order(here - 1n) > 0n);
  return here !== infinity && order(here) >= 0n && (here + 1n === infinity || order(here + 1n) < 0n);
}
