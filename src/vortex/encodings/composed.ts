/**
 * Arrays composed of other arrays, and arrays that a few bytes describe.
 *
 * @module
 */
import { isValid } from "../bits.ts";
import type { CanonicalArray, PrimitiveArray } from "../canonical.ts";
import type { DecodeContext } from "../decode_context.ts";
import { type DTypeOf, equalDTypes, primitiveDType, type VortexDType, withNullable } from "../dtype.ts";
import { type EncodedNode, rawOf } from "../encoded_node.ts";
import type { VortexEncoding } from "../encoding.ts";
import { inNode, type Place } from "../error.ts";
import { concatOf } from "../ops/concat.ts";
import { allNull } from "../ops/fill.ts";
import { repeat } from "../ops/repeat.ts";
import { masked, retyped } from "../ops/retyped.ts";
import { takeOf } from "../ops/take.ts";
import { isFloat, isSigned, type PType, widthOf } from "../ptype.ts";
import type { ProtoMessage } from "../wire/protobuf.ts";
import { readScalar, scalarOf } from "../wire/scalar.ts";
import type { Bytes } from "../wire/source.ts";
import { dtypeOf } from "./null_bool_primitive.ts";
import { checkOffsets, wholeDType, wholeNumbers, wholesOf } from "./whole_numbers.ts";

interface OpenedChunks {
  readonly offsets: EncodedNode;
  /** The chunks, if each states its own length, as in tuples; null if only the offsets give the lengths. */
  readonly chunks: readonly EncodedNode[] | null;
}

// law vortex/chunkedEncoding: vortex/core/contradictions
/** Concatenated arrays of one dtype; offsets say where each begins. */
export const chunkedEncoding: VortexEncoding<OpenedChunks> = {
  id: "vortex.chunked",
  open(node) {
    node.expectNoMetadata();
    node.expectBuffers(0);
    node.expectChildren(1, Infinity);
    const offsets = node.child(0, primitiveDType("u64"), node.childCount);
    const outer = rawOf(node).children.slice(1).map((child) => child.outer);
    if (outer.includes(null)) return { offsets, chunks: null };
    const chunks = outer.map((one, i) => node.child(i + 1, node.dtype, one?.length ?? 0));
    const total = chunks.reduce((sum, { length }) => sum + length, 0);
    if (total !== node.length) node.fail(`The chunks have ${total} elements, expected ${node.length}`);
    return { offsets, chunks };
  },
  openRest(node, { offsets, chunks }, context) {
    if (chunks === null) chunksBy(node, offsets, context);
  },
  decode(node, { offsets }, context) {
    const chunks = chunksBy(node, offsets, context).map((chunk) => context.decode(chunk));
    return inNode(node, () => concatOf(node.dtype, chunks, context.allocator(node)));
  },
};

/** The chunks, with lengths taken from the offsets. */
function chunksBy(node: EncodedNode, offsetsNode: EncodedNode, context: DecodeContext): EncodedNode[] {
  const offsets = wholeNumbers(offsetsNode, context, "Offset");
  checkOffsets(offsets, node.length, node, "the chunks");
  const [first, last] = [offsets[0] ?? 0, offsets.at(-1) ?? 0];
  if (first !== 0 || last !== node.length) {
    node.fail(`The chunks reach from ${first} to ${last}, expected 0 to ${node.length}`);
  }
  return Array.from(
    { length: offsets.length - 1 },
    (_, i) => node.child(i + 1, node.dtype, (offsets[i + 1] ?? 0) - (offsets[i] ?? 0)),
  );
}

/** A single value for all elements. */
export const constantEncoding: VortexEncoding<null> = {
  id: "vortex.constant",
  open(node) {
    node.expectBuffers(1);
    node.expectChildren(0);
    return null;
  },
  decode(node, _, context) {
    const scalar = readScalar(node.buffer(0), node.dtype, node.path, context.limits.depth);
    return inNode(node, () => repeat(node.dtype, scalar, node.length, context.allocator(node)));
  },
};

interface OpenedSequence {
  readonly dtype: DTypeOf<"primitive">;
  readonly base: bigint;
  readonly multiplier: bigint;
}

// law vortex/sequenceEncoding: vortex/core/contradictions
/** Numbers that rise or fall by a constant step. */
export const sequenceEncoding: VortexEncoding<OpenedSequence> = {
  id: "vortex.sequence",
  open(node) {
    const dtype = dtypeOf(node, "primitive");
    const { ptype } = dtype;
    if (isFloat(ptype)) node.fail(`A sequence cannot have the dtype ${node.typeText}: expected whole numbers`);
    node.expectBuffers(0);
    node.expectChildren(0);
    if (node.length === 0) node.fail("A sequence has no elements: expected at least one");
    const message = node.message();
    const [base, multiplier] = [termOf(node, message, 1), termOf(node, message, 2)];
    const last = base + multiplier * BigInt(node.length - 1);
    const bits = 8 * widthOf(ptype);
    const fit = isSigned(ptype) ? BigInt.asIntN : BigInt.asUintN;
    for (const [which, value] of [["first", base], ["last", last]] as const) {
      if (fit(bits, value) !== value) node.fail(`The ${which} of the sequence is ${value}, outside ${ptype}`);
    }
    return { dtype, base, multiplier };
  },
  decode(node, { dtype, base, multiplier }, context) {
    const { length } = node;
    const values = context.allocateValues(dtype.ptype, length, node);
    if (values instanceof BigInt64Array || values instanceof BigUint64Array) {
      fillSteps(new Int32Array(values.buffer, 0, 2 * length), base, multiplier);
    } else {
      const [first, step] = [Number(base), Number(multiplier)];
      for (let i = 0; i < length; i++) values[i] = first + step * i; // less than 2^32, and so is each product
    }
    return { kind: "primitive", dtype, length, validity: null, values };
  },
};

/** A number from the metadata, which may be signed or unsigned. */
function termOf(node: EncodedNode, message: ProtoMessage, field: number): bigint {
  const term = message.message(field) ?? node.fail(`The metadata of the sequence has no field ${field}`);
  const scalar = scalarOf(term, primitiveDType(term.has(4) ? "u64" : "i64"), node.path);
  return typeof scalar === "bigint" ? scalar : node.fail(`Field ${field} of the sequence's metadata is not a number`);
}

/**
 * Writes 64-bit numbers as halves: a bigint per number would take ten times as long, and so would unsigned halves,
 * which engines compute as floats.
 */
function fillSteps(halves: Int32Array, base: bigint, step: bigint): void {
  const halvesOf = (value: bigint) => [Number(BigInt.asIntN(32, value)), Number(BigInt.asIntN(32, value >> 32n))];
  let [low = 0, high = 0] = halvesOf(base);
  const [stepLow = 0, stepHigh = 0] = halvesOf(step);
  const least = stepLow ^ sign;
  for (let i = 0; i < halves.length; i += 2) {
    halves[i] = low;
    halves[i + 1] = high;
    low = low + stepLow | 0;
    // If the sum is less than the addend, both unsigned, the low half overflowed: carry.
    high = high + stepHigh + ((low ^ sign) < least ? 1 : 0) | 0;
  }
}

/** Flipping this bit in two 32-bit numbers makes a signed comparison of them unsigned. */
const sign = 1 << 31;

interface OpenedDictionary {
  readonly codes: EncodedNode;
  readonly values: EncodedNode;
}

// law vortex/dictEncoding: vortex/core/built
/** Distinct values, and a code per element that selects one. */
export const dictEncoding: VortexEncoding<OpenedDictionary> = {
  id: "vortex.dict",
  open(node) {
    const message = node.message();
    node.expectBuffers(0);
    node.expectChildren(2);
    const nullable = message.bool(3) ?? node.dtype.nullable;
    if (nullable && !node.dtype.nullable) {
      node.fail(`Its codes may be null, but dtype ${node.typeText} is not nullable`);
    }
    const codes = wholeDType(node, message.u32(2), "codes", nullable);
    return { codes: node.child(0, codes, node.length), values: node.child(1, node.dtype, message.u32(1)) };
  },
  decode(node, { codes: codesNode, values: valuesNode }, context) {
    const isKept = context.isKept("dictionary");
    const codes = checkedCodes(context.primitive(codesNode), valuesNode.length, codesNode, context);
    const values = context.decode(valuesNode);
    return dictionaryOf(node.dtype, codes, values, node, isKept, context);
  },
};

// law vortex/checkedCodes: vortex/core/contradictions
/**
 * Bounds-checks codes: each non-null element's code is less than the number of values. There may be no values if all
 * elements are null.
 */
export function checkedCodes(
  array: PrimitiveArray,
  count: number,
  place: Place,
  context: DecodeContext,
): PrimitiveArray {
  const { length, validity } = array;
  const wholes = wholesOf(array, place, context, "Code");
  let isClean = true;
  for (let i = 0; i < length; i++) {
    if ((wholes[i] ?? 0) < count) continue;
    if (isValid(validity, i)) place.fail(`Code ${i} is ${wholes[i]}, expected one below ${count}`);
    isClean = false;
  }
  const ptype: PType = wholes instanceof Uint8Array ? "u8" : wholes instanceof Uint16Array ? "u16" : "u32";
  const dtype: DTypeOf<"primitive"> = { kind: "primitive", ptype, nullable: array.dtype.nullable };
  if (isClean && !(wholes instanceof Float64Array)) {
    return { kind: "primitive", dtype, length, validity, values: wholes };
  }
  // The code of a null element is arbitrary: replace it with 0, which every lookup accepts.
  const values = context.allocateValues(ptype, length, place);
  for (let i = 0; i < length; i++) values[i] = (wholes[i] ?? 0) < count ? wholes[i] ?? 0 : 0;
  return { kind: "primitive", dtype, length, validity, values };
}

/** Looks up checked codes, or returns codes and values as a dictionary where dictionaries are kept. */
export function dictionaryOf(
  dtype: VortexDType,
  codes: PrimitiveArray,
  values: CanonicalArray,
  place: Place,
  isKept: boolean,
  context: DecodeContext,
): CanonicalArray {
  const { length, validity } = codes;
  const allocate = context.allocator(place);
  if (values.length === 0) {
    return dtype.nullable ? allNull(dtype, length, allocate) : retyped(values, dtype); // no code can be valid
  }
  if (isKept) return { kind: "dictionary", dtype, length, validity, codes, values };
  const indices = wholesOf(codes, place, context, "Code");
  return retyped(inNode(place, () => takeOf(values, indices, validity, allocate)), dtype);
}

interface OpenedMask {
  readonly array: EncodedNode;
  readonly validity: EncodedNode | null;
}

// law vortex/maskedEncoding: vortex/core/built
/** A non-nullable array, and a mask that marks some of its elements null. */
export const maskedEncoding: VortexEncoding<OpenedMask> = {
  id: "vortex.masked",
  open(node) {
    node.expectNoMetadata();
    node.expectBuffers(0);
    // The child has no nulls; PyVortex declares some of them nullable in its tuples.
    const own = rawOf(node).children[0]?.outer?.dtype;
    const dtype = own !== undefined && equalDTypes(own, node.dtype) ? own : withNullable(node.dtype, false);
    return { array: node.child(0, dtype, node.length), validity: node.validityChild(1) };
  },
  decode(node, { array, validity }, context) {
    const valid: Bytes | null = context.validity(validity);
    return masked(context.decode(array), node.dtype, valid, context.allocator(node));
  },
};
