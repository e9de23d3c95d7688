/**
 * Literals of filters, and how the values of a column compare with them.
 *
 * @module
 */
import { show } from "../../layout/mod.ts";
import type { VortexDType } from "../dtype.ts";
import { isFloat } from "../ptype.ts";

/** What a column can be compared with. */
export type LiteralValue = number | bigint | string | boolean | Uint8Array | Date;

/**
 * A value of a column in the form that is compared: integers, decimals (their digits without the point) and the stored
 * values of dates and times as number or bigint, floats as number, text as its UTF-8 bytes.
 */
export type ColumnValue = number | bigint | boolean | Uint8Array;

/** How values are ordered. */
export type ValueOrder = "number" | "float" | "bool" | "bytes";

/** A literal of a filter: it equals `value`, or lies just above it. */
export interface Literal {
  readonly order: ValueOrder;
  /** The literal, or the greatest value of the column below it. */
  readonly value: ColumnValue;
  /** Whether the column can hold exactly this value: 12.345 lies between two decimals of two digits. */
  readonly isExact: boolean;
}

// law vortex/compareWith: vortex/file/filter
/** Compares a value with a literal: below it (-1), equal to it (0), above it (1). */
export function compareWith(value: ColumnValue, literal: Literal): -1 | 0 | 1 {
  const order = compareValues(value, literal.value, literal.order);
  return order !== 0 || literal.isExact ? order : -1;
}

/** Of literals of one order, those that are exact, each once, in ascending order. */
export function distinctLiterals(literals: readonly Literal[]): Literal[] {
  const compare = (one: Literal, other: Literal) => compareValues(one.value, other.value, one.order);
  const sorted = literals.filter(({ isExact }) => isExact).sort(compare);
  return sorted.filter((literal, i) => {
    const before = sorted[i - 1];
    return before === undefined || compare(before, literal) !== 0;
  });
}

/** Compares two values. */
export function compareValues(one: ColumnValue, other: ColumnValue, order: ValueOrder): -1 | 0 | 1 {
  if (order === "bytes") return compareBytes(one as Uint8Array, other as Uint8Array); // values in this order are bytes
  if (order === "float") return compareFloats(Number(one), Number(other));
  return one < other ? -1 : one > other ? 1 : 0; // bigints and numbers compare exactly
}

const float = new Float64Array(1);
const bits = new BigInt64Array(float.buffer);

// law vortex/floatKey: vortex/file/filter
/**
 * Maps each float to an integer, in the total order of IEEE 754. NaN is greater than everything: which one it is,
 * JavaScript does not say.
 */
export function floatKey(value: number): bigint {
  float[0] = Number.isNaN(value) ? NaN : value;
  const key = bits[0] ?? 0n;
  return key < 0n ? key ^ 0x7fff_ffff_ffff_ffffn : key;
}

function compareFloats(one: number, other: number): -1 | 0 | 1 {
  if (one < other) return -1;
  if (one > other) return 1;
  if (one === other && one !== 0) return 0;
  const [a, b] = [floatKey(one), floatKey(other)];
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Lexicographic order of bytes: the first difference decides, otherwise the shorter is less. */
export function compareBytes(one: Uint8Array, other: Uint8Array): -1 | 0 | 1 {
  const length = Math.min(one.length, other.length);
  for (let i = 0; i < length; i++) {
    const [a = 0, b = 0] = [one[i], other[i]];
    if (a !== b) return a < b ? -1 : 1;
  }
  return one.length < other.length ? -1 : one.length > other.length ? 1 : 0;
}

const encoder = new TextEncoder();

/** Factors from a `Date`'s milliseconds to days, seconds or parts of a second, by the code of the unit. */
const units = {
  0: { multiply: 1_000_000n, divide: 1n },
  1: { multiply: 1000n, divide: 1n },
  2: { multiply: 1n, divide: 1n },
  3: { multiply: 1n, divide: 1000n },
  4: { multiply: 1n, divide: 86_400_000n },
} as const;

/**
 * A value as a literal for a column.
 *
 * @param where the column, for errors
 * @throws {TypeError} if the column cannot have such values
 */
export function literalOf(value: LiteralValue, dtype: VortexDType, where: string): Literal {
  const wrong = (expected: string): never => {
    throw new TypeError(`Cannot compare ${where} with ${show(value)}: expected ${expected}`);
  };
  switch (dtype.kind) {
    case "bool":
      return typeof value === "boolean" ? exact("bool", value) : wrong("true or false");
    case "primitive":
      if (typeof value !== "number" && typeof value !== "bigint") return wrong("a number or bigint");
      if (isFloat(dtype.ptype)) {
        const float = Number(value); // Infinity for a bigint beyond the range
        if (float < value || float > value) return wrong("a number a float can hold");
        return exact("float", float);
      }
      return Number.isNaN(value) ? wrong("a number other than NaN") : exact("number", value);
    case "decimal":
      return decimalLiteral(value, dtype.scale) ?? wrong("a number, a bigint or a string of decimal digits");
    case "utf8":
      return typeof value === "string" ? exact("bytes", encoder.encode(value)) : wrong("a string");
    case "binary":
      return value instanceof Uint8Array ? exact("bytes", value) : wrong("a Uint8Array");
    case "extension": {
      const unit = units[(dtype.metadata[0] ?? -1) as keyof typeof units]; // undefined for an unknown unit
      const isTime = ["vortex.timestamp", "vortex.date", "vortex.time"].includes(dtype.id);
      if (!isTime) return wrong("nothing: values of this extension have no known order");
      if (value instanceof Date && dtype.id !== "vortex.time" && unit !== undefined) {
        const { multiply, divide } = unit;
        const time = value.getTime();
        return Number.isNaN(time) ? wrong("a valid Date") : floored(BigInt(time) * multiply, divide);
      }
      if (typeof value === "bigint" || Number.isFinite(value)) return exact("number", value as number | bigint);
      return wrong(dtype.id === "vortex.time" ? "the stored number" : "a Date, or the stored number");
    }
    default:
      return wrong("nothing: only is_null and is_not_null apply to it");
  }
}

/** A prefix of text or binary values, as bytes. @throws {TypeError} for other columns */
export function prefixOf(value: string | Uint8Array, dtype: VortexDType, where: string): Uint8Array {
  const { order, value: prefix } = literalOf(value, dtype, where);
  if (order === "bytes" && prefix instanceof Uint8Array) return prefix;
  throw new TypeError(`Cannot use starts_with on ${where}: expected a column of text or binary values`);
}

function exact(order: ValueOrder, value: ColumnValue): Literal {
  return { order, value, isExact: true };
}

/** A quotient, rounded down. */
function floored(dividend: bigint, divisor: bigint): Literal {
  const rest = ((dividend % divisor) + divisor) % divisor;
  return { order: "number", value: (dividend - rest) / divisor, isExact: rest === 0n };
}

// law vortex/decimalLiteral: vortex/file/filter
/** A number as the digits of a decimal of the given scale; null if it is not a number. */
function decimalLiteral(value: LiteralValue, scale: number): Literal | null {
  if (typeof value === "number" && !Number.isFinite(value)) return null;
  if (typeof value !== "number" && typeof value !== "bigint" && typeof value !== "string") return null;
  // A number means the decimal that it is printed as: 0.1 is one tenth.
  const parts = /^(?<sign>[+-]?)(?<whole>\d*)(?:\.(?<rest>\d*))?(?:e(?<power>[+-]?\d{1,3}))?$/i.exec(`${value}`)
    ?.groups;
  const digits = `${parts?.["whole"] ?? ""}${parts?.["rest"] ?? ""}`;
  if (parts === undefined || digits === "") return null;
  const power = Number(parts["power"] ?? 0) - (parts["rest"] ?? "").length + scale;
  const unsigned = BigInt(digits) * (power > 0 ? 10n ** BigInt(power) : 1n);
  return floored(parts["sign"] === "-" ? -unsigned : unsigned, power < 0 ? 10n ** BigInt(-power) : 1n);
}
