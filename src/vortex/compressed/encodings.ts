/**
 * The encodings that store only non-null values, by means of general-purpose compressors.
 *
 * @module
 */
import { countSet } from "../../cdata/mod.ts";
import { type CanonicalArray, MAX_BUFFER_BYTES, type PrimitiveArray } from "../canonical.ts";
import type { DecodeContext } from "../decode_context.ts";
import type { DTypeOf } from "../dtype.ts";
import type { EncodedNode } from "../encoded_node.ts";
import type { VortexEncoding } from "../encoding.ts";
import { dtypeOf } from "../encodings/null_bool_primitive.ts";
import type { Fail } from "../error.ts";
import { type PType, unsignedTwin, valuesAt, widthOf } from "../ptype.ts";
import { type Bytes, noBytes } from "../wire/source.ts";
import type { PcoType } from "./pco/chunk_meta.ts";
import { decodePco, numberWords } from "./pco/decode.ts";
import { scatter } from "./scatter.ts";
import { decompressZstd } from "./zstd.ts";
import { prefixedText } from "./prefixed_text.ts";

/** The number of non-null rows. */
function validRows(node: EncodedNode, validity: Bytes | null): number {
  return validity === null ? node.length : countSet(validity, 0, node.length);
}

/** Memory for one number per row; the non-null ones are written to its start. */
function roomFor(node: EncodedNode, ptype: PType, context: DecodeContext): Bytes {
  return context.allocate(node.length * widthOf(ptype), node);
}

/** The array over `bytes`, at whose start the non-null numbers are. */
function numbersOf(
  dtype: DTypeOf<"primitive">,
  bytes: Bytes,
  length: number,
  count: number,
  validity: Bytes | null,
): PrimitiveArray {
  const at = (ptype: PType) => valuesAt(ptype, bytes.buffer, bytes.byteOffset, length);
  if (validity !== null) {
    const bits = at(unsignedTwin(dtype.ptype));
    if (!(bits instanceof Float32Array || bits instanceof Float64Array)) scatter(bits, count, validity);
  }
  return { kind: "primitive", dtype, length, validity, values: at(dtype.ptype) };
}

interface OpenedZstd {
  readonly dtype: DTypeOf<"primitive" | "utf8" | "binary">;
  readonly hasDictionary: boolean;
  /** The decompressed size of each frame in bytes. */
  readonly sizes: readonly number[];
  readonly validity: EncodedNode | null;
}

// law vortex/compressed/zstdEncoding: vortex/strings/built, vortex/compressed/malformed
/** Numbers, or strings each prefixed with its size, in Zstandard frames. */
export const zstdEncoding: VortexEncoding<OpenedZstd> = {
  id: "vortex.zstd",
  open(node) {
    const dtype = dtypeOf(node, "primitive", "utf8", "binary");
    const message = node.message();
    const dictionarySize = message.u32(1);
    const sizes = message.everyMessage(2).map((frame) => frame.number(1));
    const hasDictionary = dictionarySize > 0;
    node.expectBuffers(sizes.length + Number(hasDictionary));
    if (hasDictionary) node.expectSize(0, dictionarySize, dictionarySize);
    return { dtype, hasDictionary, sizes, validity: node.validityChild(0) };
  },
  decode(node, { dtype, hasDictionary, sizes, validity: validityNode }, context): CanonicalArray {
    const fail: Fail = (problem) => node.fail(`Cannot decode ${node.id}: ${problem}`);
    const { length, buffers } = node;
    const validity = context.validity(validityNode);
    const count = validRows(node, validity);
    const size = sizes.reduce((sum, one) => sum + one, 0);
    const frames = hasDictionary ? buffers.slice(1) : buffers;
    const dictionary = hasDictionary ? buffers[0] ?? noBytes : noBytes;
    context.charge(size, node); // the runtime's decompressed output, before it is copied
    if (dtype.kind === "primitive") {
      const expected = count * widthOf(dtype.ptype);
      if (size !== expected) fail(`${size} bytes, expected ${expected} for ${count} values of ${dtype.ptype}`);
      const bytes = roomFor(node, dtype.ptype, context);
      decompressZstd(frames, sizes, dictionary, bytes, fail);
      return numbersOf(dtype, bytes, length, count, validity);
    }
    if (size > MAX_BUFFER_BYTES) fail(`${size} bytes of strings, expected at most 2^31 - 1: decode fewer rows`);
    if (size < count * 4) fail(`${size} bytes for ${count} strings, each with a 4-byte size prefix`);
    const bytes = context.allocate(size, node);
    decompressZstd(frames, sizes, dictionary, bytes, fail);
    const views = prefixedText(bytes, length, validity, dtype.kind === "utf8", context.allocator(node), fail);
    return { kind: "varbinview", dtype, length, validity, views, data: size === 0 ? [] : [bytes] };
  },
};

interface OpenedPco {
  readonly dtype: DTypeOf<"primitive">;
  readonly type: PcoType;
  readonly header: Bytes;
  /** The count of numbers in each page of each chunk. */
  readonly chunks: readonly (readonly number[])[];
  readonly validity: EncodedNode | null;
}

/** The ptype, which must be one that pco compresses. */
function pcoTypeOf(node: EncodedNode, ptype: PType): PcoType {
  if (ptype === "u8" || ptype === "i8") {
    return node.fail(`${node.id} cannot have the dtype ${node.typeText}. Expected numbers of 16, 32 or 64 bits`);
  }
  return ptype;
}

// law vortex/compressed/pcoEncoding: vortex/strings/built, vortex/compressed/malformed
/** Numbers compressed by pco: chunks, each made of pages. */
export const pcoEncoding: VortexEncoding<OpenedPco> = {
  id: "vortex.pco",
  open(node) {
    const dtype = dtypeOf(node, "primitive");
    const message = node.message();
    const chunks = message.everyMessage(2).map((chunk) => chunk.everyMessage(1).map((page) => page.u32(1)));
    node.expectBuffers(chunks.length + chunks.reduce((sum, pages) => sum + pages.length, 0));
    const header = message.bytes(1) ?? noBytes;
    return { dtype, type: pcoTypeOf(node, dtype.ptype), header, chunks, validity: node.validityChild(0) };
  },
  decode(node, { dtype, type, header, chunks, validity: validityNode }, context) {
    const fail: Fail = (problem) => node.fail(`Cannot decode ${node.id}: ${problem}`);
    const { length, buffers } = node;
    const validity = context.validity(validityNode);
    const count = validRows(node, validity);
    const numbers = chunks.reduce((sum, pages) => pages.reduce((inner, page) => inner + page, sum), 0);
    if (numbers !== count) fail(`pages of ${numbers} numbers, expected ${count}, one for each row that is not null`);
    const bytes = roomFor(node, dtype.ptype, context);
    let next = chunks.length;
    const parts = chunks.map((pages, chunk) => ({
      meta: buffers[chunk] ?? noBytes,
      pages: pages.map((length) => ({ bytes: buffers[next++] ?? noBytes, length })),
    }));
    const charge = (size: number): void => context.charge(size, node);
    decodePco(header, parts, type, numberWords(bytes, type, count), charge, fail);
    return numbersOf(dtype, bytes, length, count, validity);
  },
};
