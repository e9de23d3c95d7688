/**
 * Arrays as stored in a segment of a file and in the body of a message: buffers, then a flatbuffer with the nodes, then
 * its size.
 *
 * @module
 */
import { VortexError } from "../error.ts";
import type { VortexLimits } from "../limits.ts";
import type { RawNode } from "../raw_node.ts";
import { FlatTable } from "./flatbuffer.ts";
import { type Bytes, noBytes } from "./source.ts";

/**
 * Reads the nodes of an array. Buffers are not copied, and are aligned as in the segment.
 *
 * @param segment the whole segment
 * @param ids encoding ids, indexed by the nodes' numbers
 * @param tree the flatbuffer, if it is also stored elsewhere. Default: the end of the segment
 * @throws {VortexError} if anything lies outside, or exceeds the limits
 */
export function readArray(segment: Bytes, ids: readonly string[], limits: VortexLimits, tree?: Bytes): RawNode {
  const [end, flatbuffer] = bordersOf(segment);
  const table = FlatTable.root(tree ?? flatbuffer, "$", "array", limits.nodes);
  const buffers = buffersOf(table, segment.subarray(0, end));
  const root = table.table(0) ?? table.fail("it has no root");
  return nodeOf(root, ids, buffers, limits.depth);
}

/** The encodings of an array, each with those of its children. */
export interface EncodingTree {
  /** The serialized id: `fastlanes.bitpacked`. */
  readonly id: string;
  /** Encodings of the children. */
  readonly children: readonly EncodingTree[];
}

/** Reads the encodings of an array's nodes, from its flatbuffer alone. @throws {VortexError} as `readArray` does */
export function readEncodings(flatbuffer: Bytes, ids: readonly string[], limits: VortexLimits): EncodingTree {
  const table = FlatTable.root(flatbuffer, "$", "array", limits.nodes);
  return encodingsOf(table.table(0) ?? table.fail("it has no root"), ids, limits.depth);
}

function encodingsOf(table: FlatTable, ids: readonly string[], depth: number): EncodingTree {
  if (depth === 0) table.fail("its nodes are nested more deeply than the limit allows");
  const id = ids[table.u16(0)] ?? table.fail(`a node has encoding ${table.u16(0)} of ${ids.length}`);
  return { id, children: table.tables(2).map((child) => encodingsOf(child, ids, depth - 1)) };
}

/** Where the buffers end, and the flatbuffer after them. */
function bordersOf(segment: Bytes): readonly [number, Bytes] {
  const fail = (why: string): never => {
    throw new VortexError("$", `Cannot read an array of ${segment.length} bytes: ${why}`);
  };
  if (segment.length < 4) fail("expected at least 4");
  const view = new DataView(segment.buffer, segment.byteOffset, segment.length);
  const end = segment.length - 4;
  const size = view.getUint32(end, true);
  if (size > end) fail(`its nodes take ${size}, more than available`);
  return [end - size, segment.subarray(end - size, end)];
}

const COMPRESSION_NONE = 0;

/** The array's buffers, not copied. */
function buffersOf(table: FlatTable, bytes: Bytes): Bytes[] {
  let at = 0;
  return table.structs(1, 8).map((one, i) => {
    const [padding, compression, size] = [one.getUint16(0, true), one.getUint8(3), one.getUint32(4, true)];
    if (compression !== COMPRESSION_NONE) table.fail(`buffer ${i} is compressed by scheme ${compression}`);
    const start = at + padding;
    at = start + size;
    if (at > bytes.length) table.fail(`buffer ${i} ends at ${at} of ${bytes.length} bytes`);
    return size === 0 ? noBytes : bytes.subarray(start, at);
  });
}

function nodeOf(table: FlatTable, ids: readonly string[], buffers: readonly Bytes[], depth: number): RawNode {
  if (depth === 0) table.fail("its nodes are nested more deeply than the limit allows");
  const number = table.u16(0);
  return {
    id: ids[number] ?? table.fail(`a node has encoding ${number} of ${ids.length}`),
    metadata: table.bytes(1) ?? noBytes,
    children: table.tables(2).map((child) => nodeOf(child, ids, buffers, depth - 1)),
    buffers: table.u16s(3).map((index) =>
      buffers[index] ?? table.fail(`a node has buffer ${index} of ${buffers.length}`)
    ),
    outer: null,
  };
}
