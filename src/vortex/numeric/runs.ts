/**
 * Arrays with similar neighbours: runs of one value, differences from the neighbour, few values per block.
 *
 * @module
 */
import type { Allocate } from "../allocator.ts";
import { bitAt, bytesForBits, fillBits } from "../bits.ts";
import type { CanonicalArray } from "../canonical.ts";
import type { DecodeContext } from "../decode_context.ts";
import { type DTypeOf, primitiveDType, withNullable } from "../dtype.ts";
import type { EncodedNode } from "../encoded_node.ts";
import type { VortexEncoding } from "../encoding.ts";
import { sliceOf } from "../ops/slice.ts";
import { takeOf, takeValues } from "../ops/take.ts";
import { widthOf } from "../ptype.ts";
import type { Bytes } from "../wire/source.ts";
import {
  bitsOf,
  blockOffset,
  bytesOf,
  indexColumn,
  inNode,
  integerDType,
  numbersOf,
  ptypeIn,
  unsignedChild,
} from "./columns.ts";
import { deltaInto } from "./delta.ts";
import { rleCodes } from "./rle.ts";
import { checkRuns, runOfRows, runsInto } from "./run_end.ts";
import { type Indices, indicesOf } from "./words.ts";

interface OpenedRuns {
  readonly ends: EncodedNode;
  readonly values: EncodedNode;
  readonly offset: number;
}

/** The most rows that signed 32-bit ends can count. */
const maxKept = 2 ** 31 - 1;

// law vortex/numeric.runEndEncoding: vortex/numeric/built, vortex/numeric/malformed, vortex/numeric/kept_runs
/** Runs of one value, of any dtype, each with the row at which it ends. */
export const runEndEncoding: VortexEncoding<OpenedRuns> = {
  id: "vortex.runend",
  open(node) {
    const message = node.message();
    const [runs, offset] = [message.number(2), message.number(3)];
    node.expectBuffers(0);
    node.expectChildren(2);
    const ends = unsignedChild(node, 0, ptypeIn(node, message, 1, "an unsigned integer"), runs);
    return { ends, values: node.child(1, node.dtype, runs), offset };
  },
  decode(node, { ends: endsNode, values: valuesNode, offset }, context) {
    const isKept = context.isKept("runEnd") && node.length <= maxKept;
    const ends = indexColumn(endsNode, context);
    inNode(node, () => checkRuns(ends, node.length, offset));
    const values = context.decode(valuesNode);
    return isKept ? keptRuns(node, values, ends, offset, context) : flatRuns(node, values, ends, offset, context);
  },
};

/** Keeps runs encoded, without those sliced off at either end. */
function keptRuns(
  node: EncodedNode,
  values: CanonicalArray,
  ends: Indices,
  offset: number,
  context: DecodeContext,
): CanonicalArray {
  const { length, dtype } = node;
  const allocate = context.allocator(node);
  let [first, last] = [0, 0];
  if (length > 0) {
    while ((ends[first] ?? 0) <= offset) first++;
    last = first;
    while ((ends[last++] ?? 0) < offset + length);
  }
  const count = last - first;
  const own = new Int32Array(allocate(4 * count).buffer, 0, count);
  for (let run = 0; run < count; run++) own[run] = Math.min((ends[first + run] ?? 0) - offset, length);
  return { kind: "runEnd", dtype, length, validity: null, ends: own, values: sliceOf(values, first, last, allocate) };
}

function flatRuns(
  node: EncodedNode,
  values: CanonicalArray,
  ends: Indices,
  offset: number,
  context: DecodeContext,
): CanonicalArray {
  const { length } = node;
  const allocate = context.allocator(node);
  const bits = (of: Bytes, from: number) => repeatBits(of, from, ends, offset, length, allocate);
  const validity = values.validity === null ? null : bits(values.validity, 0);
  switch (values.kind) {
    case "bool":
      return { ...values, length, validity, bits: bits(values.bits, values.offset), offset: 0 };
    case "primitive": {
      const width = widthOf(values.dtype.ptype);
      const out = allocate(length * width);
      runsInto(out, bytesOf(values), width, ends, offset);
      return numbersOf(values.dtype, out, validity);
    }
    default:
      context.charge(4 * length, node);
      return inNode(node, () => takeOf(values, runOfRows(ends, length, offset), null, allocate));
  }
}

/** Repeats each run's bit for each of its rows. */
export function repeatBits(
  bits: Bytes,
  from: number,
  ends: Indices,
  offset: number,
  length: number,
  allocate: Allocate,
): Bytes {
  const out = allocate(bytesForBits(length));
  let row = 0;
  for (let run = 0; row < length; run++) {
    const end = Math.min((ends[run] ?? 0) - offset, length);
    if (bitAt(bits, from + run)) fillBits(out, row, end - row);
    row = end;
  }
  return out;
}

interface OpenedDelta {
  readonly dtype: DTypeOf<"primitive">;
  readonly offset: number;
  readonly bases: EncodedNode;
  readonly deltas: EncodedNode;
  readonly validity: EncodedNode | null;
}

// law vortex/numeric.deltaEncoding: vortex/numeric/built, vortex/numeric/malformed
/** Differences from the previous word in the lane, in blocks of 1024. */
export const deltaEncoding: VortexEncoding<OpenedDelta> = {
  id: "fastlanes.delta",
  open(node) {
    const dtype = integerDType(node);
    const message = node.message();
    const [count, offset] = [message.number(1), blockOffset(node, message, 2)];
    if (count % 1024 !== 0 || count < offset + node.length) {
      node.fail(
        `${node.id} has ${count} differences for ${node.length} rows at offset ${offset}. Expected blocks of 1024`,
      );
    }
    node.expectBuffers(0);
    const plain = withNullable(dtype, false);
    const lanes = 1024 / bitsOf(dtype.ptype);
    const [bases, deltas] = [node.child(0, plain, count / 1024 * lanes), node.child(1, plain, count)];
    return { dtype, offset, bases, deltas, validity: node.validityChild(2) };
  },
  decode(node, { dtype, offset, bases, deltas, validity }, context) {
    const bits = bitsOf(dtype.ptype);
    const [from, differences] = [context.primitive(bases), context.primitive(deltas)];
    const out = context.allocate(node.length * bits / 8, node);
    inNode(node, () => deltaInto(out, bytesOf(differences), bytesOf(from), { bits, offset }));
    return numbersOf(dtype, out, context.validity(validity));
  },
};

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
