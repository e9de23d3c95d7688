/**
 * Between nodes and codecs: numbers of decoded nodes as bytes and indices, and bytes as numbers.
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
import { DataError } from "./data_error.ts";
import { type Bits, type Indices, indicesOf } from "./words.ts";

/** Bits of a value. */
export function bitsOf(ptype: PType): Bits {
  return ({ 1: 8, 2: 16, 4: 32, 8: 64 } as const)[widthOf(ptype)];
}

/** The bytes of numbers, not copied. */
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
/** Decodes a node of unsigned integers that say where something is. */
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

/** What a ptype must be. */
type Family = keyof typeof families;

// law vortex/numeric.ptypeIn: vortex/numeric/malformed
/** The ptype that a field of the metadata names. @throws {VortexError} if it names none, or none of the family */
export function ptypeIn(node: EncodedNode, message: ProtoMessage, field: number, family: Family): PType {
  return ptypeOf(node, message.u32(field), family);
}

/** The ptype that a number stands for. @throws {VortexError} if it stands for none, or none of the family */
export function ptypeOf(node: EncodedNode, code: number, family: Family): PType {
  const ptype = ptypes[code] ?? node.fail(`The metadata of ${node.id} names the ptype ${code}: expected 0 to 10`);
  if (families[family](ptype)) return ptype;
  return node.fail(`The metadata of ${node.id} names ${ptype}: expected ${family}`);
}

/** A child of unsigned integers, none of which is null. */
export function unsignedChild(node: EncodedNode, index: number, ptype: PType, length: number): EncodedNode {
  return node.child(index, primitiveDType(ptype), length);
}

/** The node's dtype, which must be of integers. */
export function integerDType(node: EncodedNode): DTypeOf<"primitive"> {
  const { dtype } = node;
  if (dtype.kind === "primitive" && !isFloat(dtype.ptype)) return dtype;
  return node.fail(`${node.id} cannot have the dtype ${node.typeText}. Expected integers`);
}

// law vortex/numeric.blockOffset: vortex/numeric/malformed
/** How many rows of the first block of 1024 a slice has cut off, by a field of the metadata. */
export function blockOffset(node: EncodedNode, message: ProtoMessage, field: number): number {
  const offset = message.u32(field);
  if (offset < 1024) return offset;
  return node.fail(`${node.id} begins at row ${offset} of a block of 1024. Expected 0 to 1023`);
}

/** Runs a codec, or what is done with decoded arrays: they know of no nodes, and their errors become the node's. */
export function inNode<T>(node: EncodedNode, decode: () => T): T {
  try {
    return decode();
  } catch (error) {
    if (error instanceof DataError || error instanceof RangeError) throw node.error(error.message, { cause: error });
    throw error;
  }
}
