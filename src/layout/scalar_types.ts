/** Every scalar type that DLPack 1.3 can name, with its name in the other conventions. Data only. */
import {
  bigintCodec,
  booleanCodec,
  complexCodec,
  floatCodec,
  integerCodec,
  type IntegerKind,
  minifloatCodec,
  type ScalarCodec,
} from "./element.ts";
import { type FloatFormat, MinifloatCodec, PowerOfTwoCodec } from "./minifloat.ts";

/** JavaScript's arrays of numbers. */
export type TypedArray =
  | Int8Array
  | Uint8Array
  | Uint8ClampedArray
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array
  | Float16Array
  | Float32Array
  | Float64Array;

/** A class of {@linkcode TypedArray}. */
export type TypedArrayConstructor =
  | Int8ArrayConstructor
  | Uint8ArrayConstructor
  | Uint8ClampedArrayConstructor
  | Int16ArrayConstructor
  | Uint16ArrayConstructor
  | Int32ArrayConstructor
  | Uint32ArrayConstructor
  | BigInt64ArrayConstructor
  | BigUint64ArrayConstructor
  | Float16ArrayConstructor
  | Float32ArrayConstructor
  | Float64ArrayConstructor;

/** A scalar type: one lane of a dtype. */
export interface ScalarType {
  /** The name in NumPy and ml_dtypes. */
  readonly name: string;
  /** DLDataTypeCode. */
  readonly code: number;
  /** Bits that carry the value. */
  readonly bits: number;
  /** NumPy's type string in the interface protocols, or null. */
  readonly typestr: string | null;
  /** The format of the Arrow C data interface for whole elements, or null. */
  readonly arrowFormat: string | null;
  /** Makes the reader and writer; called once, when the first element is accessed. */
  readonly makeCodec: () => ScalarCodec;
}

/** DLDataTypeCode of DLPack 1.3: a copy of the binding, which this room does not import. */
export const dlpackCode = {
  int: 0,
  uint: 1,
  float: 2,
  handle: 3,
  bfloat: 4,
  complex: 5,
  bool: 6,
  float8_e3m4: 7,
  float8_e4m3: 8,
  float8_e4m3b11fnuz: 9,
  float8_e4m3fn: 10,
  float8_e4m3fnuz: 11,
  float8_e5m2: 12,
  float8_e5m2fnuz: 13,
  float8_e8m0fnu: 14,
  float6_e2m3fn: 15,
  float6_e3m2fn: 16,
  float4_e2m1fn: 17,
} as const;

const ARROW_INTEGERS: ReadonlyMap<string, string> = new Map([
  ["int8", "c"],
  ["uint8", "C"],
  ["int16", "s"],
  ["uint16", "S"],
  ["int32", "i"],
  ["uint32", "I"],
  ["int64", "l"],
  ["uint64", "L"],
]);

const FLOAT16: FloatFormat = { exponentBits: 5, fractionBits: 10, bias: 15, special: "ieee" };
const BFLOAT16: FloatFormat = { exponentBits: 8, fractionBits: 7, bias: 127, special: "ieee" };

function integer(kind: IntegerKind, bits: number): ScalarType {
  const name = `${kind}${bits}`;
  const order = bits === 8 ? "|" : "<";
  return {
    name,
    code: dlpackCode[kind],
    bits,
    typestr: bits < 8 ? null : `${order}${kind === "int" ? "i" : "u"}${bits / 8}`,
    arrowFormat: ARROW_INTEGERS.get(name) ?? null,
    makeCodec: () => bits === 64 ? bigintCodec(kind, name) : integerCodec(kind, bits),
  };
}

function minifloat(name: keyof typeof dlpackCode, bits: number, format: FloatFormat): ScalarType {
  return {
    name,
    code: dlpackCode[name],
    bits,
    typestr: null,
    arrowFormat: null,
    makeCodec: () => minifloatCodec(name, bits, new MinifloatCodec(name, format)),
  };
}

function complex(bits: number, typestr: string | null, makePart: () => ScalarCodec): ScalarType {
  const name = `complex${bits}`;
  return {
    name,
    code: dlpackCode.complex,
    bits,
    typestr,
    arrowFormat: null,
    makeCodec: () => complexCodec(name, makePart(), bits / 16),
  };
}

function boolean(name: string, bits: number, typestr: string | null): ScalarType {
  return { name, code: dlpackCode.bool, bits, typestr, arrowFormat: null, makeCodec: () => booleanCodec(name, bits) };
}

const makeFloat16Codec = (): ScalarCodec => minifloatCodec("float16", 16, new MinifloatCodec("float16", FLOAT16));

const INTEGER_WIDTHS = [1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64];

/** All scalar types. */
export const SCALAR_TYPES: readonly ScalarType[] = [
  ...INTEGER_WIDTHS.map((bits) => integer("int", bits)),
  ...INTEGER_WIDTHS.map((bits) => integer("uint", bits)),
  { name: "float16", code: dlpackCode.float, bits: 16, typestr: "<f2", arrowFormat: "e", makeCodec: makeFloat16Codec },
  {
    name: "float32",
    code: dlpackCode.float,
    bits: 32,
    typestr: "<f4",
    arrowFormat: "f",
    makeCodec: () => floatCodec("float32", 32),
  },
  {
    name: "float64",
    code: dlpackCode.float,
    bits: 64,
    typestr: "<f8",
    arrowFormat: "g",
    makeCodec: () => floatCodec("float64", 64),
  },
  {
    name: "handle64",
    code: dlpackCode.handle,
    bits: 64,
    typestr: null,
    arrowFormat: null,
    makeCodec: () => bigintCodec("uint", "handle64"),
  },
  {
    name: "bfloat16",
    code: dlpackCode.bfloat,
    bits: 16,
    typestr: null,
    arrowFormat: null,
    makeCodec: () => minifloatCodec("bfloat16", 16, new MinifloatCodec("bfloat16", BFLOAT16)),
  },
  complex(32, null, makeFloat16Codec),
  complex(64, "<c8", () => floatCodec("complex64", 32)),
  complex(128, "<c16", () => floatCodec("complex128", 64)),
  boolean("bool", 8, "|b1"),
  boolean("bool1", 1, null),
  minifloat("float8_e3m4", 8, { exponentBits: 3, fractionBits: 4, bias: 3, special: "ieee" }),
  minifloat("float8_e4m3", 8, { exponentBits: 4, fractionBits: 3, bias: 7, special: "ieee" }),
  minifloat("float8_e4m3b11fnuz", 8, { exponentBits: 4, fractionBits: 3, bias: 11, special: "fnuz" }),
  minifloat("float8_e4m3fn", 8, { exponentBits: 4, fractionBits: 3, bias: 7, special: "nan" }),
  minifloat("float8_e4m3fnuz", 8, { exponentBits: 4, fractionBits: 3, bias: 8, special: "fnuz" }),
  minifloat("float8_e5m2", 8, { exponentBits: 5, fractionBits: 2, bias: 15, special: "ieee" }),
  minifloat("float8_e5m2fnuz", 8, { exponentBits: 5, fractionBits: 2, bias: 16, special: "fnuz" }),
  {
    name: "float8_e8m0fnu",
    code: dlpackCode.float8_e8m0fnu,
    bits: 8,
    typestr: null,
    arrowFormat: null,
    makeCodec: () => minifloatCodec("float8_e8m0fnu", 8, new PowerOfTwoCodec()),
  },
  minifloat("float6_e2m3fn", 6, { exponentBits: 2, fractionBits: 3, bias: 1, special: "finite" }),
  minifloat("float6_e3m2fn", 6, { exponentBits: 3, fractionBits: 2, bias: 3, special: "finite" }),
  minifloat("float4_e2m1fn", 4, { exponentBits: 2, fractionBits: 1, bias: 1, special: "finite" }),
];

/** The class of typed array whose elements are the scalars of a type (the parts, of a complex one), or null. */
export function typedArrayFor(name: string): TypedArrayConstructor | null {
  switch (name) {
    case "int8":
      return Int8Array;
    case "uint8":
    case "bool":
      return Uint8Array;
    case "int16":
      return Int16Array;
    case "uint16":
      return Uint16Array;
    case "int32":
      return Int32Array;
    case "uint32":
      return Uint32Array;
    case "int64":
      return BigInt64Array;
    case "uint64":
    case "handle64":
      return BigUint64Array;
    case "float16":
    case "complex32":
      // Not in every browser yet.
      return typeof Float16Array === "undefined" ? null : Float16Array;
    case "float32":
    case "complex64":
      return Float32Array;
    case "float64":
    case "complex128":
      return Float64Array;
    default:
      return null;
  }
}
