/**
 * Which types of elements a copy can convert, and what a value becomes. The host (`host_conversion.ts`) and kernels
 * (`ptx_conversion.ts`) both keep to it, to the bit; only which NaN a NaN becomes is left open.
 *
 * | from | to bool | to an integer | to a float | to complex |
 * |---|---|---|---|---|
 * | bool | | 0 or 1 | 0 or 1 | real |
 * | integer | whether it is not 0 | its lowest bits | the nearest, ties to even; too large is infinite | real |
 * | float | whether it is not 0; NaN is true | without fraction; the nearest there is; NaN: 0 | the nearest | real |
 * | complex | whether a part is not 0 | as its real part | as its real part | each part |
 *
 * Integers wrap around as in C, NumPy and torch. A float outside the range of an integer type is undefined there, and
 * differs between processors: here it saturates, as in WebAssembly, Rust and XLA. Every value is rounded once.
 *
 * @module
 */
import type { DType } from "../layout/mod.ts";

/** A type that can be converted. */
export interface NumberType {
  /** As the dtype is called. */
  readonly name: string;
  /** What its numbers, or parts, are. */
  readonly kind: "bool" | "int" | "uint" | "float" | "bfloat";
  /** Bits of a number; of a part, if it is complex. */
  readonly bits: 8 | 16 | 32 | 64;
  readonly isComplex: boolean;
}

/** From which type to which. */
export interface Conversion {
  readonly from: NumberType;
  readonly to: NumberType;
}

function integers(kind: "int" | "uint"): NumberType[] {
  return ([8, 16, 32, 64] as const).map((bits) => ({ name: `${kind}${bits}`, kind, bits, isComplex: false }));
}

const floats = ([16, 32, 64] as const).map((bits): NumberType => ({
  name: `float${bits}`,
  kind: "float",
  bits,
  isComplex: false,
}));

/** All types that can be converted. */
export const numberTypes: readonly NumberType[] = [
  { name: "bool", kind: "bool", bits: 8, isComplex: false },
  ...integers("int"),
  ...integers("uint"),
  ...floats,
  { name: "bfloat16", kind: "bfloat", bits: 16, isComplex: false },
  { name: "complex64", kind: "float", bits: 32, isComplex: true },
  { name: "complex128", kind: "float", bits: 64, isComplex: true },
];

const byName = new Map(numberTypes.map((type) => [type.name, type]));

/** What has been asked for: the same pair of types is always the same conversion. */
const known = new Map<string, Map<string, Conversion | null>>();

/**
 * What a copy from one type to another has to convert.
 *
 * @returns null if the bytes stay what they are, as between integers of one size; otherwise for each pair the same object
 * @throws {TypeError} if one of them is a type that is not converted
 */
export function conversionOf(from: DType, to: DType): Conversion | null {
  if (from.equals(to)) return null;
  const found = known.get(from.name)?.get(to.name);
  return found !== undefined ? found : newConversion(from, to);
}

function newConversion(from: DType, to: DType): Conversion | null {
  const conversion = { from: numberType(from, from, to), to: numberType(to, from, to) };
  const isCopy = isInteger(conversion.from) && isInteger(conversion.to) && conversion.from.bits === conversion.to.bits;
  const kept = isCopy ? null : conversion;
  known.getOrInsertComputed(from.name, () => new Map()).set(to.name, kept);
  return kept;
}

/** Whether a type has numbers without fractions, and more than two of them. */
export function isInteger({ kind }: NumberType): boolean {
  return kind === "int" || kind === "uint";
}

/** Bytes of an element. */
export function bytesOf({ bits, isComplex }: NumberType): number {
  return bits / 8 * (isComplex ? 2 : 1);
}

function numberType(dtype: DType, from: DType, to: DType): NumberType {
  const type = byName.get(dtype.name);
  if (type !== undefined) return type;
  throw new TypeError(
    `Cannot convert ${from.name} to ${to.name}: elements of ${dtype.name} are not converted. ` +
      `Expected one of ${numberTypes.map(({ name }) => name).join(", ")}`,
  );
}
