/**
 * Decimals as words, each in a column.
 *
 * @module
 */
import { type DTypeOf, primitiveDType } from "../dtype.ts";
import type { EncodedNode } from "../encoded_node.ts";
import type { VortexEncoding } from "../encoding.ts";
import { checkDigits } from "../encodings/decimal.ts";
import { widthOf } from "../ptype.ts";
import { bitsOf, bytesOf, ptypeIn, ptypeOf } from "./columns.ts";
import { type Bits, smallWords, words32 } from "./words.ts";

interface OpenedDecimal {
  readonly dtype: DTypeOf<"decimal">;
  readonly first: EncodedNode;
  /** The unsigned parts after it. */
  readonly lower: readonly EncodedNode[];
}

/** The most parts of a decimal after the first: 256 bits in all. */
const maxLower = 3;

/** Opens a decimal from the ptype of its first part, which its metadata names, and those of the others. */
function openDecimal(node: EncodedNode, lowerCodes: readonly number[]): OpenedDecimal {
  const { dtype, length } = node;
  if (dtype.kind !== "decimal") {
    return node.fail(`${node.id} cannot have the dtype ${node.typeText}. Expected decimals`);
  }
  if (lowerCodes.length > maxLower) {
    node.fail(`${node.id} has ${lowerCodes.length} lower parts. Expected ${maxLower} at most`);
  }
  const message = node.message();
  node.expectBuffers(0);
  node.expectChildren(1 + lowerCodes.length);
  const first = node.child(0, primitiveDType(ptypeIn(node, message, 1, "a signed integer"), dtype.nullable), length);
  const lower = lowerCodes.map((code, index) =>
    node.child(index + 1, primitiveDType(ptypeOf(node, code, "an unsigned integer")), length)
  );
  return { dtype, first, lower };
}

const decodeDecimal: VortexEncoding<OpenedDecimal>["decode"] = (node, { dtype, first, lower }, context) => {
  const { length } = node;
  const array = context.primitive(first);
  const { validity } = array;
  const top: Part = { bytes: bytesOf(array), bits: bitsOf(array.dtype.ptype) };
  const base = { kind: "decimal", dtype, length, validity } as const;
  if (lower.length === 0) {
    const [bytes, width] = [bytesOf(array), widthOf(array.dtype.ptype)];
    checkDigits(bytes, width, dtype, validity, node);
    return { ...base, width, bytes };
  }
  const others = lower.map((one): Part => {
    const part = context.primitive(one);
    return { bytes: bytesOf(part), bits: bitsOf(part.dtype.ptype) };
  });
  const width = lower.length === 1 ? 16 : 32;
  const bytes = context.allocate(width * length, node);
  joinPartsInto(bytes, width, top, others);
  checkDigits(bytes, width, dtype, validity, node);
  return { ...base, width, bytes };
};

// law vortex/numeric.decimalPartsEncoding: vortex/numeric/built, vortex/numeric/malformed
/** Decimals that fit in integers of at most 64 bits. */
export const decimalPartsEncoding: VortexEncoding<OpenedDecimal> = {
  id: "vortex.decimal_byte_parts",
  open(node) {
    const count = node.message().number(2);
    if (count !== 0) node.fail(`${node.id} has ${count} lower parts. Expected none: only .v2 has them`);
    return openDecimal(node, []);
  },
  decode: decodeDecimal,
};

// law vortex/numeric.decimalPartsV2Encoding: vortex/numeric/built, vortex/numeric/malformed
/** Decimals of a signed part and up to three unsigned parts, most significant first. */
export const decimalPartsV2Encoding: VortexEncoding<OpenedDecimal> = {
  id: "vortex.decimal_byte_parts.v2",
  open: (node) => openDecimal(node, node.message().everyNumber(2)),
  decode: decodeDecimal,
};

/** A column of integers that are parts of wider integers. */
export interface Part {
  /** The words. */
  readonly bytes: Uint8Array;
  readonly bits: Bits;
}

// law vortex/numeric.joinPartsInto: vortex/numeric/decimal_parts
/**
 * Joins 128- or 256-bit integers from their most significant part, which is signed, and one to three unsigned parts
 * that occupy 64 bits each, most significant first.
 *
 * @param out one integer of `width` bytes per row
 */
export function joinPartsInto(out: Uint8Array, width: 16 | 32, first: Part, lower: readonly Part[]): void {
  const to = words32(out);
  const stride = width >> 2;
  const sign = 32 - Math.min(first.bits, 32);
  const [top, isLong] = [smallWords(first.bytes, first.bits), first.bits === 64];
  const place = 2 * lower.length;
  const length = to.length / stride;
  for (let row = 0; row < length; row++) {
    const low = isLong ? top[2 * row] ?? 0 : (top[row] ?? 0) << sign >> sign;
    const high = isLong ? top[2 * row + 1] ?? 0 : low >> 31;
    to[row * stride + place] = low;
    to[row * stride + place + 1] = high;
    for (let word = place + 2; word < stride; word++) to[row * stride + word] = high >> 31;
  }
  for (const [index, { bytes, bits }] of lower.entries()) {
    const at = 2 * (lower.length - 1 - index);
    const from = smallWords(bytes, bits);
    for (let row = 0; row < length; row++) {
      to[row * stride + at] = bits === 64 ? from[2 * row] ?? 0 : from[row] ?? 0;
      to[row * stride + at + 1] = bits === 64 ? from[2 * row + 1] ?? 0 : 0;
    }
  }
}
