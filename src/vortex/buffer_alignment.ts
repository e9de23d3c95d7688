/**
 * The alignment of buffers.
 *
 * @module
 */
import type { EncodedNode } from "./encoded_node.ts";
import { widthOf } from "./ptype.ts";

/** Size of a view in bytes, and the largest alignment of an element in any buffer. */
const maxAligned = 16;

// law vortex/alignmentsOf: vortex/core/built
/**
 * The alignment that the elements of each of a node's buffers need, in bytes. No more than that: Vortex expects it of
 * every slice of the buffer too, and panics if a slice is not aligned.
 */
export function alignmentsOf(node: EncodedNode): readonly number[] {
  const each = (alignment: number) => Array.from({ length: node.bufferCount }, () => alignment);
  switch (node.id) {
    case "vortex.primitive":
    case "fastlanes.bitpacked":
    case "fastlanes.bitpacked.v2":
      return each(node.dtype.kind === "primitive" ? widthOf(node.dtype.ptype) : 1);
    case "vortex.decimal":
      return each(Math.min(2 ** node.message().u32(1), maxAligned));
    case "vortex.varbinview":
      return each(1).with(-1, maxAligned);
    case "vortex.fsst":
      return each(1).with(0, 8); // 8-byte symbols
    default:
      return each(1);
  }
}

/** The alignment of buffers whose encoding is unknown here. */
export const alignmentOfUnknown: number = maxAligned;
