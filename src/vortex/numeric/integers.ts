/**
 * Integers packed to fewer bits, and encodings that add one step: a reference is added, or the sign is moved to the low
 * bit. A chain of them is decoded in one pass, see `kernel.ts`.
 *
 * @module
 */
import { openNode } from "../open_nodes.ts";
import type { DecodeContext } from "../decode_context.ts";
import { boolDType, type DTypeOf, primitiveDType, withNullable } from "../dtype.ts";
import type { EncodedNode } from "../encoded_node.ts";
import type { VortexEncoding } from "../encoding.ts";
import { isSigned, type PType, unsignedTwin } from "../ptype.ts";
import { readScalar } from "../wire/scalar.ts";
import type { Bytes } from "../wire/source.ts";
import {
  bitsOf,
  blockOffset,
  bytesOf,
  indexColumn,
  integerDType,
  numbersOf,
  ptypeIn,
  unsignedChild,
} from "./columns.ts";
import type { Step } from "./kernel.ts";
import { childrenOf, type NodePatches, openPatches, patchWords } from "./node_patches.ts";
import type { Bits } from "./words.ts";
import { applySteps, packedBytes, unpackInto } from "./unpack.ts";

/** An encoding that applies a step to the words of its only child. */
interface OpenedStep {
  readonly dtype: DTypeOf<"primitive">;
  readonly child: EncodedNode;
  readonly step: Step;
}

/** Words packed in blocks of 1024. */
interface OpenedPacked {
  readonly dtype: DTypeOf<"primitive">;
  /** Rows to skip in the first block. */
  readonly offset: number;
  /** The bit width of each word, or the child with the offset of each block, which implies the block's width. */
  readonly width: number | EncodedNode;
  readonly patches: NodePatches | null;
  readonly validity: EncodedNode | null;
}

// law vortex/numeric.forEncoding: vortex/numeric/built, vortex/numeric/malformed
/** Frame of reference: differences from a single value. */
export const forEncoding: VortexEncoding<OpenedStep> = {
  id: "fastlanes.for",
  open(node) {
    const dtype = integerDType(node);
    node.expectBuffers(0);
    node.expectChildren(1);
    const reference = readScalar(node.metadata, withNullable(dtype, false), node.path);
    // Null was already rejected, as the scalar is read with a non-nullable dtype.
    if (typeof reference !== "bigint") return node.fail(`The reference of ${node.id} is not an integer`);
    return { dtype, child: node.child(0, dtype, node.length), step: { kind: "add", reference } };
  },
  decode: (node, { dtype }, context) => decodeChain(node, dtype, context),
};

// law vortex/numeric.zigzagEncoding: vortex/numeric/built, vortex/numeric/malformed
/** Signed integers as unsigned ones that are small where the signed ones are near 0. */
export const zigzagEncoding: VortexEncoding<OpenedStep> = {
  id: "vortex.zigzag",
  open(node) {
    node.expectNoMetadata();
    const dtype = integerDType(node);
    if (!isSigned(dtype.ptype)) node.fail(`${node.id} cannot have the dtype ${node.typeText}. Expected signed`);
    node.expectBuffers(0);
    node.expectChildren(1);
    const child = node.child(0, primitiveDType(unsignedTwin(dtype.ptype), dtype.nullable), node.length);
    return { dtype, child, step: { kind: "zigzag" } };
  },
  decode: (node, { dtype }, context) => decodeChain(node, dtype, context),
};

// law vortex/numeric.bitPackedEncoding: vortex/numeric/built, vortex/numeric/malformed
/** Words packed at one bit width. */
export const bitPackedEncoding: VortexEncoding<OpenedPacked> = {
  id: "fastlanes.bitpacked",
  open(node) {
    const dtype = integerDType(node);
    const message = node.message();
    const [width, offset, bits] = [message.u32(1), blockOffset(node, message, 2), bitsOf(dtype.ptype)];
    if (width > bits) node.fail(`${node.id} packs ${node.typeText} to ${width} bits. Expected 0 to ${bits}`);
    node.expectBuffers(1);
    const bytes = packedBytes(node.length, { bits, width, offset });
    node.expectSize(0, bytes, bytes);
    const patches = openPatches(node, message.message(3), 0, dtype);
    return { dtype, offset, width, patches, validity: node.validityChild(childrenOf(patches)) };
  },
  decode: (node, { dtype }, context) => decodeChain(node, dtype, context),
};

// law vortex/numeric.bitPackedV2Encoding: vortex/numeric/built, vortex/numeric/malformed
/** Words packed at a bit width per block. The last child has the start of each block, and the end of the last. */
export const bitPackedV2Encoding: VortexEncoding<OpenedPacked> = {
  id: "fastlanes.bitpacked.v2",
  open(node) {
    const dtype = integerDType(node);
    const message = node.message();
    const offset = blockOffset(node, message, 1);
    node.expectBuffers(1);
    const patches = openPatches(node, message.message(3), 0, dtype);
    const fixed = childrenOf(patches) + 1;
    node.expectChildren(fixed, fixed + 1);
    const blocks = Math.ceil((offset + node.length) / 1024);
    const width = unsignedChild(
      node,
      node.childCount - 1,
      ptypeIn(node, message, 2, "an unsigned integer"),
      blocks + 1,
    );
    const hasValidity = node.childCount > fixed;
    if (hasValidity && !dtype.nullable) node.fail(`${node.id} has a validity child, but ${node.typeText} has no nulls`);
    const validity = hasValidity ? node.child(fixed - 1, boolDType, node.length) : null;
    return { dtype, offset, width, patches, validity };
  },
  decode: (node, { dtype }, context) => decodeChain(node, dtype, context),
};

interface OpenedForV2 {
  readonly dtype: DTypeOf<"primitive">;
  readonly offset: number;
  readonly child: EncodedNode;
  readonly references: EncodedNode;
}

// law vortex/numeric.forV2Encoding: vortex/numeric/built
/** Differences from one value per block of 1024. */
export const forV2Encoding: VortexEncoding<OpenedForV2> = {
  id: "fastlanes.for.v2",
  open(node) {
    const dtype = integerDType(node);
    const offset = blockOffset(node, node.message(), 1);
    node.expectBuffers(0);
    node.expectChildren(2);
    const blocks = Math.ceil((offset + node.length) / 1024);
    const references = node.child(1, withNullable(dtype, false), blocks);
    return { dtype, offset, child: node.child(0, dtype, node.length), references };
  },
  decode(node, { dtype, offset, child, references }, context) {
    const bits = bitsOf(dtype.ptype);
    const { bytes, validity } = decodeWords(child, [], context);
    const own = bytesOf(context.primitive(references));
    const view = new DataView(own.buffer, own.byteOffset, own.byteLength);
    const out = context.allocate(bytes.length, node);
    for (let block = 0; block * bits / 8 < own.length; block++) {
      const from = Math.max(0, block * 1024 - offset) * bits / 8;
      const to = Math.min(bytes.length, ((block + 1) * 1024 - offset) * bits / 8);
      const reference = wordAt(view, block, dtype.ptype);
      applySteps(out.subarray(from, to), bytes.subarray(from, to), bits, [{ kind: "add", reference }]);
    }
    return numbersOf(dtype, out, validity);
  },
};

/** A word as a bigint that wraps to it. */
function wordAt(view: DataView, index: number, ptype: PType): bigint {
  switch (bitsOf(ptype)) {
    case 8:
      return BigInt(view.getUint8(index));
    case 16:
      return BigInt(view.getUint16(2 * index, true));
    case 32:
      return BigInt(view.getUint32(4 * index, true));
    case 64:
      return view.getBigUint64(8 * index, true);
  }
}

function decodeChain(node: EncodedNode, dtype: DTypeOf<"primitive">, context: DecodeContext) {
  const { bytes, validity } = decodeWords(node, [], context);
  return numbersOf(dtype, bytes, validity);
}

/**
 * The most steps in one loop. A loop is compiled for each chain encountered; this limit, which no writer's chains
 * exceed, bounds the code that a file can cause to be compiled.
 */
export const maxSteps = 3;

// law vortex/numeric.decodeWords: vortex/numeric/built, vortex/numeric/malformed
/**
 * Decodes a node's words, and then applies steps to them.
 *
 * @param steps in the order in which they apply
 */
export function decodeWords(
  node: EncodedNode,
  steps: readonly Step[],
  context: DecodeContext,
): { readonly bytes: Bytes; readonly validity: Bytes | null } {
  // Encodings are compared by identity, not by id: a session may have others with the same id.
  const { encoding } = openNode(context.session, node);
  if (steps.length < maxSteps) {
    for (const one of [forEncoding, zigzagEncoding]) {
      if (encoding !== one) continue;
      const { child, step } = node.opened(one.open);
      return decodeWords(child, [step, ...steps], context);
    }
  }
  for (const one of [bitPackedEncoding, bitPackedV2Encoding]) {
    if (encoding === one) return unpackNode(node, node.opened(one.open), steps, context);
  }
  const array = context.primitive(node);
  if (steps.length === 0) return { bytes: bytesOf(array), validity: array.validity };
  const bytes = context.allocate(array.values.byteLength, node);
  applySteps(bytes, bytesOf(array), bitsOf(array.dtype.ptype), steps);
  return { bytes, validity: array.validity };
}

function unpackNode(node: EncodedNode, opened: OpenedPacked, steps: readonly Step[], context: DecodeContext) {
  const { dtype, offset, width, patches } = opened;
  const bits = bitsOf(dtype.ptype);
  const packed = node.bytes(0);
  const parts: readonly Part[] = typeof width === "number"
    ? [{ first: 0, last: Infinity, width, start: 0, end: packed.length }]
    : partsOf(node, width, bits, context);
  const bytes = context.allocate(node.length * bits / 8, node);
  for (const part of parts) {
    const from = Math.max(0, part.first * 1024 - offset) * bits / 8;
    const to = Math.min(bytes.length, (part.last * 1024 - offset) * bits / 8);
    const packing = { bits, width: part.width, offset: part.first === 0 ? offset : 0, steps };
    unpackInto(bytes.subarray(from, to), packed.subarray(part.start, part.end), packing);
  }
  patchWords(bytes, bits, node, patches, context, steps);
  return { bytes, validity: context.validity(opened.validity) };
}

/** Blocks `first` up to but excluding `last`, all of one width, and their range of bytes. */
interface Part {
  readonly first: number;
  readonly last: number;
  readonly width: number;
  readonly start: number;
  readonly end: number;
}

/** Merges adjacent blocks of equal width. */
function partsOf(node: EncodedNode, boundaries: EncodedNode, bits: Bits, context: DecodeContext): Part[] {
  const [starts, size] = [indexColumn(boundaries, context), node.bytes(0).length];
  const parts: Part[] = [];
  let part: Part | undefined;
  for (let block = 0; block + 1 < starts.length; block++) {
    const [start, end] = [starts[block] ?? 0, starts[block + 1] ?? 0];
    const width = (end - start) / 128;
    if (!(Number.isInteger(width) && width >= 0 && width <= bits && end <= size)) {
      node.fail(
        `Block ${block} has the bytes ${start} to ${end} of ${size}. Expected 128 for each of 0 to ${bits} bits`,
      );
    }
    if (part?.width === width) part = { ...part, last: block + 1, end };
    else {
      if (part !== undefined) parts.push(part);
      part = { first: block, last: block + 1, width, start, end };
    }
  }
  return part === undefined ? parts : [...parts, part];
}
