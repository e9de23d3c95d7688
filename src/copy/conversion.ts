/**
 * The element types that a copy can convert, and the results. The host (`host_conversion.ts`) and kernels
 * (`ptx_conversion.ts`) both follow these rules to the bit; only which NaN a NaN becomes is unspecified.
 *
 * | from | to bool | to an integer | to a float | to complex |
 * |---|---|---|---|---|
 * | bool | | 0 or 1 | 0 or 1 | real |
 * | integer | whether it is not 0 | its lowest bits | the nearest, ties to even; too large is infinite | real |
 * | float | whether it is not 0; NaN is true | truncated; saturated; NaN: 0 | the nearest | real |
 * | complex | whether a part is not 0 | as its real part | as its real part | each part |
 *
 * Integers wrap around as in C, NumPy and torch. A float outside the range of an integer type is undefined there, and
 * differs between processors: here it saturates, as in WebAssembly, Rust and XLA. Every value is rounded once.
 *
 * @module
 */
import { type DType, show } from "../layout/mod.ts";

/** A type that can be converted. */
export interface NumberType {
  /** The name of the dtype. */
  readonly name: string;
  /** The kind of its numbers, or parts. */
  readonly kind: "bool" | "int" | "uint" | "float" | "bfloat";
  /** Bits of a number, or of a part if it is complex. */
  readonly bits: 8 | 16 | 32 | 64;
  readonly isComplex: boolean;
}

/** The source and destination types. */
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

/** Conversions requested so far: the same pair of types is always the same conversion. */
const known = new Map<string, Map<string, Conversion | null>>();

/**
 * The conversion that a copy from one type to another needs.
 *
 * @returns null if the bytes are unchanged, as between integers of one size; otherwise the same object for each pair
 * @throws {TypeError} if one of the types cannot be converted
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

/** A positive integer that no other conversion has. */
export function idOf({ from, to }: Conversion): number {
  return numberTypes.indexOf(from) * numberTypes.length + numberTypes.indexOf(to) + 1;
}

/** Whether a type is an integer type; booleans are not. */
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
    `Cannot convert ${from.name} to ${to.name}: elements of ${dtype.name} cannot be converted. ` +
      `Expected one of ${numberTypes.map(({ name }) => name).join(", ")}. Element by element: ` +
      `StridedMemoryView.fromArray(view.toArray(), ${show(to.name)})`,
  );
}
