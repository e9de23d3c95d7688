/**
 * One value for most rows, and others for a few; and numbers, some of which are overwritten by patches.
 *
 * @module
 */
import { bytesForBits, fillBits, isValid } from "../bits.ts";
import type { CanonicalArray } from "../canonical.ts";
import type { DecodeContext } from "../decode_context.ts";
import { type DTypeOf, primitiveDType } from "../dtype.ts";
import type { EncodedNode } from "../encoded_node.ts";
import type { VortexEncoding } from "../encoding.ts";
import { inNode } from "../error.ts";
import { concatOf } from "../ops/concat.ts";
import { repeat } from "../ops/repeat.ts";
import { takeOf } from "../ops/take.ts";
import { widthOf } from "../ptype.ts";
import { readScalar, type VortexScalar } from "../wire/scalar.ts";
import type { Bytes } from "../wire/source.ts";
import { blockOffset, bytesOf, indexColumn, numbersOf, unsignedChild } from "./columns.ts";
import { type NodePatches, openPatches } from "./node_patches.ts";
import { patchInto, patchLanesInto } from "./patches.ts";
import type { Indices } from "./words.ts";

interface OpenedSparse {
  readonly fill: VortexScalar;
  readonly patches: NodePatches;
}

// law vortex/numeric.sparseEncoding: vortex/numeric/built, vortex/numeric/malformed
/** One value for all but some rows, of any dtype. */
export const sparseEncoding: VortexEncoding<OpenedSparse> = {
  id: "vortex.sparse",
  open(node) {
    node.expectBuffers(1);
    node.expectChildren(2);
    const message = node.message().message(1);
    const patches = openPatches(node, message, 0, node.dtype) ?? node.fail(`The metadata of ${node.id} has no patches`);
    // When buffers were only counted, the value is unknown and not needed.
    const fill = node.bufferSize(0) === null ? null : readScalar(node.buffer(0), node.dtype, node.path);
    return { fill, patches };
  },
  decode(node, { fill, patches }, context) {
    const { length, dtype } = node;
    const allocate = context.allocator(node);
    const indices = indexColumn(patches.indices, context);
    const values = context.decode(patches.values);
    if (dtype.kind === "primitive" && values.kind === "primitive") {
      const filled = repeat(dtype, fill, length, allocate);
      if (filled.kind === "primitive") {
        inNode(node, () => patchInto(bytesOf(filled), bytesOf(values), widthOf(dtype.ptype), indices, patches.offset));
        return {
          ...filled,
          validity: patchedValidity(node, filled.validity, values, indices, patches.offset, context),
        };
      }
    }
    const rows = Uint32Array.from({ length: values.length }, (_, patch) => patch + 1);
    context.charge(4 * values.length, node);
    const codes = allocate(4 * length);
    inNode(node, () => patchInto(codes, new Uint8Array(rows.buffer), 4, indices, patches.offset));
    return inNode(node, () => {
      const both = concatOf(dtype, [repeat(dtype, fill, 1, allocate), values], allocate);
      return takeOf(both, new Uint32Array(codes.buffer, 0, length), null, allocate);
    });
  },
};

/** The validity of the fill value, overwritten at the patched rows. */
function patchedValidity(
  node: EncodedNode,
  filled: Bytes | null,
  values: CanonicalArray,
  indices: Indices,
  offset: number,
  context: DecodeContext,
): Bytes | null {
  if (filled === null && values.validity === null) return null;
  const bits = filled ?? context.allocate(bytesForBits(node.length), node);
  if (filled === null) fillBits(bits, 0, node.length);
  for (let patch = 0; patch < indices.length; patch++) {
    const row = (indices[patch] ?? 0) - offset;
    const [at, bit] = [Math.floor(row / 8), 1 << row % 8];
    const isThere = isValid(values.validity, patch);
    bits[at] = isThere ? (bits[at] ?? 0) | bit : (bits[at] ?? 0) & ~bit;
  }
  return bits;
}

interface OpenedPatched {
  readonly dtype: DTypeOf<"primitive">;
  readonly offset: number;
  readonly lanes: number;
  readonly inner: EncodedNode;
  readonly laneOffsets: EncodedNode;
  readonly places: EncodedNode;
  readonly values: EncodedNode;
}

// law vortex/numeric.patchedEncoding: vortex/numeric/built, vortex/numeric/malformed
/** Numbers, and patches that overwrite some of them, sorted by block and lane. */
export const patchedEncoding: VortexEncoding<OpenedPatched> = {
  id: "vortex.patched",
  open(node) {
    const { dtype, length } = node;
    if (dtype.kind !== "primitive") {
      return node.fail(`${node.id} cannot have the dtype ${node.typeText}. Expected numbers`);
    }
    const message = node.message();
    const [count, lanes, offset] = [message.number(1), message.number(2), blockOffset(node, message, 3)];
    if (lanes < 1) node.fail(`${node.id} has ${lanes} lanes. Expected at least one`);
    node.expectBuffers(0);
    node.expectChildren(4);
    const blocks = Math.ceil((offset + length) / 1024);
    return {
      dtype,
      offset,
      lanes,
      inner: node.child(0, dtype, length),
      laneOffsets: unsignedChild(node, 1, "u32", blocks * lanes + 1),
      places: node.child(2, primitiveDType("u16"), count),
      values: node.child(3, dtype, count),
    };
  },
  decode(node, opened, context) {
    const { dtype, offset, lanes } = opened;
    const inner = context.primitive(opened.inner);
    const laneOffsets = indexColumn(opened.laneOffsets, context);
    const placeBytes = bytesOf(context.primitive(opened.places));
    const values = bytesOf(context.primitive(opened.values));
    const width = widthOf(dtype.ptype);
    const out = context.allocate(node.length * width, node);
    out.set(bytesOf(inner));
    const places = new Uint16Array(placeBytes.buffer, placeBytes.byteOffset, placeBytes.length / 2);
    context.charge((8 + width) * places.length, node);
    inNode(node, () => patchLanesInto(out, values, width, { laneOffsets, lanes, places }, offset));
    return numbersOf(dtype, out, inner.validity);
  },
};
