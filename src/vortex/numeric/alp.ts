/**
 * ALP: floats as decimal fractions.
 *
 * @module
 */
import { type DTypeOf, primitiveDType } from "../dtype.ts";
import type { EncodedNode } from "../encoded_node.ts";
import type { VortexEncoding } from "../encoding.ts";
import { DataError, inNode } from "../error.ts";
import { numbersOf } from "./columns.ts";
import { decodeWords } from "./integers.ts";
import type { Step } from "./kernel.ts";
import { childrenOf, type NodePatches, openPatches, patchWords } from "./node_patches.ts";

/** A node's dtype, which must be f32 or f64, and its bit width. */
export function floatDType(node: EncodedNode): { readonly dtype: DTypeOf<"primitive">; readonly bits: 32 | 64 } {
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

/** The largest exponents: a 32-bit float has at most ten integer digits, a 64-bit float eighteen. */
const most = { 32: 10, 64: 18 } as const;

// law vortex/numeric.alpStep: vortex/numeric/steps
/**
 * The step from an integer to the decimal fraction it encodes: times 10^f, then times the float nearest to 10^-e, which
 * is not a division by 10^e. For 32-bit floats, both factors and both results are rounded to 32 bits.
 *
 * @throws {DataError} if an exponent is larger than any encoder writes
 */
export function alpStep(bits: 32 | 64, e: number, f: number): Step {
  if (!(e <= most[bits] && f <= most[bits])) {
    throw new DataError(`Expected exponents up to ${most[bits]}, got ${e} and ${f}`);
  }
  return { kind: "alp", factors: [Number(`1e${f}`), Number(`1e-${e}`)] };
}
