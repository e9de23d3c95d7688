/**
 * Numbers as decimal digits: exact, rounded, and as few as distinguish a number from its neighbours.
 *
 * @module
 */

/** A finite number in decimal. The first digit stands before the point. */
export interface Decimal {
  readonly isNegative: boolean;
  /** Significant digits without trailing zeros; `"0"` for zero. */
  readonly digits: string;
  /** The power of ten of the first digit. */
  readonly exponent: number;
}

/** A number in decimal. Exact: 101 digits are far more than any rounding here needs. */
export function decimalOf(value: number): Decimal {
  return parse(value, Math.abs(value).toExponential(100));
}

/**
 * The decimal with the fewest digits that is nearer to a number than to any other of its type; of several, the nearest.
 *
 * @param round rounds to the nearest number of the type
 */
export function shortestDecimal(value: number, round: (value: number) => number): Decimal {
  const enough = parse(value, Math.abs(value).toExponential()); // for all doubles, so for narrower types as well
  const exact = decimalOf(value);
  for (let count = 1; count < enough.digits.length; count++) {
    // The nearest decimal may round to another number: below a power of two the numbers are twice as dense as above it.
    const inReach = [roundDecimal(exact, count), withDigits(exact, count, 0n), withDigits(exact, count, 1n)]
      .find((fewer) => round(numberOf(fewer)) === value);
    if (inReach !== undefined) return inReach;
  }
  return enough;
}

function parse(value: number, text: string): Decimal {
  const [mantissa = "", exponent = ""] = text.split("e");
  const digits = mantissa.replace(".", "").replace(/0+$/, "") || "0";
  return { isNegative: value < 0 || Object.is(value, -0), digits, exponent: Number(exponent) };
}

function numberOf({ isNegative, digits, exponent }: Decimal): number {
  return Number(`${isNegative ? "-" : ""}${digits}e${exponent - digits.length + 1}`);
}

/** Rounds to a count of digits, which may be negative; half to even. */
export function roundDecimal(decimal: Decimal, count: number): Decimal {
  const { digits } = decimal;
  if (count >= digits.length) return decimal;
  const rest = count < 0 ? "0" : digits.slice(count);
  const isOdd = Number(digits[count - 1] ?? 0) % 2 === 1;
  const isUp = rest === "5" ? isOdd : rest >= "5"; // no trailing zeros, so "5" is exactly one half
  return withDigits(decimal, count, isUp ? 1n : 0n);
}

/** The leading digits, with `more` added to the last of them. */
function withDigits({ isNegative, digits, exponent }: Decimal, count: number, more: bigint): Decimal {
  const kept = digits.slice(0, Math.max(count, 0));
  const number = BigInt(kept) + more; // BigInt("") is 0
  if (number === 0n) return { isNegative, digits: "0", exponent: 0 };
  const carry = `${number}`.length - kept.length;
  return { isNegative, digits: `${number}`.replace(/0+$/, ""), exponent: exponent + carry };
}

/** The digits before and after the point, without trailing zeros, rounded to `places` decimal places. */
export function positional(decimal: Decimal, places = Infinity): { readonly whole: string; readonly fraction: string } {
  const { digits, exponent } = roundDecimal(decimal, decimal.exponent + 1 + places);
  if (exponent < 0) return { whole: "0", fraction: "0".repeat(-exponent - 1) + digits };
  const padded = digits.padEnd(exponent + 1, "0");
  return { whole: padded.slice(0, exponent + 1), fraction: padded.slice(exponent + 1) };
}

/** An exponent of ten as C writes it: a sign and at least two digits. */
export function exponentText(exponent: number): string {
  return `${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
}
