/**
 * Writing arrays as messages have them: buffers, then the tree.
 *
 * @module
 */
import { hostBytesOf, type RawNode } from "../raw_node.ts";
import { FlatWriter, type Written } from "./flatbuffer_writer.ts";
import type { Bytes } from "./source.ts";

/** An array, and what its nodes' numbers mean. */
export interface WrittenArray {
  /** The body of a message: the buffers one after the other, the tree, the tree's size. */
  readonly body: Bytes;
  readonly ids: readonly string[];
}

/** What readers align each buffer to, as a power of two: no element needs more than 16 bytes. */
const alignmentExponent = 4;

// law vortex/writeArray: vortex/core/ipc
/** Writes an array. Its buffers must have been handed over. */
export function writeArray(root: RawNode): WrittenArray {
  const ids = new Map<string, number>();
  const buffers: Bytes[] = [];
  const writer = new FlatWriter();
  const write = (node: RawNode): Written => {
    const own = node.buffers;
    if (typeof own === "number") {
      throw new TypeError("Cannot write an array whose buffers were counted, not handed over");
    }
    const number = ids.get(node.id) ?? ids.size;
    ids.set(node.id, number);
    const indices = own.map((one) => buffers.push(hostBytesOf(one)) - 1);
    const children = node.children.map(write);
    return writer.table([
      { u16: number },
      writer.bytes(node.metadata),
      writer.offsets(children),
      writer.u16s(indices),
    ]);
  };
  const tree = write(root);
  const structs = writer.structs(buffers.map(({ length }) => {
    const struct = new Uint8Array(8);
    struct[2] = alignmentExponent;
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
