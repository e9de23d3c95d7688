/**
 * The interface between an encoding and the rest of the room.
 *
 * @module
 */
import type { CanonicalArray } from "./canonical.ts";
import type { DecodeContext } from "./decode_context.ts";
import type { EncodedNode } from "./encoded_node.ts";

/**
 * An encoding: reads the nodes with one id.
 *
 * `Opened` is what `open` returns for `decode`: the numbers from the metadata, and the children.
 */
export interface VortexEncoding<Opened = unknown> {
  /** The serialized id: `vortex.primitive`. */
  readonly id: string;
  /**
   * Reads the node's metadata, checks the number of buffers and children, and requests every child with the dtype and
   * length that it must have, including those that `decode` does not use. It reads no data: buffers may be absent.
   *
   * @throws {VortexError} if the node is not valid for this encoding
   */
  open(node: EncodedNode): Opened;
  /**
   * Requests the children whose lengths are stored in the data of other children, if any. The node is already open.
   *
   * @throws {VortexError} if the data is wrong
   */
  openRest?(node: EncodedNode, opened: Opened, context: DecodeContext): void;
  /**
   * Decodes the node, which is already open.
   *
   * @returns an array of the node's dtype and length
   * @throws {VortexError} if the data is wrong
   */
  decode(node: EncodedNode, opened: Opened, context: DecodeContext): CanonicalArray;
}
