/**
 * The names of dtypes as types, and what the elements of each are in JavaScript. Types alone.
 *
 * @module
 */
import type { DType } from "./dtype.ts";
import type { Complex } from "./element.ts";

/** Names of types of less than a byte. */
type SubByteName =
  | `${"int" | "uint"}${1 | 2 | 3 | 4 | 5 | 6 | 7}`
  | "bool1"
  | "float6_e2m3fn"
  | "float6_e3m2fn"
  | "float4_e2m1fn";

/** Names of types of one lane and of whole bytes. */
type WholeName =
  | `${"int" | "uint"}${8 | 16 | 32 | 64}`
  | "float16"
  | "float32"
  | "float64"
  | "bfloat16"
  | "complex32"
  | "complex64"
  | "complex128"
  | "bool"
  | "handle64"
  | "float8_e3m4"
  | "float8_e4m3"
  | "float8_e4m3b11fnuz"
  | "float8_e4m3fn"
  | "float8_e4m3fnuz"
  | "float8_e5m2"
  | "float8_e5m2fnuz"
  | "float8_e8m0fnu";

/** The name of a scalar type: one lane of a dtype. */
export type ScalarName = WholeName | SubByteName;

/** The name of a dtype: of a scalar, of packed elements of less than a byte, or of lanes (`float32x4`). */
export type DTypeName = ScalarName | `${SubByteName}_packed` | `${ScalarName}x${number}`;

/**
 * What a dtype can be given as: its name, or any other string that {@linkcode DType.from} knows. The names stand in the
 * union for editors to offer; `string` alone would swallow them.
 */
export type DTypeLike = DTypeName | (string & Record<never, never>) | DType;

/** The name of the dtype that is given so; any name, if the type does not say which. */
export type DTypeNameOf<T> = T extends DTypeName ? T : T extends DType<infer Name> ? Name : DTypeName;

/** Arrays whose elements are scalars of a type, or the parts of complex ones. */
interface TypedArrays {
  readonly int8: Int8Array<ArrayBuffer>;
  readonly uint8: Uint8Array<ArrayBuffer>;
  readonly bool: Uint8Array<ArrayBuffer>;
  readonly int16: Int16Array<ArrayBuffer>;
  readonly uint16: Uint16Array<ArrayBuffer>;
  readonly int32: Int32Array<ArrayBuffer>;
  readonly uint32: Uint32Array<ArrayBuffer>;
  readonly int64: BigInt64Array<ArrayBuffer>;
  readonly uint64: BigUint64Array<ArrayBuffer>;
  readonly handle64: BigUint64Array<ArrayBuffer>;
  readonly float16: Float16Array<ArrayBuffer>;
  readonly complex32: Float16Array<ArrayBuffer>;
  readonly float32: Float32Array<ArrayBuffer>;
  readonly complex64: Float32Array<ArrayBuffer>;
  readonly float64: Float64Array<ArrayBuffer>;
  readonly complex128: Float64Array<ArrayBuffer>;
}

/** The class of typed array that reads elements of a dtype, as {@linkcode DType.typedArray} says; never, if none does. */
export type TypedArrayOf<D extends DTypeName> = D extends keyof TypedArrays ? TypedArrays[D]
  : D extends `${infer Lane extends keyof TypedArrays}x${number}` ? TypedArrays[Lane]
  : never;

/** Dtypes by what typed arrays call themselves. */
interface NamesOfArrays {
  readonly Int8Array: "int8";
  readonly Uint8Array: "uint8";
  readonly Uint8ClampedArray: "uint8";
  readonly Int16Array: "int16";
  readonly Uint16Array: "uint16";
  readonly Int32Array: "int32";
  readonly Uint32Array: "uint32";
  readonly BigInt64Array: "int64";
  readonly BigUint64Array: "uint64";
  readonly Float16Array: "float16";
  readonly Float32Array: "float32";
  readonly Float64Array: "float64";
}

/** The dtype of a typed array's elements. */
export type DTypeNameOfArray<A> = A extends { readonly [Symbol.toStringTag]: infer Tag extends keyof NamesOfArrays }
  ? NamesOfArrays[Tag]
  : DTypeName;

/** Names of 64-bit integers. */
type LongName = "int64" | "uint64" | "handle64";

/** What a scalar of a type is in JavaScript. */
type ScalarOf<Name> = Name extends LongName ? bigint
  : Name extends "bool" | "bool1" | "bool1_packed" ? boolean
  : Name extends `complex${number}` ? Complex
  : number;

/** A dtype with lanes. */
type LanesName = `${ScalarName}x${number}`;

/** What an element of a dtype is in JavaScript, as {@linkcode DType.read} returns it. */
export type ElementOf<D extends DTypeName> = D extends Exclude<DTypeName, LanesName> ? ScalarOf<D>
  : D extends `${infer Lane extends ScalarName}x${number}` ? readonly ScalarOf<Lane>[]
  : never;

/** What {@linkcode DType.write} takes for an element of a dtype: safe integers will do for bigints. */
export type WritableOf<D extends DTypeName> = D extends Exclude<DTypeName, LanesName>
  ? ScalarOf<D> | (D extends LongName ? number : never)
  : D extends `${infer Lane extends ScalarName}x${number}`
    ? readonly (ScalarOf<Lane> | (Lane extends LongName ? number : never))[]
  : never;
