/**
 * IEEE 754 rounding, in the four directions that PTX has: exact results become binary64, binary32, binary16 or bfloat16
 * in one step.
 *
 * Two techniques are used. A result that is not a double is first rounded *to odd*: towards zero, with the last bit set
 * if anything was lost. Such a double lies on the same side of every coarser number as the exact value, so rounding it
 * again, to at most 51 bits and in any direction, equals rounding the exact value (Boldo and Melquiond, 2008). Results
 * in binary64 go through integers of arbitrary size.
 *
 * @module
 */

/** To nearest with ties to even; towards zero; down; up; to nearest with ties away from zero. */
export type Rounding = "rn" | "rz" | "rm" | "rp" | "rna";

/** A binary format of at most 32 bits, with infinities and NaN. */
export interface SmallFormat {
  readonly name: string;
  /** Bits of the significand, the leading one included. */
  readonly precision: number;
  /** Exponent of the smallest normal number. */
  readonly minExponent: number;
  /** Exponent of the largest. */
  readonly maxExponent: number;
}

/** IEEE 754 binary32. */
export const binary32: SmallFormat = { name: "f32", precision: 24, minExponent: -126, maxExponent: 127 };
/** IEEE 754 binary16. */
export const binary16: SmallFormat = { name: "f16", precision: 11, minExponent: -14, maxExponent: 15 };
/** The upper half of binary32. */
export const bfloat16: SmallFormat = { name: "bf16", precision: 8, minExponent: -126, maxExponent: 127 };

const bits = new DataView(new ArrayBuffer(8));

/** Exponent of a finite, non-zero number; for a subnormal, that of the smallest normal. */
function exponentOf(value: number): number {
  bits.setFloat64(0, value);
  return Math.max(-1022, ((bits.getUint32(0) >>> 20) & 0x7ff) - 1023);
}

/** Doubles from here on are integers, so adding this to a smaller one rounds that to an integer, ties to even. */
const INTEGERS = 2 ** 52;

/** Rounds to an integer. */
export function roundToInteger(value: number, rounding: Rounding): number {
  if (!Number.isFinite(value)) return value;
  switch (rounding) {
    case "rz":
      return Math.trunc(value);
    case "rm":
      return Math.floor(value);
    case "rp":
      return Math.ceil(value);
    case "rna":
      return value < 0 ? -Math.floor(0.5 - value) : Math.floor(value + 0.5);
    case "rn": {
      const size = Math.abs(value);
      if (size >= INTEGERS) return value;
      const rounded = (size + INTEGERS) - INTEGERS;
      return value < 0 || Object.is(value, -0) ? -rounded : rounded;
    }
  }
}

/** Rounds a double, exact or rounded to odd, to a smaller format. */
export function roundTo(format: SmallFormat, value: number, rounding: Rounding): number {
  if (rounding === "rn" && format === binary32) return Math.fround(value);
  if (value === 0 || !Number.isFinite(value)) return value;
  const exponent = Math.max(exponentOf(value), format.minExponent);
  // A power of two that a double can represent, so scaling is exact.
  const unit = 2 ** (exponent - format.precision + 1);
  let rounded = roundToInteger(value / unit, rounding) * unit;
  if (rounded === 0 && value < 0) rounded = -0;
  const largest = (2 - 2 ** (1 - format.precision)) * 2 ** format.maxExponent;
  if (Math.abs(rounded) <= largest) return rounded;
  const stays = rounding === "rz" || (rounding === "rm" && value > 0) || (rounding === "rp" && value < 0);
  return Math.sign(value) * (stays ? largest : Infinity);
}

/** Moves a double, rounded to nearest, to the odd one of its two neighbours around the exact value. */
function toOdd(value: number, error: number): number {
  if (error === 0 || !Number.isFinite(value) || Number.isNaN(error)) return value;
  bits.setFloat64(0, value);
  if ((bits.getUint32(4) & 1) === 1) return value;
  // A finite double and its neighbours are neighbours as integers, too, sign apart.
  const outwards = (error > 0) === (value > 0);
  bits.setBigUint64(0, bits.getBigUint64(0) + (outwards ? 1n : -1n));
  return bits.getFloat64(0);
}

/** The rounding error of adding two doubles; exact unless the sum overflows. */
function lostInSum(a: number, b: number, sum: number): number {
  const bRounded = sum - a;
  return (a - (sum - bRounded)) + (b - bRounded);
}

/** `a + b`, rounded to odd; `rounding` is that of the rounding to come, and decides the sign of zero. */
export function addToOdd(a: number, b: number, rounding: Rounding): number {
  const sum = a + b;
  if (sum === 0 && rounding === "rm" && !(Object.is(a, 0) && Object.is(b, 0))) return -0;
  return Number.isFinite(sum) ? toOdd(sum, lostInSum(a, b, sum)) : sum;
}

/** `a * b + c` for numbers of the small formats, rounded to odd: their product is exact. */
export function fmaToOdd(a: number, b: number, c: number, rounding: Rounding): number {
  return addToOdd(a * b, c, rounding);
}

/** `a / b` for numbers of the small formats, rounded to odd. */
export function divideToOdd(a: number, b: number): number {
  const quotient = a / b;
  if (!Number.isFinite(quotient) || quotient === 0 || !Number.isFinite(b)) return quotient;
  const rest = fma64(-quotient, b, a, "rn");
  return toOdd(quotient, b < 0 ? -rest : rest);
}

/** The square root of a number of a small format, rounded to odd. */
export function sqrtToOdd(a: number): number {
  const root = Math.sqrt(a);
  if (!Number.isFinite(root) || root === 0) return root;
  return toOdd(root, fma64(-root, root, a, "rn"));
}

/** Splits a finite number into an integer times a power of two. */
function parts(value: number): [integer: bigint, exponent: number] {
  bits.setFloat64(0, value);
  const raw = bits.getBigUint64(0);
  const field = Number((raw >> 52n) & 0x7ffn);
  const fraction = raw & 0xfffffffffffffn;
  const size = field === 0 ? fraction : fraction | 0x10000000000000n;
  return [raw >> 63n === 1n ? -size : size, Math.max(field, 1) - 1075];
}

function bitLength(value: bigint): number {
  return value === 0n ? 0 : value.toString(2).length;
}

/**
 * Rounds `integer * 2^exponent`, plus a remainder below its last bit if `sticky`, to binary64.
 *
 * @param integer not zero
 */
function roundBig(integer: bigint, exponent: number, sticky: boolean, rounding: Rounding): number {
  const negative = integer < 0n;
  let size = negative ? -integer : integer;
  let lost = sticky;
  // Exponent of the last bit of a double of this size.
  const last = Math.max(bitLength(size) + exponent - 53, -1074);
  let half = false;
  if (last > exponent) {
    const shift = BigInt(last - exponent);
    half = ((size >> (shift - 1n)) & 1n) === 1n;
    lost ||= (size & ((1n << (shift - 1n)) - 1n)) !== 0n;
    size >>= shift;
  } else {
    size <<= BigInt(exponent - last);
  }
  const inexact = half || lost;
  const away = rounding === "rn"
    ? half && (lost || (size & 1n) === 1n)
    : rounding === "rna"
    ? half
    : inexact && rounding === (negative ? "rm" : "rp");
  if (away) size += 1n;
  // 2^1024 and beyond: no finite double is that large.
  if (bitLength(size) + last > 1024) {
    const toInfinity = rounding === "rn" || rounding === "rna" || rounding === (negative ? "rm" : "rp");
    return (negative ? -1 : 1) * (toInfinity ? Infinity : Number.MAX_VALUE);
  }
  // In two steps: the power alone may be smaller than any double.
  const scaled = last < -1000
    ? Number(size) * 2 ** -1000 * 2 ** (last + 1000)
    : Number(size) * 2 ** Math.min(last, 971);
  return negative ? -scaled : scaled;
}

/** The exact zero that two numbers cancel to, with its sign. */
function cancelled(rounding: Rounding): number {
  return rounding === "rm" ? -0 : 0;
}

/** Whether products and addends of this size, and their rounding errors, neither overflow nor underflow. */
function isModerate(value: number): boolean {
  const size = Math.abs(value);
  return size > 1e-120 && size < 1e120;
}

/** Dekker's constant: splits a double into two halves whose products are exact. */
const SPLITTER = 2 ** 27 + 1;

/** The rounding error of multiplying two moderate doubles. */
function lostInProduct(a: number, b: number, product: number): number {
  const [ta, tb] = [SPLITTER * a, SPLITTER * b];
  const [ahi, bhi] = [ta - (ta - a), tb - (tb - b)];
  const [alo, blo] = [a - ahi, b - bhi];
  return alo * blo - (((product - ahi * bhi) - alo * bhi) - ahi * blo);
}

/** `a * b + c` of doubles, rounded once. */
export function fma64(a: number, b: number, c: number, rounding: Rounding): number {
  const product = a * b;
  if (!Number.isFinite(a) || !Number.isFinite(b)) return product + c;
  if (!Number.isFinite(c)) return c; // the product is finite, though in doubles it may be the opposite infinity
  if (rounding === "rn" && isModerate(a) && isModerate(b) && isModerate(c)) {
    // The sum of three doubles, two of them the exact product (Boldo and Melquiond, figure 3).
    const lost = lostInProduct(a, b, product);
    const low = c + lost;
    const lowest = lostInSum(c, lost, low);
    const high = product + low;
    return high + addToOdd(lostInSum(product, low, high), lowest, "rn");
  }
  const [x, xe] = parts(a);
  const [y, ye] = parts(b);
  const [z, ze] = parts(c);
  // Zeros add as usual, except that the sum's sign depends on the direction.
  if (x === 0n || y === 0n) return z !== 0n ? c : product === 0 && Object.is(product, c) ? c : cancelled(rounding);
  const exponent = Math.min(xe + ye, ze);
  const sum = (x * y << BigInt(xe + ye - exponent)) + (z << BigInt(ze - exponent));
  return sum === 0n ? cancelled(rounding) : roundBig(sum, exponent, false, rounding);
}

/** `a + b` of doubles. */
export function add64f(a: number, b: number, rounding: Rounding): number {
  if (rounding === "rn" || !Number.isFinite(a) || !Number.isFinite(b)) return a + b;
  return fma64(a, 1, b, rounding);
}

/** `a * b` of doubles. */
export function mul64f(a: number, b: number, rounding: Rounding): number {
  const product = a * b;
  if (rounding === "rn" || product === 0 && (a === 0 || b === 0) || !Number.isFinite(a) || !Number.isFinite(b)) {
    return product;
  }
  const [x, xe] = parts(a);
  const [y, ye] = parts(b);
  return roundBig(x * y, xe + ye, false, rounding);
}

/** `a / b` of doubles. */
export function div64f(a: number, b: number, rounding: Rounding): number {
  if (rounding === "rn" || a === 0 || b === 0 || !Number.isFinite(a) || !Number.isFinite(b)) return a / b;
  const [x, xe] = parts(a);
  const [y, ye] = parts(b);
  // 120 bits more than the operand has: the quotient has at least 66.
  const scaled = x << 120n;
  const quotient = scaled / y;
  return roundBig(quotient, xe - ye - 120, quotient * y !== scaled, rounding);
}

/** The square root of a double. */
export function sqrt64f(a: number, rounding: Rounding): number {
  if (rounding === "rn" || !(a > 0) || a === Infinity) return Math.sqrt(a);
  const [x, xe] = parts(a);
  // An even exponent, and enough bits for a root of at least 64.
  const shift = 140 + (Math.abs(xe) & 1);
  const scaled = x << BigInt(shift);
  let root = 1n << BigInt((bitLength(scaled) + 1) >> 1);
  for (;;) {
    const better = (root + scaled / root) >> 1n;
    if (better >= root) break;
    root = better;
  }
  return roundBig(root, (xe - shift) / 2, root * root !== scaled, rounding);
}

/** An integer as a double. */
export function fromBig(value: bigint, rounding: Rounding): number {
  return value === 0n ? 0 : roundBig(value, 0, false, rounding);
}

/** An integer of any size, rounded to odd. */
export function bigToOdd(value: bigint): number {
  const down = fromBig(value, "rz");
  return BigInt(down) === value ? down : toOdd(down, value > 0n ? 1 : -1);
}
