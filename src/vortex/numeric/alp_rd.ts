/**
 * ALP for real doubles: floats split into a repetitive upper part and an arbitrary lower part.
 *
 * @module
 */
import { isValid } from "../bits.ts";
import { type DTypeOf, primitiveDType } from "../dtype.ts";
import type { EncodedNode } from "../encoded_node.ts";
import type { VortexEncoding } from "../encoding.ts";
import { DataError, inNode } from "../error.ts";
import { widthOf } from "../ptype.ts";
import { floatDType } from "./alp.ts";
import { bytesOf, numbersOf } from "./columns.ts";
import { childrenOf, type NodePatches, openPatches, patchWords } from "./node_patches.ts";
import { type Indices, indicesOf, words32 } from "./words.ts";

interface OpenedAlpRd {
  readonly dtype: DTypeOf<"primitive">;
  readonly bits: 32 | 64;
  /** The bit width of a lower part. */
  readonly width: number;
  readonly dictionary: readonly number[];
  readonly left: EncodedNode;
  readonly right: EncodedNode;
  readonly patches: NodePatches | null;
}

/** The most entries in a dictionary of upper parts. */
const maxEntries = 8;

// law vortex/numeric.alpRdEncoding: vortex/numeric/built, vortex/numeric/malformed
/** Upper parts from a small dictionary, with patches for those not in it, and plain lower parts. */
export const alpRdEncoding: VortexEncoding<OpenedAlpRd> = {
  id: "vortex.alprd",
  open(node) {
    const { dtype, bits } = floatDType(node);
    const message = node.message();
    const [width, count, dictionary, leftCode] = [
      message.u32(1),
      message.u32(2),
      message.everyNumber(3),
      message.u32(4),
    ];
    if (width >= bits || width < bits - 16) {
      node.fail(`${node.id} has lower parts of ${width} bits of ${bits}. Expected 1 to 16 bits before them`);
    }
    if (count > maxEntries || count > dictionary.length) {
      node.fail(`${node.id} has ${count} upper parts and lists ${dictionary.length}. Expected ${maxEntries} at most`);
    }
    if (leftCode !== 1) node.fail(`${node.id} has upper parts of the ptype ${leftCode}. Expected 1, which is u16`);
    const entries = dictionary.slice(0, count);
    const room = bits - width;
    for (const one of entries) {
      if (one >= 2 ** room) node.fail(`${node.id} has the upper part ${one}. Expected one of ${room} bits`);
    }
    node.expectBuffers(0);
    const left = node.child(0, primitiveDType("u16", dtype.nullable), node.length);
    const right = node.child(1, primitiveDType(bits === 32 ? "u32" : "u64"), node.length);
    const patches = openPatches(node, message.message(5), 2, primitiveDType("u16"));
    node.expectChildren(2 + childrenOf(patches));
    return { dtype, bits, width, dictionary: entries, left, right, patches };
  },
  decode(node, { dtype, bits, width, dictionary, left, right, patches }, context) {
    const codes = context.primitive(left);
    const { validity } = codes;
    const lower = bytesOf(context.primitive(right));
    const out = context.allocate(node.length * widthOf(dtype.ptype), node);
    context.charge(2 * node.length, node);
    const upper = inNode(node, () => lookUpLeft(indicesOf(bytesOf(codes), 16), dictionary, validity));
    patchWords(new Uint8Array(upper.buffer), 16, node, patches, context);
    joinInto(out, upper, lower, bits, width);
    return numbersOf(dtype, out, validity);
  },
};

// law vortex/numeric.lookUpLeft: vortex/numeric/alp_rd
/**
 * Looks up the upper parts of floats by code.
 *
 * @throws {DataError} if the code of a valid row is not in the dictionary
 */
export function lookUpLeft(
  codes: Indices,
  dictionary: readonly number[],
  validity: Uint8Array | null,
): Uint16Array<ArrayBuffer> {
  const left = new Uint16Array(codes.length);
  for (let row = 0; row < codes.length; row++) {
    const value = dictionary[codes[row] ?? 0];
    if (value === undefined && isValid(validity, row)) {
      throw new DataError(`Row ${row} has code ${codes[row]}, expected one below ${dictionary.length}`);
    }
    left[row] = value ?? 0;
  }
  return left;
}

// law vortex/numeric.joinInto: vortex/numeric/alp_rd
/**
 * Joins the upper and lower parts of floats: `left << width | right`.
 *
 * @param right words of `bits` bits
 * @param width bits of a lower part, less than `bits`
 */
export function joinInto(out: Uint8Array, left: Uint16Array, right: Uint8Array, bits: 32 | 64, width: number): void {
  const [to, from] = [words32(out), words32(right)];
  if (bits === 32) {
    for (let row = 0; row < left.length; row++) to[row] = (left[row] ?? 0) << width | (from[row] ?? 0);
  } else if (width >= 32) {
    for (let row = 0; row < left.length; row++) {
      to[2 * row] = from[2 * row] ?? 0;
      to[2 * row + 1] = (left[row] ?? 0) << (width - 32) | (from[2 * row + 1] ?? 0);
    }
  } else {
    const carried = 2 ** (width - 32); // a shift by 32 would be a shift by 0
    for (let row = 0; row < left.length; row++) {
      to[2 * row] = (left[row] ?? 0) << width | (from[2 * row] ?? 0);
      to[2 * row + 1] = (left[row] ?? 0) * carried | (from[2 * row + 1] ?? 0);
    }
  }
}
