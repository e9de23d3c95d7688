/**
 * What buffers are aligned to.
 *
 * @module
 */
import type { EncodedNode } from "./encoded_node.ts";
import { widthOf } from "./ptype.ts";

/** Bytes of a view, and the most that an element of any buffer is aligned to. */
const mostAligned = 16;

// law vortex/alignmentsOf: vortex/core/built
/**
 * What the elements of a node's buffers need, in bytes. Not more: Vortex takes it for what every slice of the buffer is
 * aligned to, too, and panics if one is not.
 */
export function alignmentsOf(node: EncodedNode): readonly number[] {
  const each = (alignment: number) => Array.from({ length: node.bufferCount }, () => alignment);
  switch (node.id) {
    case "vortex.primitive":
    case "fastlanes.bitpacked":
    case "fastlanes.bitpacked.v2":
      return each(node.dtype.kind === "primitive" ? widthOf(node.dtype.ptype) : 1);
    case "vortex.decimal":
      return each(Math.min(2 ** node.message().u32(1), mostAligned));
    case "vortex.varbinview":
      return each(1).with(-1, mostAligned);
    case "vortex.fsst":
      return each(1).with(0, 8); // symbols of 8 bytes
    default:
      return each(1);
  }
}

/** What buffers are aligned to of which nobody here knows what they are. */
export const alignmentOfUnknown: number = mostAligned;
