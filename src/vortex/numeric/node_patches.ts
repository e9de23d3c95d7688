/**
 * Patches as nodes have them: rows whose values did not fit, each with its place.
 *
 * @module
 */
import type { DecodeContext } from "../decode_context.ts";
import type { VortexDType } from "../dtype.ts";
import type { EncodedNode } from "../encoded_node.ts";
import type { ProtoMessage } from "../wire/protobuf.ts";
import type { Bytes } from "../wire/source.ts";
import { bytesOf, indexColumn, inNode, ptypeIn, unsignedChild } from "./columns.ts";
import type { Step } from "./kernel.ts";
import { patchInto } from "./patches.ts";
import { applySteps } from "./unpack.ts";
import type { Bits } from "./words.ts";

/** Patches that have been opened. */
export interface NodePatches {
  /** Rows, counted from before `offset` was cut off. */
  readonly indices: EncodedNode;
  readonly values: EncodedNode;
  readonly offset: number;
  /** How many children they are. */
  readonly children: 2 | 3;
}

// law vortex/numeric.openPatches: vortex/numeric/malformed
/**
 * Opens patches. A third child says where those of each block begin, for readers that look up single rows; its dtype
 * and length are checked.
 *
 * @param message what the metadata says of them, or null if there are none
 * @param first the child that is the first of them
 * @param dtype of their values
 * @throws {VortexError} if there are none of them, or more than rows
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

/** How many children patches are. */
export function childrenOf(patches: NodePatches | null): number {
  return patches === null ? 0 : patches.children;
}

/**
 * Puts the patches' values among words.
 *
 * @param steps what has happened to the words since they were packed, and happens to the values too
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
