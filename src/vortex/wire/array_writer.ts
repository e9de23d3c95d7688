/**
 * Writes arrays as in messages: buffers, then the tree.
 *
 * @module
 */
import { alignmentOfUnknown, alignmentsOf } from "../buffer_alignment.ts";
import { type EncodedNode, rawOf } from "../encoded_node.ts";
import { hostBytesOf, type RawNode } from "../raw_node.ts";
import { FlatWriter, type Written } from "./flatbuffer_writer.ts";
import type { Bytes } from "./source.ts";

/** An array, and the encoding ids that its nodes' numbers index. */
export interface WrittenArray {
  /** The body of a message: the buffers back to back, the tree, the tree's size. */
  readonly body: Bytes;
  readonly ids: readonly string[];
}

// law vortex/writeArray: vortex/core/ipc, vortex/core/built
/** Writes an array that was opened as far as it is known. Its buffers must have been handed over. */
export function writeArray(root: EncodedNode): WrittenArray {
  const ids = new Map<string, number>();
  const buffers: Bytes[] = [];
  const alignments: number[] = [];
  const writer = new FlatWriter();
  const write = (node: RawNode, known: EncodedNode | null): Written => {
    const own = node.buffers;
    if (typeof own === "number") {
      throw new TypeError("Cannot write an array whose buffers were counted, not handed over");
    }
    const number = ids.get(node.id) ?? ids.size;
    ids.set(node.id, number);
    const indices = own.map((one) => buffers.push(hostBytesOf(one)) - 1);
    alignments.push(...known === null ? own.map(() => alignmentOfUnknown) : alignmentsOf(known));
    const children = node.children.map((child, i) => write(child, known?.known(i) ?? null));
    return writer.table([
      { u16: number },
      writer.bytes(node.metadata),
      writer.offsets(children),
      writer.u16s(indices),
    ]);
  };
  const tree = write(rawOf(root), root);
  const structs = writer.structs(buffers.map(({ length }, i) => {
    const struct = new Uint8Array(8);
    struct[2] = Math.log2(alignments[i] ?? alignmentOfUnknown);
    new DataView(struct.buffer).setUint32(4, length, true);
    return struct;
  }));
  const flatbuffer = writer.finish(writer.table([tree, structs]));
  const size = buffers.reduce((sum, { length }) => sum + length, 0);
  const body = new Uint8Array(size + flatbuffer.length + 4);
  let at = 0;
  for (const buffer of [...buffers, flatbuffer]) {
    body.set(buffer, at);
    at += buffer.length;
  }
  new DataView(body.buffer).setUint32(at, flatbuffer.length, true);
  return { body, ids: [...ids.keys()] };
}
