/**
 * The encodings that store strings as sequences of codes.
 *
 * @module
 */
import { INLINE_BYTES, MAX_BUFFER_BYTES, type VarBinViewArray } from "../canonical.ts";
import type { DecodeContext } from "../decode_context.ts";
import type { DTypeOf, VortexDType } from "../dtype.ts";
import type { EncodedNode } from "../encoded_node.ts";
import type { VortexEncoding } from "../encoding.ts";
import { dtypeOf } from "../encodings/null_bool_primitive.ts";
import { wholeDType } from "../encodings/whole_numbers.ts";
import type { Fail } from "../error.ts";
import type { Bytes } from "../wire/source.ts";
import { decodeCodes } from "./codes.ts";
import { fsstTable } from "./fsst.ts";
import { MAX_TOKENS, onPairTable } from "./on_pair.ts";
import { asUint32, checkOffsets, type IntegerArray } from "./row_numbers.ts";
import { textArray } from "./text_array.ts";

type TextType = DTypeOf<"utf8" | "binary">;

/** The codes of all rows, where each row's codes begin, and the rows' validity. */
interface Codes {
  readonly codes: Bytes;
  readonly offsets: Uint32Array;
  readonly validity: Bytes | null;
}

interface OpenedFsst {
  readonly dtype: TextType;
  readonly lengths: EncodedNode;
  /** Where the rows' codes are: at offsets in the third buffer, or in a child of bytes. */
  readonly codes:
    | { readonly kind: "buffer"; readonly offsets: EncodedNode; readonly validity: EncodedNode | null }
    | { readonly kind: "child"; readonly child: EncodedNode };
}

// law vortex/strings/fsstEncoding: vortex/strings/built, vortex/strings/malformed
/** One-byte codes. Versions before 0.76 stored the codes in a child of bytes. */
export const fsstEncoding: VortexEncoding<OpenedFsst> = {
  id: "vortex.fsst",
  open(node) {
    const dtype = dtypeOf(node, "utf8", "binary");
    const message = node.message();
    const lengths = wholeDType(node, message.u32(1), "lengths");
    node.expectBuffers(2, 3);
    if (node.bufferCount === 2) {
      node.expectChildren(2);
      const child = node.child(0, { kind: "binary", nullable: dtype.nullable }, node.length);
      return { dtype, lengths: node.child(1, lengths, node.length), codes: { kind: "child", child } };
    }
    const offsets = node.child(1, wholeDType(node, message.u32(2), "offsets"), node.length + 1);
    return {
      dtype,
      lengths: node.child(0, lengths, node.length),
      codes: { kind: "buffer", offsets, validity: node.validityChild(2) },
    };
  },
  decode(node, { dtype, lengths: lengthsNode, codes: place }, context) {
    const fail: Fail = (problem) => node.fail(problem);
    const table = fsstTable(node.bytes(0), node.bytes(1), fail);
    const { codes, offsets, validity } = place.kind === "child"
      ? concatenated(bytesOf(place.child, context), node, context)
      : {
        codes: node.bytes(2),
        offsets: offsetsIn(place.offsets, node.bytes(2).length, "codes", context),
        validity: context.validity(place.validity),
      };
    const lengths = lengthsOf(lengthsNode, context);
    const strings = decodeCodes({ table, codes, offsets, lengths }, context.allocator(node), fail);
    return textArray(dtype, strings, lengths, validity, fail);
  },
};

interface OpenedOnPair {
  readonly dtype: TextType;
  readonly tokens: EncodedNode;
  readonly codes: EncodedNode;
  readonly offsets: EncodedNode;
  readonly lengths: EncodedNode;
  readonly validity: EncodedNode | null;
}

// law vortex/strings/onPairEncoding: vortex/strings/built, vortex/strings/malformed
/** Two-byte codes. */
export const onPairEncoding: VortexEncoding<OpenedOnPair> = {
  id: "vortex.onpair",
  open(node) {
    const dtype = dtypeOf(node, "utf8", "binary");
    const message = node.message();
    node.expectBuffers(1);
    const whole = (field: number, what: string): VortexDType => wholeDType(node, message.u32(field), what);
    const tokenCount = message.number(3);
    if (tokenCount > MAX_TOKENS) node.fail(`It has ${tokenCount} tokens. Expected at most ${MAX_TOKENS}`);
    return {
      dtype,
      tokens: node.child(0, whole(5, "offsets of tokens"), tokenCount + 1),
      codes: node.child(1, whole(6, "codes"), message.number(4)),
      offsets: node.child(2, whole(7, "offsets of codes"), node.length + 1),
      lengths: node.child(3, whole(1, "lengths"), node.length),
      validity: node.validityChild(4),
    };
  },
  decode(node, opened, context) {
    const fail: Fail = (problem) => node.fail(problem);
    const dictionary = node.bytes(0);
    const table = onPairTable(dictionary, offsetsIn(opened.tokens, dictionary.length, "tokens", context), fail);
    const codes = codesOf(opened.codes, context);
    const offsets = offsetsIn(opened.offsets, codes.length, "codes", context);
    const lengths = lengthsOf(opened.lengths, context);
    const validity = context.validity(opened.validity);
    const strings = decodeCodes({ table, codes, offsets, lengths }, context.allocator(node), fail);
    return textArray(opened.dtype, strings, lengths, validity, fail);
  },
};

/** A child's whole numbers. */
function integersOf(node: EncodedNode, context: DecodeContext): IntegerArray {
  const { values } = context.primitive(node);
  if (values instanceof Float32Array || values instanceof Float64Array) return node.fail("Expected whole numbers");
  return values;
}

/** A child's numbers as uint32. */
function uint32Of(node: EncodedNode, limit: number, what: string, context: DecodeContext): Uint32Array {
  const integers = integersOf(node, context);
  if (!(integers instanceof Uint32Array)) context.charge(4 * node.length, node);
  return asUint32(integers, limit, what, (problem) => node.fail(problem));
}

/** Offsets into `end` elements, checked to be non-decreasing and in bounds. */
function offsetsIn(node: EncodedNode, end: number, what: string, context: DecodeContext): Uint32Array {
  const offsets = uint32Of(node, 0xffff_ffff, `offset of ${what}`, context);
  checkOffsets(offsets, end, `offsets of ${what}`, (problem) => node.fail(problem));
  return offsets;
}

/** The size of each row in bytes. */
function lengthsOf(node: EncodedNode, context: DecodeContext): Uint32Array {
  return uint32Of(node, MAX_BUFFER_BYTES, "length", context);
}

/** 16-bit codes from integers of any type. */
function codesOf(node: EncodedNode, context: DecodeContext): Uint16Array {
  const integers = integersOf(node, context);
  if (integers instanceof Uint16Array) return integers;
  context.charge(6 * node.length, node);
  return Uint16Array.from(asUint32(integers, MAX_TOKENS - 1, "code", (problem) => node.fail(problem)));
}

/** A child of bytes. */
function bytesOf(node: EncodedNode, context: DecodeContext): VarBinViewArray {
  const array = context.decode(node);
  return array.kind === "varbinview" ? array : node.fail(`Expected bytes, got ${array.kind}`);
}

/** Concatenates the bytes of all rows. Bytes of null rows are included, as in the other form. */
function concatenated(array: VarBinViewArray, node: EncodedNode, context: DecodeContext): Codes {
  const { length, data, validity, views } = array;
  const words = new Uint32Array(views.buffer, views.byteOffset, 4 * length);
  const offsets = new Uint32Array(context.allocate(4 * (length + 1), node).buffer, 0, length + 1);
  let total = 0;
  for (let row = 0; row < length; row++) {
    total += words[4 * row] ?? 0;
    if (total > 0xffff_ffff) node.fail("Its codes have more than 2^32 - 1 bytes: decode fewer rows");
    offsets[row + 1] = total;
  }
  const codes = context.allocate(total, node);
  // law vortex/strings/concatenated: vortex/strings/built
  for (let row = 0; row < length; row++) {
    const at = offsets[row] ?? 0;
    const size = (offsets[row + 1] ?? 0) - at;
    const isInline = size <= INLINE_BYTES;
    const bytes = isInline ? views : data[words[4 * row + 2] ?? 0];
    const from = isInline ? 16 * row + 4 : words[4 * row + 3] ?? 0;
    for (let i = 0; i < size; i++) codes[at + i] = bytes?.[from + i] ?? 0;
  }
  return { codes, offsets, validity };
}
