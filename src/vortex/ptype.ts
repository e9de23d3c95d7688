/**
 * Primitive types: the number types that arrays are made of.
 *
 * @module
 */

/** A number type, by the name that Vortex prints. */
export type PType = "u8" | "u16" | "u32" | "u64" | "i8" | "i16" | "i32" | "i64" | "f16" | "f32" | "f64";

/** All ptypes, in the order of their codes on the wire. */
export const ptypes: readonly PType[] = ["u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f16", "f32", "f64"];

/** Values of a ptype. For f16, their bits: not every runtime has an array type for it, and every one can move bits. */
export type PrimitiveValues =
  | Uint8Array<ArrayBuffer>
  | Uint16Array<ArrayBuffer>
  | Uint32Array<ArrayBuffer>
  | BigUint64Array<ArrayBuffer>
  | Int8Array<ArrayBuffer>
  | Int16Array<ArrayBuffer>
  | Int32Array<ArrayBuffer>
  | BigInt64Array<ArrayBuffer>
  | Float32Array<ArrayBuffer>
  | Float64Array<ArrayBuffer>;

/** Bytes per value. */
export function widthOf(ptype: PType): 1 | 2 | 4 | 8 {
  switch (ptype) {
    case "u8":
    case "i8":
      return 1;
    case "u16":
    case "i16":
    case "f16":
      return 2;
    case "u32":
    case "i32":
    case "f32":
      return 4;
    default:
      return 8;
  }
}

/** Whether values are unsigned integers. */
export function isUnsigned(ptype: PType): boolean {
  return ptype.startsWith("u");
}

/** Whether values are signed integers. */
export function isSigned(ptype: PType): boolean {
  return ptype.startsWith("i");
}

/** Whether values are floating-point numbers. */
export function isFloat(ptype: PType): boolean {
  return ptype.startsWith("f");
}

/** The unsigned ptype of the same width. */
export function unsignedTwin(ptype: PType): PType {
  return ({ 1: "u8", 2: "u16", 4: "u32", 8: "u64" } as const)[widthOf(ptype)];
}

/** A view of `length` values in a buffer, at a multiple of their width, without a copy. */
export function valuesAt(ptype: PType, buffer: ArrayBuffer, byteOffset: number, length: number): PrimitiveValues {
  switch (ptype) {
    case "u8":
      return new Uint8Array(buffer, byteOffset, length);
    case "u16":
    case "f16":
      return new Uint16Array(buffer, byteOffset, length);
    case "u32":
      return new Uint32Array(buffer, byteOffset, length);
    case "u64":
      return new BigUint64Array(buffer, byteOffset, length);
    case "i8":
      return new Int8Array(buffer, byteOffset, length);
    case "i16":
      return new Int16Array(buffer, byteOffset, length);
    case "i32":
      return new Int32Array(buffer, byteOffset, length);
    case "i64":
      return new BigInt64Array(buffer, byteOffset, length);
    case "f32":
      return new Float32Array(buffer, byteOffset, length);
    case "f64":
      return new Float64Array(buffer, byteOffset, length);
  }
}
