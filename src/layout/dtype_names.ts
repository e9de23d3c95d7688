/**
 * Dtype names as types, and the JavaScript type of the elements of each. Types only.
 *
 * @module
 */
import type { DType, ElementValue } from "./dtype.ts";
import type { Complex, Scalar } from "./element.ts";

/** Names of sub-byte types. */
export type SubByteName =
  | `${"int" | "uint"}${1 | 2 | 3 | 4 | 5 | 6 | 7}`
  | "bool1"
  | "float6_e2m3fn"
  | "float6_e3m2fn"
  | "float4_e2m1fn";

/** The name of a scalar type: one lane of a dtype. */
export type ScalarName =
  | SubByteName
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

/** The name of a dtype: of a scalar, of packed sub-byte elements, or of lanes (`float32x4`). */
export type DTypeName = ScalarName | `${SubByteName}_packed` | `${ScalarName}x${number}`;

/**
 * How a dtype is specified: by its name, which the compiler checks, or by a {@linkcode DType}. {@linkcode DType.from}
 * makes a DType from a string known only at run time, or from another convention's name.
 */
export type DTypeLike = DTypeName | DType;

/** The name if it is a single one, and never if it may be one of several: the dtype for which a view is tested. */
export type OneDTypeName<N extends DTypeName, All = N> = N extends unknown ? ([All] extends [N] ? N : never) : never;

/** The name of a dtype specified like this; any name, if the type does not say which. */
export type DTypeNameOf<T> = T extends DTypeName ? T : T extends DType<infer Name> ? Name : DTypeName;

/**
 * The class of typed array that reads elements of a dtype, as in {@linkcode DType.typedArray}; never, if there is none.
 */
export type TypedArrayOf<D extends DTypeName> = D extends `complex${infer Bits extends 32 | 64 | 128}x${number}`
  ? TypedArrayOf<`complex${Bits}`> // first: complex has an x of its own
  : D extends `${infer Lane extends ScalarName}x${number}` ? TypedArrayOf<Lane>
  : D extends "int8" ? Int8Array<ArrayBuffer>
  : D extends "uint8" | "bool" ? Uint8Array<ArrayBuffer>
  : D extends "int16" ? Int16Array<ArrayBuffer>
  : D extends "uint16" ? Uint16Array<ArrayBuffer>
  : D extends "int32" ? Int32Array<ArrayBuffer>
  : D extends "uint32" ? Uint32Array<ArrayBuffer>
  : D extends "int64" ? BigInt64Array<ArrayBuffer>
  : D extends "uint64" | "handle64" ? BigUint64Array<ArrayBuffer>
  : D extends "float16" | "complex32" ? Float16Array<ArrayBuffer>
  : D extends "float32" | "complex64" ? Float32Array<ArrayBuffer>
  : D extends "float64" | "complex128" ? Float64Array<ArrayBuffer>
  : never;

/** The dtype of a typed array's elements, by the array's tag. */
export type DTypeNameOfArray<A> = A extends { readonly [Symbol.toStringTag]: infer Tag extends `${string}Array` }
  ? Tag extends "Uint8ClampedArray" ? "uint8"
  : Tag extends `Big${infer Name}Array` ? Extract<Lowercase<Name>, ScalarName>
  : Tag extends `${infer Name}Array` ? Extract<Lowercase<Name>, ScalarName>
  : DTypeName
  : DTypeName;

/**
 * The JavaScript type of an element of a dtype, as {@linkcode DType.read} returns it. The lanes of a dtype whose name
 * the compiler does not know may be of any type.
 */
// Exclude gives readonly Scalar[]: written as such it would be a type of its own for each dtype, all shown in errors.
export type ElementOf<D extends DTypeName> = D extends `complex${number}x${infer Lanes extends number}`
  ? (Lanes extends 1 ? Complex : number extends Lanes ? Exclude<ElementValue, Scalar> : readonly Complex[])
  : D extends `${infer Lane extends ScalarName}x${infer Lanes extends number}` ? (Lanes extends 1 ? ElementOf<Lane>
      : number extends Lanes ? Exclude<ElementValue, Scalar>
      : readonly ElementOf<Lane>[])
  : D extends `complex${number}` ? Complex
  : D extends "int64" | "uint64" | "handle64" ? bigint
  : D extends "bool" | "bool1" | "bool1_packed" ? boolean
  : number;

/**
 * The type that {@linkcode DType.write} takes for an element of a dtype: safe integers are accepted for bigints, and
 * numbers for complex ones without an imaginary part.
 */
export type WritableOf<D extends DTypeName> = D extends
  `${"int64" | "uint64" | "handle64"}x${infer Lanes extends number}` ? (Lanes extends 1 ? bigint | number
    : number extends Lanes ? Exclude<ElementValue, Scalar>
    : readonly (bigint | number)[])
  : D extends `complex${number}x${infer Lanes extends number}` ? (Lanes extends 1 ? Complex | number
      : number extends Lanes ? Exclude<ElementValue, Scalar>
      : readonly (Complex | number)[])
  : D extends "int64" | "uint64" | "handle64" ? bigint | number
  : D extends `complex${number}` ? Complex | number
  : ElementOf<D>;
