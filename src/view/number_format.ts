/**
 * Number formatting, as NumPy 2.3 and newer prints by default, alone and in arrays.
 *
 * @module
 */
import { type Complex, dlpackCode, type DType, type Scalar } from "../layout/mod.ts";
import { type Decimal, decimalOf, exponentText, positional, roundDecimal, shortestDecimal } from "./decimal.ts";

/** The most decimal places. */
const PRECISION = 8;

/** A binary floating-point type whose numbers are aligned at the decimal point. */
interface FloatType {
  /** Rounds to the nearest number of the type. */
  readonly round: (value: number) => number;
  /** Numbers from here on are printed with an exponent: in an array, and alone. */
  readonly large: number;
  readonly largeAlone: number;
}

const FLOAT_TYPES: ReadonlyMap<number, FloatType> = new Map([
  [16, { round: (value) => Math.f16round(value), large: 1e3, largeAlone: 1e3 }],
  [32, { round: (value) => Math.fround(value), large: 1e6, largeAlone: 1e6 }],
  [64, { round: (value) => value, large: 1e8, largeAlone: 1e16 }],
]);

/** How a type's numbers are printed. */
interface NumberFormat {
  /** Formats a number on its own. */
  alone(value: Scalar): string;
  /** Formats all numbers of an array, aligned. */
  together(values: readonly Scalar[]): string[];
}

/** The format of a type's scalars. */
export function formatOf({ dlpack: { code, bits } }: DType): NumberFormat {
  const { bool, int, uint, handle, float, complex } = dlpackCode;
  const type = FLOAT_TYPES.get(code === complex ? bits / 2 : bits);
  if (code === bool) return BOOLEANS;
  if ((code === int || code === uint || code === handle) && bits >= 8) return INTEGERS;
  if (code === float && type !== undefined) return floats(type);
  if (code === complex && type !== undefined) return complexes(type);
  return { alone: general, together: (values) => values.map(general) }; // the types of ml_dtypes are never aligned
}

const BOOLEANS: NumberFormat = {
  alone: (value) => value ? "True" : "False",
  together: (values) => values.map((value) => value ? " True" : "False"),
};

const INTEGERS: NumberFormat = {
  alone: (value) => `${value as number | bigint}`, // of an integer type
  together(values) {
    const words = values.map(INTEGERS.alone);
    const width = longest(words);
    return words.map((word) => word.padStart(width));
  },
};

/** As C's `%g` prints: six digits, without trailing zeros. */
function general(scalar: Scalar): string {
  const value = Number(scalar);
  if (!Number.isFinite(value)) return special(value);
  const decimal = roundDecimal(decimalOf(value), 6);
  return decimal.exponent < -4 || decimal.exponent >= 6 ? withExponent(decimal) : withoutExponent(decimal, "");
}

function special(value: number): string {
  return Number.isNaN(value) ? "nan" : value < 0 ? "-inf" : "inf";
}

/** `point` follows a whole number. */
function withoutExponent(decimal: Decimal, point: string): string {
  const { whole, fraction } = positional(decimal);
  return `${sign(decimal)}${whole}${fraction ? `.${fraction}` : point}`;
}

function withExponent(decimal: Decimal): string {
  const [whole, fraction] = [decimal.digits.slice(0, 1), decimal.digits.slice(1)];
  return `${sign(decimal)}${whole}${fraction && `.${fraction}`}e${exponentText(decimal.exponent)}`;
}

function sign({ isNegative }: Decimal): string {
  return isNegative ? "-" : "";
}

function floats(type: FloatType): NumberFormat {
  return {
    alone: (value) => floatAlone(Number(value), type, ".0"),
    together: (values) => floatsTogether(values.map(Number), type, ""),
  };
}

function complexes(type: FloatType): NumberFormat {
  return {
    alone(value) {
      const { re, im } = value as Complex; // of a complex type
      const imaginary = `${floatAlone(im, type, "")}j`;
      if (re === 0 && !Object.is(re, -0)) return imaginary;
      return `(${floatAlone(re, type, "")}${/^[-]/.test(imaginary) ? "" : "+"}${imaginary})`;
    },
    together(values) {
      const numbers = values as readonly Complex[]; // of a complex type
      const real = floatsTogether(numbers.map(({ re }) => re), type, "");
      const imaginary = floatsTogether(numbers.map(({ im }) => im), type, "+");
      return real.map((word, i) => word + (imaginary[i] ?? "").replace(/ *$/, (spaces) => `j${spaces}`));
    },
  };
}

/** A float with just enough digits to distinguish it from its neighbours. `point` follows a whole number. */
function floatAlone(value: number, type: FloatType, point: string): string {
  if (!Number.isFinite(value)) return special(value);
  const decimal = shortestDecimal(value, type.round);
  const size = Math.abs(value);
  const isUsual = size === 0 || (size >= 1e-4 && size < type.largeAlone);
  return isUsual ? withoutExponent(decimal, point) : withExponent(decimal);
}

/**
 * Floats, aligned at the decimal point, and all of the same width.
 *
 * @param plus the sign before a number that is not negative
 */
function floatsTogether(values: readonly number[], type: FloatType, plus: "" | "+"): string[] {
  const sizes = values.filter(Number.isFinite).map(Math.abs);
  const write = needsExponent(sizes, type) ? scientificWriter(sizes, type) : positionalWriter(sizes, type);
  const words = values.map((value) => {
    if (!Number.isFinite(value)) return (value === -Infinity ? "" : plus) + special(value);
    return (value < 0 || Object.is(value, -0) ? "-" : plus) + write(Math.abs(value));
  });
  const width = longest(words);
  return words.map((word) => word.padStart(width));
}

type Writer = (size: number) => string;

/** Writes as many decimal places as each number needs, padded with spaces to the longest. */
function positionalWriter(sizes: readonly number[], type: FloatType): Writer {
  const written = new Map(sizes.map((size) => {
    const decimal = shortestDecimal(size, type.round);
    return [size, positional(atMost(decimal.exponent + 1 + PRECISION, decimal, size))];
  }));
  const places = longest([...written.values()].map(({ fraction }) => fraction));
  return (size) => {
    const { whole, fraction } = written.get(size) ?? { whole: "", fraction: "" };
    return `${whole}.${fraction.padEnd(places)}`;
  };
}

/** Writes all numbers with as many decimal places as the one that needs most. */
function scientificWriter(sizes: readonly number[], type: FloatType): Writer {
  const shortest = new Map(sizes.map((size) => [size, shortestDecimal(size, type.round)]));
  const needed = [...shortest].map(([size, decimal]) => atMost(PRECISION + 1, decimal, size).digits.length);
  const count = Math.max(1, ...needed);
  // Places beyond the shortest digits are filled with the number's exact digits, not zeros.
  const written = new Map(
    [...shortest].map(([size, decimal]) =>
      decimal.digits.length === count ? [size, decimal] : [size, roundDecimal(decimalOf(size), count)]
    ),
  );
  const exponents = longest([...written.values()].map(({ exponent }) => exponentText(exponent)));
  return (size) => {
    const { digits, exponent } = written.get(size) ?? decimalOf(size);
    const text = exponentText(exponent);
    const power = text.slice(0, 1) + text.slice(1).padStart(exponents - 1, "0");
    return `${digits.slice(0, 1)}.${digits.slice(1).padEnd(count - 1, "0")}e${power}`;
  };
}

/** The shortest digits, or, if too many, the number itself rounded; rounding the shortest digits would round twice. */
function atMost(count: number, shortest: Decimal, size: number): Decimal {
  return shortest.digits.length <= count ? shortest : roundDecimal(decimalOf(size), count);
}

function longest(words: readonly string[]): number {
  return words.reduce((most, { length }) => Math.max(most, length), 0); // too many to be arguments of one call
}

/**
 * Whether numbers are too large, too small or too far apart to be aligned at the decimal point, computed in their type.
 */
function needsExponent(sizes: readonly number[], { round, large }: FloatType): boolean {
  const nonzero = sizes.filter((size) => size > 0);
  if (nonzero.length === 0) return false;
  const least = nonzero.reduce((one, other) => Math.min(one, other));
  const greatest = nonzero.reduce((one, other) => Math.max(one, other));
  return greatest >= large || least < round(1e-4) || round(greatest / least) > 1000;
}
