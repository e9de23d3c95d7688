/**
 * Runs of one value.
 *
 * @module
 */
import { bitAt, bytesForBits, fillBits } from "../bits.ts";
import type { CanonicalArray } from "../canonical.ts";
import type { DecodeContext } from "../decode_context.ts";
import type { EncodedNode } from "../encoded_node.ts";
import type { VortexEncoding } from "../encoding.ts";
import { DataError, inNode } from "../error.ts";
import { sliceOf } from "../ops/slice.ts";
import { fillRuns, takeOf } from "../ops/take.ts";
import { widthOf } from "../ptype.ts";
import type { Allocate, Bytes } from "../wire/source.ts";
import { bytesOf, indexColumn, numbersOf, ptypeIn, unsignedChild } from "./columns.ts";
import { type Indices, smallWords, words32 } from "./words.ts";

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
    default: {
      context.charge(4 * length, node);
      const runs = new Uint32Array(length);
      fillRuns(ends, runs, offset);
      return inNode(node, () => takeOf(values, runs, null, allocate));
    }
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

// law vortex/numeric.checkRuns: vortex/numeric/run_end
/**
 * Checks that the ends of runs ascend, that the last one reaches the last row, and that none is before the first.
 *
 * @param offset rows sliced off the front, which the ends still count
 * @throws {DataError} if the ends are invalid
 */
export function checkRuns(ends: Indices, length: number, offset: number): void {
  let previous = offset - 1;
  for (let run = 0; run < ends.length; run++) {
    const end = ends[run] ?? 0;
    if (end <= previous) throw new DataError(`Run ${run} ends at ${end}, expected an end after ${previous}`);
    previous = end;
  }
  if (length > 0 && !(ends.length > 0 && previous >= offset + length)) {
    throw new DataError(`The last run ends at ${previous}, expected ${offset + length}`);
  }
}

// law vortex/numeric.runsInto: vortex/numeric/run_end
/**
 * Repeats each word to the end of its run; the runs must have passed `checkRuns`.
 *
 * @param width bytes of a word: 1, 2 or a multiple of 4
 */
export function runsInto(out: Uint8Array, values: Uint8Array, width: number, ends: Indices, offset: number): void {
  if (width < 4) {
    repeatWord(smallWords(out, width === 1 ? 8 : 16), smallWords(values, width === 1 ? 8 : 16), ends, offset);
  } else if (width === 4) repeatWord(words32(out), words32(values), ends, offset);
  else repeatRuns(words32(out), words32(values), width >> 2, ends, offset);
}

/** Runs up to this long are written by a loop: a call to `fill` takes as long. */
const SHORT = 16;

function repeatWord(
  to: Uint8Array | Uint16Array | Int32Array,
  values: Uint8Array | Uint16Array | Int32Array,
  ends: Indices,
  offset: number,
): void {
  let row = 0;
  for (let run = 0; row < to.length; run++) {
    const end = (ends[run] ?? 0) - offset; // writes past the last row have no effect
    const value = values[run] ?? 0;
    if (end - row > SHORT) to.fill(value, row, end);
    else for (let at = row; at < end; at++) to[at] = value;
    row = end;
  }
}

/** Repeats values of several 32-bit words: each word is written to every row of the run. */
function repeatRuns(to: Int32Array, values: Int32Array, count: number, ends: Indices, offset: number): void {
  const length = to.length / count;
  let row = 0;
  for (let run = 0; row < length; run++) {
    const end = Math.min((ends[run] ?? 0) - offset, length);
    const [first, last] = [row * count, end * count];
    for (let word = 0; word < count; word++) {
      const value = values[run * count + word] ?? 0;
      for (let at = first + word; at < last; at += count) to[at] = value;
    }
    row = end;
  }
}
