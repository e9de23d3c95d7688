/**
 * Patches as stored in nodes: the values that did not fit, each with its row.
 *
 * @module
 */
import type { DecodeContext } from "../decode_context.ts";
import type { VortexDType } from "../dtype.ts";
import type { EncodedNode } from "../encoded_node.ts";
import { inNode } from "../error.ts";
import type { ProtoMessage } from "../wire/protobuf.ts";
import type { Bytes } from "../wire/source.ts";
import { bytesOf, indexColumn, ptypeIn, unsignedChild } from "./columns.ts";
import type { Step } from "./kernel.ts";
import { patchInto } from "./patches.ts";
import { applySteps } from "./unpack.ts";
import type { Bits } from "./words.ts";

/** Opened patches. */
export interface NodePatches {
  /** Row numbers, from before `offset` rows were sliced off. */
  readonly indices: EncodedNode;
  readonly values: EncodedNode;
  readonly offset: number;
  /** The number of children they occupy. */
  readonly children: 2 | 3;
}

// law vortex/numeric.openPatches: vortex/numeric/malformed
/**
 * Opens patches. A third child says where each block's patches begin, for readers that look up single rows; its dtype
 * and length are checked.
 *
 * @param message the metadata of the patches, or null if there are none
 * @param first the index of the patches' first child
 * @param dtype the dtype of their values
 * @throws {VortexError} if `message` declares no patches, or more patches than rows
 */
export function openPatches(
  node: EncodedNode,
  message: ProtoMessage | null,
  first: number,
  dtype: VortexDType,
): NodePatches | null {
  if (message === null) return null;
  const [count, offset] = [message.number(1), message.number(2)];
  if (count < 1 || count > node.length) {
    node.fail(`${node.id} has ${count} patches of ${node.length} rows. Expected at least one, and no more than rows`);
  }
  const indices = unsignedChild(node, first, ptypeIn(node, message, 3, "an unsigned integer"), count);
  const values = node.child(first + 1, dtype, count);
  const hasBlocks = message.has(5);
  if (hasBlocks) unsignedChild(node, first + 2, ptypeIn(node, message, 5, "an unsigned integer"), message.number(4));
  return { indices, values, offset, children: hasBlocks ? 3 : 2 };
}

/** The number of children that patches occupy. */
export function childrenOf(patches: NodePatches | null): number {
  return patches === null ? 0 : patches.children;
}

/**
 * Writes the patches' values into words.
 *
 * @param steps the steps applied to the words since unpacking; they are applied to the values, too
 */
export function patchWords(
  out: Bytes,
  bits: Bits,
  node: EncodedNode,
  patches: NodePatches | null,
  context: DecodeContext,
  steps: readonly Step[] = [],
): void {
  if (patches === null) return;
  const indices = indexColumn(patches.indices, context);
  let values = bytesOf(context.primitive(patches.values));
  if (steps.length > 0) {
    const stepped = context.allocate(values.length, node);
    applySteps(stepped, values, bits, steps);
    values = stepped;
  }
  inNode(node, () => patchInto(out, values, bits / 8, indices, patches.offset));
}
