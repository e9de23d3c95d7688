/**
 * Opening nodes: their encodings check everything but the elements.
 *
 * @module
 */
import type { DecodeContext } from "./decode_context.ts";
import { type EncodedNode, rawOf } from "./encoded_node.ts";
import type { VortexEncoding } from "./encoding.ts";
import type { VortexSession } from "./session.ts";

/** A node's encoding, and what its `open` returned for the node. */
export interface OpenedNode {
  /** The encoding. */
  readonly encoding: VortexEncoding;
  /** What `open` returned. */
  readonly opened: unknown;
}

/**
 * Opens a node with its encoding, once.
 *
 * @throws {VortexError} if the encoding is unknown, or the node is not valid for it
 */
export function openNode(session: VortexSession, node: EncodedNode): OpenedNode {
  const encoding = session.encoding(node.id);
  if (encoding === null) {
    return node.fail(
      `Unknown encoding: ${node.id}. Only what the session knows can be rebuilt: register the encoding, or have ` +
        "the array canonicalized by its producer",
    );
  }
  return { encoding, opened: node.opened((one) => encoding.open(one)) };
}

/** Opens a node and the nodes below it whose encodings are known, to describe them. */
export function openKnown(session: VortexSession, node: EncodedNode): void {
  if (!session.knows(node.id)) return;
  openNode(session, node);
  for (const child of node.children) openKnown(session, child);
}

/**
 * Opens a node and all nodes below it: dtypes, lengths and counts are then known to be consistent.
 *
 * @throws {VortexError} if they are not
 */
export function openAll(session: VortexSession, node: EncodedNode): void {
  if (session.allowsUnknown && !session.knows(node.id)) return;
  openNode(session, node);
  for (const child of node.children) openAll(session, child);
}

// law vortex/openEvery: vortex/core/built, vortex/core/unknown
/**
 * Opens a node and all known nodes below it, including those whose lengths are stored in data, and those below an
 * unknown node that state their own dtypes and lengths.
 *
 * @throws {VortexError} if anything is inconsistent, or such data is wrong
 */
export function openEvery(context: DecodeContext, node: EncodedNode): void {
  if (context.session.knows(node.id)) {
    const { encoding, opened } = openNode(context.session, node);
    encoding.openRest?.(node, opened, context);
  } else {
    for (const [i, { outer }] of rawOf(node).children.entries()) {
      if (outer !== null) node.child(i, outer.dtype, outer.length);
    }
  }
  for (const child of node.children) openEvery(context, child);
}
