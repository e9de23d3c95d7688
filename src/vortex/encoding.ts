/**
 * What an encoding is to the rest of the room.
 *
 * @module
 */
import type { CanonicalArray } from "./canonical.ts";
import type { DecodeContext } from "./decode_context.ts";
import type { EncodedNode } from "./encoded_node.ts";

/**
 * An encoding: reads nodes of one id.
 *
 * `Opened` is whatever `open` has found out and `decode` needs: the metadata's numbers, and the children.
 */
export interface VortexEncoding<Opened = unknown> {
  /** The id, as it is serialized: `vortex.primitive`. */
  readonly id: string;
  /**
   * Reads the node's metadata, checks how many buffers and children it has, and asks for every child with the dtype and
   * the length that it must have, also for those that `decode` makes no use of. It reads no data: buffers may not be
   * there.
   *
   * @throws {VortexError} if the node is none of this encoding
   */
  open(node: EncodedNode): Opened;
  /**
   * Asks for the children whose lengths stand in the data of others, where there are such. The node has been opened.
   *
   * @throws {VortexError} if the data is wrong
   */
  openRest?(node: EncodedNode, opened: Opened, context: DecodeContext): void;
  /**
   * Decodes the node. It has been opened.
   *
   * @returns an array of the node's dtype and length
   * @throws {VortexError} if the data is wrong
   */
  decode(node: EncodedNode, opened: Opened, context: DecodeContext): CanonicalArray;
}
