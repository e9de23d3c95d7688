/**
 * Glue between nodes and codecs: numbers of decoded nodes as bytes and indices, and bytes as numbers.
 *
 * @module
 */
import type { PrimitiveArray } from "../canonical.ts";
import type { DecodeContext } from "../decode_context.ts";
import { type DTypeOf, primitiveDType } from "../dtype.ts";
import type { EncodedNode } from "../encoded_node.ts";
import { isFloat, isSigned, isUnsigned, type PType, ptypes, valuesAt, widthOf } from "../ptype.ts";
import type { ProtoMessage } from "../wire/protobuf.ts";
import type { Bytes } from "../wire/source.ts";
import { type Bits, type Indices, indicesOf } from "./words.ts";

/** The bit width of a value. */
export function bitsOf(ptype: PType): Bits {
  return ({ 1: 8, 2: 16, 4: 32, 8: 64 } as const)[widthOf(ptype)];
}

/** The bytes of numbers, without copying. */
export function bytesOf({ values }: PrimitiveArray): Bytes {
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
}

/** Bytes as the numbers of a dtype. */
export function numbersOf(dtype: DTypeOf<"primitive">, bytes: Bytes, validity: Bytes | null): PrimitiveArray {
  const length = bytes.length / widthOf(dtype.ptype);
  const values = valuesAt(dtype.ptype, bytes.buffer, length === 0 ? 0 : bytes.byteOffset, length);
  return { kind: "primitive", dtype, length, validity, values };
}

// law vortex/numeric.indexColumn: vortex/numeric/malformed
/** Decodes a node of unsigned integers used as indices. */
export function indexColumn(node: EncodedNode, context: DecodeContext): Indices {
  const array = context.primitive(node);
  const bits = bitsOf(array.dtype.ptype);
  if (bits === 64) context.charge(8 * array.length, node);
  return indicesOf(bytesOf(array), bits);
}

const families = {
  "an unsigned integer": isUnsigned,
  "a signed integer": isSigned,
  "an integer": (ptype: PType) => !isFloat(ptype),
} as const;

/** What kind of number a ptype must be. */
type Family = keyof typeof families;

// law vortex/numeric.ptypeIn: vortex/numeric/malformed
/** The ptype named by a metadata field. @throws {VortexError} if it names none, or none of the family */
export function ptypeIn(node: EncodedNode, message: ProtoMessage, field: number, family: Family): PType {
  return ptypeOf(node, message.u32(field), family);
}

/** The ptype with a code. @throws {VortexError} if there is none, or it is not of the family */
export function ptypeOf(node: EncodedNode, code: number, family: Family): PType {
  const ptype = ptypes[code] ?? node.fail(`The metadata of ${node.id} names the ptype ${code}: expected 0 to 10`);
  if (families[family](ptype)) return ptype;
  return node.fail(`The metadata of ${node.id} names ${ptype}: expected ${family}`);
}

/** A child of non-null unsigned integers. */
export function unsignedChild(node: EncodedNode, index: number, ptype: PType, length: number): EncodedNode {
  return node.child(index, primitiveDType(ptype), length);
}

/** The node's dtype, which must be an integer type. */
export function integerDType(node: EncodedNode): DTypeOf<"primitive"> {
  const { dtype } = node;
  if (dtype.kind === "primitive" && !isFloat(dtype.ptype)) return dtype;
  return node.fail(`${node.id} cannot have the dtype ${node.typeText}. Expected integers`);
}

// law vortex/numeric.blockOffset: vortex/numeric/malformed
/** The number of rows sliced off the first block of 1024, from a metadata field. */
export function blockOffset(node: EncodedNode, message: ProtoMessage, field: number): number {
  const offset = message.u32(field);
  if (offset < 1024) return offset;
  return node.fail(`${node.id} begins at row ${offset} of a block of 1024. Expected 0 to 1023`);
}
