/**
 * Floats encoded as decimal fractions, or split into a repetitive upper part and an arbitrary lower part.
 *
 * @module
 */
import { type DTypeOf, primitiveDType } from "../dtype.ts";
import type { EncodedNode } from "../encoded_node.ts";
import type { VortexEncoding } from "../encoding.ts";
import { widthOf } from "../ptype.ts";
import { alpStep } from "./alp.ts";
import { joinInto, lookUpLeft } from "./alp_rd.ts";
import { bytesOf, inNode, numbersOf } from "./columns.ts";
import { decodeWords } from "./integers.ts";
import type { Step } from "./kernel.ts";
import { childrenOf, type NodePatches, openPatches, patchWords } from "./node_patches.ts";
import { indicesOf } from "./words.ts";

/** A node's dtype, which must be f32 or f64, and its bit width. */
function floatDType(node: EncodedNode): { readonly dtype: DTypeOf<"primitive">; readonly bits: 32 | 64 } {
  const { dtype } = node;
  if (dtype.kind === "primitive" && dtype.ptype === "f32") return { dtype, bits: 32 };
  if (dtype.kind === "primitive" && dtype.ptype === "f64") return { dtype, bits: 64 };
  return node.fail(`${node.id} cannot have the dtype ${node.typeText}. Expected f32 or f64`);
}

interface OpenedAlp {
  readonly dtype: DTypeOf<"primitive">;
  readonly bits: 32 | 64;
  readonly step: Step;
  readonly encoded: EncodedNode;
  readonly patches: NodePatches | null;
}

// law vortex/numeric.alpEncoding: vortex/numeric/built, vortex/numeric/malformed
/** Integers that encode decimal fractions; floats that no fraction represents are patches, bit for bit. */
export const alpEncoding: VortexEncoding<OpenedAlp> = {
  id: "vortex.alp",
  open(node) {
    const { dtype, bits } = floatDType(node);
    const message = node.message();
    const step = inNode(node, () => alpStep(bits, message.u32(1), message.u32(2)));
    node.expectBuffers(0);
    const encoded = node.child(0, primitiveDType(bits === 32 ? "i32" : "i64", dtype.nullable), node.length);
    const patches = openPatches(node, message.message(3), 1, dtype);
    node.expectChildren(1 + childrenOf(patches));
    return { dtype, bits, step, encoded, patches };
  },
  decode(node, { dtype, bits, step, encoded, patches }, context) {
    const { bytes, validity } = decodeWords(encoded, [step], context);
    patchWords(bytes, bits, node, patches, context);
    return numbersOf(dtype, bytes, validity);
  },
};

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
