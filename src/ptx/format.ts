/**
 * `printf` formatting: conversions as in C, of arguments in memory as the device promoted them. What CUDA does not
 * support is printed verbatim, as on a GPU: sizes other than h, l and ll, and a precision passed as an argument.
 *
 * @module
 */

/** The source of arguments: each call takes the next one. */
export interface FormatArguments {
  /** 32 bits. */
  int(): bigint;
  /** 64 bits: a long, a pointer, or a double. */
  long(): bigint;
  /** The string at an address: the bytes before its NUL, at most `most` of them. */
  text(address: bigint, most: number): string;
}

/** Maximum number of arguments passed: a conversion beyond them is printed verbatim. */
const maxArguments = 32;

/** How an argument is formatted. */
interface Conversion {
  readonly flags: string;
  readonly width: number;
  /** Null if none is given. */
  readonly precision: number | null;
  readonly letter: string;
}

// law ptx/conversion: ptx/format
const conversion = /%%|%([-+ #0]*)(\*|\d*)(?:\.(\d*))?(h|ll|l)?([cdiouxXpeEfFgGaAs])/g;

// law ptx/formatC: ptx/format
/**
 * Formats text as `printf` does. Text here is a string of bytes, one character per byte.
 *
 * @returns the text, and how many arguments were consumed
 */
export function formatC(format: string, args: FormatArguments): { readonly text: string; readonly taken: number } {
  let taken = 0;
  const next = <T>(take: () => T): T => (taken++, take());
  const int = () => Number(BigInt.asIntN(32, next(() => args.int())));
  const text = format.replace(
    conversion,
    (whole, flags: string, width: string, precision: string | undefined, size: string | undefined, letter: string) => {
      if (whole === "%%") return "%";
      const needed = 1 + Number(width === "*");
      if (taken + needed > maxArguments) return whole;
      const wide = width === "*" ? int() : Number(width);
      const wanted: Conversion = {
        flags: wide < 0 ? `${flags}-` : flags, // a negative width argument left-justifies
        width: Math.abs(wide),
        precision: precision === undefined ? null : Number(precision),
        letter,
      };
      switch (letter) {
        case "c":
          return pad(wanted, "", String.fromCharCode(int() & 0xff), false);
        case "s": {
          const most = wanted.precision ?? Infinity;
          const address = next(() => args.long());
          return pad(wanted, "", address === 0n ? "(null)".slice(0, most) : args.text(address, most), false);
        }
        case "p": {
          const address = next(() => args.long());
          return pad(wanted, "", address === 0n ? "(nil)" : `0x${address.toString(16)}`, false);
        }
        case "d":
        case "i":
        case "o":
        case "u":
        case "x":
        case "X": {
          const bits = size === undefined ? 32 : size === "h" ? 16 : 64;
          return formatInteger(wanted, next(() => bits === 64 ? args.long() : args.int()), bits);
        }
        default:
          return formatFloat(wanted, next(() => args.long()));
      }
    },
  );
  return { text, taken };
}

/** Pads to the width: with zeros after the sign, or with spaces on one side. */
function pad({ flags, width }: Conversion, sign: string, text: string, zeros: boolean): string {
  if (flags.includes("-")) return (sign + text).padEnd(width);
  if (zeros && flags.includes("0")) return sign + text.padStart(width - sign.length, "0");
  return (sign + text).padStart(width);
}

function signOf(negative: boolean, flags: string): string {
  if (negative) return "-";
  return flags.includes("+") ? "+" : flags.includes(" ") ? " " : "";
}

function formatInteger(wanted: Conversion, value: bigint, bits: number): string {
  const { flags, precision, letter } = wanted;
  const isSigned = letter === "d" || letter === "i";
  const number = isSigned ? BigInt.asIntN(bits, value) : BigInt.asUintN(bits, value);
  const radix = letter === "o" ? 8 : letter === "x" || letter === "X" ? 16 : 10;
  let digits = (number < 0n ? -number : number).toString(radix).padStart(precision ?? 1, "0");
  if (number === 0n && precision === 0) digits = "";
  let prefix = isSigned ? signOf(number < 0n, flags) : "";
  if (flags.includes("#")) {
    if (radix === 8 && !digits.startsWith("0")) digits = `0${digits}`;
    if (radix === 16 && number !== 0n) prefix = "0x";
  }
  const text = pad(wanted, prefix, digits, precision === null);
  return letter === "X" ? text.toUpperCase() : text;
}

/** A finite, non-negative number: `mantissa * 2 ** exponent`. */
interface Magnitude {
  readonly mantissa: bigint;
  readonly exponent: number;
}

function formatFloat(wanted: Conversion, bits: bigint): string {
  const { flags, letter } = wanted;
  const sign = signOf(bits >> 63n !== 0n, flags);
  const biased = Number((bits >> 52n) & 0x7ffn);
  const fraction = bits & 0xf_ffff_ffff_ffffn;
  const isFinite = biased !== 0x7ff;
  const text = pad(
    wanted,
    sign + (isFinite && letter.toLowerCase() === "a" ? "0x" : ""),
    isFinite ? digitsOf(wanted, biased, fraction) : fraction === 0n ? "inf" : "nan",
    isFinite,
  );
  return letter < "a" ? text.toUpperCase() : text;
}

function digitsOf({ flags, precision, letter }: Conversion, biased: number, fraction: bigint): string {
  const keepsPoint = flags.includes("#");
  const isSubnormal = biased === 0;
  if (letter.toLowerCase() === "a") return hexadecimal(isSubnormal, biased, fraction, precision, keepsPoint);
  const magnitude = {
    mantissa: isSubnormal ? fraction : fraction | (1n << 52n),
    exponent: (isSubnormal ? 1 : biased) - 1075,
  };
  switch (letter.toLowerCase()) {
    case "f":
      return fixed(magnitude, precision ?? 6, keepsPoint);
    case "e":
      return scientific(magnitude, precision ?? 6, keepsPoint).text;
  }
  const significant = Math.max(1, precision ?? 6);
  const { text, power } = scientific(magnitude, significant - 1, keepsPoint);
  const isFixed = power >= -4 && power < significant;
  const written = isFixed ? fixed(magnitude, significant - 1 - power, keepsPoint) : text;
  return keepsPoint ? written : written.replace(/\.?0*(e.*)?$/, (end, e = "") => written.includes(".") ? e : end);
}

/** `magnitude * 10 ** power`, rounded to an integer, ties to even. */
function scaled({ mantissa, exponent }: Magnitude, power: number): bigint {
  let [over, under] = [mantissa, 1n];
  if (exponent >= 0) over <<= BigInt(exponent);
  else under <<= BigInt(-exponent);
  if (power >= 0) over *= 10n ** BigInt(power);
  else under *= 10n ** BigInt(-power);
  return roundedQuotient(over, under);
}

// law ptx/roundedQuotient: ptx/format
function roundedQuotient(over: bigint, under: bigint): bigint {
  const below = over / under;
  const twice = 2n * (over - below * under);
  return twice > under || (twice === under && (below & 1n) === 1n) ? below + 1n : below;
}

function withPoint(whole: string, fraction: string, keepsPoint: boolean): string {
  return fraction === "" && !keepsPoint ? whole : `${whole}.${fraction}`;
}

function fixed(magnitude: Magnitude, places: number, keepsPoint: boolean): string {
  const digits = scaled(magnitude, places).toString().padStart(places + 1, "0");
  const end = digits.length - places;
  return withPoint(digits.slice(0, end), digits.slice(end), keepsPoint);
}

// law ptx/scientific: ptx/format
function scientific(magnitude: Magnitude, places: number, keepsPoint: boolean): { text: string; power: number } {
  const { mantissa, exponent } = magnitude;
  const most = 10n ** BigInt(places + 1);
  // Never too large at first, as 2 ** n does not exceed the number; rounding up to the next power adds a digit, which
  // the loop corrects.
  let power = mantissa === 0n ? 0 : Math.floor((mantissa.toString(2).length - 1 + exponent) * Math.LOG10E * Math.LN2);
  let digits = scaled(magnitude, places - power);
  while (digits >= most) digits = scaled(magnitude, places - ++power);
  const [first = "", ...rest] = digits.toString().padStart(places + 1, "0");
  const written = `${power < 0 ? "-" : "+"}${Math.abs(power).toString().padStart(2, "0")}`;
  return { text: `${withPoint(first, rest.join(""), keepsPoint)}e${written}`, power };
}

function hexadecimal(
  isSubnormal: boolean,
  biased: number,
  fraction: bigint,
  precision: number | null,
  keepsPoint: boolean,
): string {
  const whole = isSubnormal ? fraction : fraction | (1n << 52n);
  const places = precision ?? 13;
  const kept = places >= 13
    ? whole << BigInt(4 * (places - 13))
    : roundedQuotient(whole, 1n << BigInt(52 - 4 * places));
  const digits = kept.toString(16).padStart(places + 1, "0");
  const rest = digits.slice(digits.length - places, digits.length);
  const shown = places === 0 ? "" : precision === null ? rest.replace(/0+$/, "") : rest;
  const power = fraction === 0n && isSubnormal ? 0 : (isSubnormal ? 1 : biased) - 1023;
  return `${withPoint(digits.slice(0, digits.length - places), shown, keepsPoint)}p${power < 0 ? "" : "+"}${power}`;
}
