/**
 * The small binary floating-point formats: decodes codes to numbers, and rounds numbers to codes.
 *
 * Sources: IEEE 754 for float16; the OCP 8-bit floating point specification (OFP8) for e4m3fn and e5m2; the OCP
 * Microscaling Formats (MX) specification for the 6- and 4-bit formats and e8m0; for the others, and wherever the
 * specifications leave room, the behaviour of ml_dtypes, against which every code is tested.
 */

/** How a format uses the codes that are not ordinary numbers. */
type SpecialCodes =
  /** The largest exponent means infinity and NaN, as in IEEE 754. */
  | "ieee"
  /** No infinity; NaN is the code with all bits but the sign set. */
  | "nan"
  /** No infinity and no negative zero; its code is the only NaN. */
  | "fnuz"
  /** Neither infinity nor NaN. */
  | "finite";

/** A sign bit, an exponent and a fraction, from the highest bit down. */
export interface FloatFormat {
  /** Width of the exponent in bits. */
  readonly exponentBits: number;
  /** Width of the fraction in bits, without the leading one that normal numbers imply. */
  readonly fractionBits: number;
  /** The amount by which the exponent field exceeds the exponent. */
  readonly bias: number;
  /** The meaning of the codes at the extremes. */
  readonly special: SpecialCodes;
}

/** Converts codes to numbers and back. */
export interface FloatCodec {
  /** The exact number that a code represents. */
  decode(code: number): number;
  /**
   * The code of the nearest number, ties to the even code.
   *
   * Numbers beyond the largest become infinity, or NaN in a format without infinity, or the largest number in a format
   * with neither.
   *
   * @throws {RangeError} if the number is NaN and the format has no NaN
   */
  encode(value: number): number;
}

/**
 * Adding and subtracting this number rounds a small positive one to an integer, ties to even: no fraction bits are left
 * in the sum.
 */
const ROUND_TO_INTEGER = 2 ** 52;

const doubleBits = new DataView(new ArrayBuffer(8));

/** The exponent of a positive number; -1023 for a subnormal. */
function exponentOf(value: number): number {
  doubleBits.setFloat64(0, value);
  return ((doubleBits.getUint32(0) >>> 20) & 0x7ff) - 1023;
}

/** The codec of a format with a sign. */
export class MinifloatCodec implements FloatCodec {
  readonly #name: string;
  readonly #format: FloatFormat;
  /** The value of one unit of the fraction, for each exponent field. */
  readonly #unit: Float64Array;
  readonly #sign: number;
  /** The largest code of a finite positive number. */
  readonly #max: number;
  readonly #nan: number | null;

  /**
   * @param name for errors
   * @param format of at most 16 bits
   */
  constructor(name: string, format: FloatFormat) {
    const { exponentBits, fractionBits, bias, special } = format;
    this.#name = name;
    this.#format = format;
    this.#sign = 1 << (exponentBits + fractionBits);
    this.#unit = new Float64Array(1 << exponentBits);
    // Exponent field 0 is subnormal: no implied leading one, and the same unit as field 1.
    for (let field = 0; field < this.#unit.length; field++) {
      this.#unit[field] = powerOfTwo(Math.max(field, 1) - bias - fractionBits);
    }
    const largestField = (this.#unit.length - 1) << fractionBits;
    switch (special) {
      case "ieee":
        this.#max = largestField - 1;
        this.#nan = largestField | (1 << (fractionBits - 1));
        break;
      case "nan":
        this.#max = this.#sign - 2;
        this.#nan = this.#sign - 1;
        break;
      case "fnuz":
        this.#max = this.#sign - 1;
        this.#nan = this.#sign;
        break;
      case "finite":
        this.#max = this.#sign - 1;
        this.#nan = null;
        break;
    }
  }

  decode(code: number): number {
    const { fractionBits, special } = this.#format;
    const magnitude = code & (this.#sign - 1);
    const isNegative = (code & this.#sign) !== 0;
    if (special === "fnuz" && code === this.#sign) return NaN;
    if (magnitude > this.#max) {
      if (special === "ieee" && magnitude === this.#max + 1) return isNegative ? -Infinity : Infinity;
      return NaN;
    }
    const field = magnitude >>> fractionBits;
    const fraction = magnitude - (Math.max(field - 1, 0) << fractionBits);
    const value = fraction * (this.#unit[field] ?? NaN);
    return isNegative ? -value : value;
  }

  encode(value: number): number {
    const { fractionBits, bias, special } = this.#format;
    if (Number.isNaN(value)) {
      if (this.#nan === null) {
        throw new RangeError(`Expected a number that ${this.#name} can represent, got NaN: it has no NaN`);
      }
      return this.#nan;
    }
    const sign = value < 0 || Object.is(value, -0) ? this.#sign : 0;
    const size = Math.abs(value);
    const field = Math.max(exponentOf(size) + bias, 1);
    const unit = this.#unit[field];
    if (unit !== undefined) {
      // Exact: the unit is a power of two, and the integer part of the quotient has at most one bit more than the
      // fraction.
      const units = size / unit + ROUND_TO_INTEGER - ROUND_TO_INTEGER;
      // Rounding up past the last fraction carries into the exponent field, which yields the next number.
      const magnitude = ((field - 1) << fractionBits) + units;
      if (magnitude <= this.#max) return special === "fnuz" && magnitude === 0 ? 0 : magnitude | sign;
    }
    switch (special) {
      case "ieee":
        return (this.#max + 1) | sign;
      case "nan":
        return (this.#sign - 1) | sign;
      case "fnuz":
        return this.#sign;
      case "finite":
        return this.#max | sign;
    }
  }
}

/**
 * The codec of e8m0, the scale of the MX formats: eight bits of exponent and nothing else, so only powers of two from
 * 2^-127 to 2^127, and NaN. It has no zero: smaller positive numbers round up, and zero itself, like everything
 * negative or too large, is NaN.
 */
export class PowerOfTwoCodec implements FloatCodec {
  decode(code: number): number {
    return code === 0xff ? NaN : powerOfTwo(code - 127);
  }

  encode(value: number): number {
    if (!(value > 0)) return 0xff;
    const exponent = exponentOf(value);
    // Halfway between two powers, take the larger one: without a fraction, neither code is the even one.
    const isUpperHalf = value >= powerOfTwo(exponent) * 1.5;
    return Math.min(Math.max(exponent + 127 + (isUpperHalf ? 1 : 0), 0), 0xff);
  }
}

/** 2 to an integer power of at least -1074, exactly, infinity for 1024; `**` is not required to be exact. */
function powerOfTwo(exponent: number): number {
  if (exponent < -1022) return powerOfTwo(exponent + 52) * Number.EPSILON;
  doubleBits.setUint32(0, (exponent + 1023) << 20);
  doubleBits.setUint32(4, 0);
  return doubleBits.getFloat64(0);
}
