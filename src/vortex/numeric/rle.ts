/**
 * Few values per block of 1024 rows: indices into the values of the block.
 *
 * @module
 */
import { isValid } from "../bits.ts";
import { type DTypeOf, primitiveDType, withNullable } from "../dtype.ts";
import type { EncodedNode } from "../encoded_node.ts";
import type { VortexEncoding } from "../encoding.ts";
import { DataError, inNode } from "../error.ts";
import { sliceOf } from "../ops/slice.ts";
import { takeValues } from "../ops/take.ts";
import { bitsOf, blockOffset, bytesOf, indexColumn, ptypeIn, unsignedChild } from "./columns.ts";
import { type Indices, indicesOf } from "./words.ts";

interface OpenedRle {
  readonly dtype: DTypeOf<"primitive">;
  readonly offset: number;
  readonly values: EncodedNode;
  readonly indices: EncodedNode;
  readonly starts: EncodedNode;
}

// law vortex/numeric.rleEncoding: vortex/numeric/built, vortex/numeric/malformed
/** Indices in blocks of 1024, each block with separate values. */
export const rleEncoding: VortexEncoding<OpenedRle> = {
  id: "fastlanes.rle",
  open(node) {
    const { dtype } = node;
    if (dtype.kind !== "primitive") {
      return node.fail(`${node.id} cannot have the dtype ${node.typeText}. Expected numbers`);
    }
    const message = node.message();
    const [count, offset] = [message.number(2), blockOffset(node, message, 6)];
    if (count % 1024 !== 0 || count < offset + node.length) {
      node.fail(`${node.id} has ${count} indices for ${node.length} rows at offset ${offset}. Expected blocks of 1024`);
    }
    const code = ptypeIn(node, message, 3, "an unsigned integer");
    if (code !== "u8" && code !== "u16") node.fail(`${node.id} has indices of ${code}. Expected u8 or u16`);
    node.expectBuffers(0);
    node.expectChildren(3);
    const values = node.child(0, withNullable(dtype, false), message.number(1));
    const indices = node.child(1, primitiveDType(code, dtype.nullable), count);
    const starts = unsignedChild(node, 2, ptypeIn(node, message, 5, "an unsigned integer"), message.number(4));
    return { dtype, offset, values, indices, starts };
  },
  decode(node, { dtype, offset, values: valuesNode, indices: indicesNode, starts: startsNode }, context) {
    const { length } = node;
    const values = context.primitive(valuesNode);
    const indices = context.primitive(indicesNode);
    const { validity } = sliceOf(indices, offset, offset + length, context.allocator(node));
    const starts = indexColumn(startsNode, context);
    const own = indicesOf(bytesOf(indices), bitsOf(indices.dtype.ptype));
    context.charge(4 * length, node);
    const codes = inNode(node, () => rleCodes(values.length, own, starts, { offset, length, validity }));
    return { kind: "primitive", dtype, length, validity, values: takeValues(values, codes, context.allocator(node)) };
  },
};

// law vortex/numeric.rleCodes: vortex/numeric/rle
/**
 * The indices among all values of `length` rows, from blocks of 1024 indices, each block with separate values: block
 * b's run from `starts[b]` to the next block's. That of a null row is 0.
 *
 * @param count the number of all values
 * @param indices whole blocks, of which the first `offset` indices have been sliced off; in a block with one value they
 *   may be anything
 * @param starts where each block's values begin, relative to an arbitrary origin
 * @param validity of the indices after `offset`
 * @throws {DataError} if a block's values or an index are out of bounds
 */
export function rleCodes(
  count: number,
  indices: Indices,
  starts: Indices,
  { offset, length, validity }: {
    readonly offset: number;
    readonly length: number;
    readonly validity: Uint8Array | null;
  },
): Uint32Array {
  if (offset + length > indices.length) {
    throw new DataError(`Expected indices for ${length} rows at offset ${offset}, got ${indices.length}`);
  }
  const origin = starts[0] ?? 0;
  const codes = new Uint32Array(length);
  for (let first = 0; first < offset + length; first += 1024) {
    const block = first / 1024;
    const start = (starts[block] ?? NaN) - origin;
    const end = block + 1 < starts.length ? (starts[block + 1] ?? 0) - origin : count;
    if (!(start <= end && end <= count)) {
      throw new DataError(`Block ${block} has values ${start} to ${end}, expected a range within 0 to ${count}`);
    }
    for (let at = Math.max(first, offset); at < Math.min(first + 1024, offset + length); at++) {
      const index = end - start === 1 ? 0 : indices[at] ?? 0;
      if (index < end - start) codes[at - offset] = start + index;
      else if (isValid(validity, at - offset)) {
        throw new DataError(`Row ${at - offset} has index ${index}, expected one below ${end - start}`);
      }
    }
  }
  return codes;
}
