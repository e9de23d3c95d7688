/**
 * Variable-size text and bytes: with offsets, and with views.
 *
 * @module
 */
import { isValid } from "../bits.ts";
import { INLINE_BYTES, MAX_BUFFER_BYTES } from "../canonical.ts";
import type { DTypeOf } from "../dtype.ts";
import type { EncodedNode } from "../encoded_node.ts";
import type { VortexEncoding } from "../encoding.ts";
import { isUtf8, TextBytes } from "../utf8.ts";
import type { Allocate, Bytes } from "../wire/source.ts";
import { dtypeOf } from "./null_bool_primitive.ts";
import { checkOffsets, wholeDType, type WholeNumbers, wholeNumbers } from "./whole_numbers.ts";

type TextType = DTypeOf<"utf8" | "binary">;

interface OpenedVarBin {
  readonly dtype: TextType;
  readonly offsets: EncodedNode;
  readonly validity: EncodedNode | null;
}

/** Concatenated elements in one buffer, and the offset at which each begins. */
export const varBinEncoding: VortexEncoding<OpenedVarBin> = {
  id: "vortex.varbin",
  open(node) {
    const dtype = dtypeOf(node, "utf8", "binary");
    node.expectBuffers(1);
    const offsets = wholeDType(node, node.message().u32(1), "offsets");
    return { dtype, offsets: node.child(0, offsets, node.length + 1), validity: node.validityChild(1) };
  },
  decode(node, { dtype, offsets: offsetsNode, validity: validityNode }, context) {
    const { length } = node;
    const bytes = node.bytes(0);
    const offsets = wholeNumbers(offsetsNode, context, "Offset");
    checkOffsets(offsets, bytes.length, node, "the bytes");
    if (bytes.length > MAX_BUFFER_BYTES) {
      node.fail(`It has ${bytes.length} bytes, more than ${MAX_BUFFER_BYTES}: decode fewer rows`);
    }
    const validity = context.validity(validityNode);
    if (dtype.kind === "utf8") {
      const text = new TextBytes(bytes);
      for (let i = 0; i < length; i++) {
        if (text.holds(offsets[i] ?? 0, offsets[i + 1] ?? 0) || !isValid(validity, i)) continue;
        node.fail(`Element ${i} is not UTF-8`);
      }
    }
    const views = viewsOf(bytes, offsets, context.allocator(node));
    return { kind: "varbinview", dtype, length, validity, views, data: bytes.length === 0 ? [] : [bytes] };
  },
};

// law vortex/viewsOf: vortex/core/built
/** Builds a view of each range of bytes. The offsets must have been checked. */
function viewsOf(bytes: Bytes, offsets: WholeNumbers, allocate: Allocate): Bytes {
  const length = offsets.length - 1;
  const views = allocate(16 * length);
  const words = new Uint32Array(views.buffer, 0, 4 * length);
  let at = 0;
  for (let i = 0; i < length; i++, at += 4) {
    const start = offsets[i] ?? 0;
    const size = (offsets[i + 1] ?? 0) - start;
    words[at] = size;
    const own = size > INLINE_BYTES ? 4 : size;
    const to = 4 * at + 4;
    for (let j = 0; j < own; j++) views[to + j] = bytes[start + j] ?? 0;
    if (size > INLINE_BYTES) words[at + 3] = start; // of buffer 0
  }
  return views;
}

interface OpenedView {
  readonly dtype: TextType;
  readonly validity: EncodedNode | null;
}

/** One view per element, and buffers for elements that do not fit in their views. */
export const varBinViewEncoding: VortexEncoding<OpenedView> = {
  id: "vortex.varbinview",
  open(node) {
    node.expectNoMetadata();
    const dtype = dtypeOf(node, "utf8", "binary");
    node.expectBuffers(1, Infinity);
    const bytes = 16 * node.length;
    node.expectSize(node.bufferCount - 1, bytes, bytes);
    return { dtype, validity: node.validityChild(0) };
  },
  decode(node, { dtype, validity: validityNode }, context) {
    const { length } = node;
    const last = node.bufferCount - 1;
    const data = Array.from({ length: last }, (_, i) => node.bytes(i));
    const tooLong = data.find((one) => one.length > MAX_BUFFER_BYTES);
    if (tooLong !== undefined) node.fail(`A buffer has ${tooLong.length} bytes, more than ${MAX_BUFFER_BYTES}`);
    const validity = context.validity(validityNode);
    let views = node.buffer(last);
    const wrong = wrongViews(views, data, dtype.kind === "utf8");
    let isCopy = false;
    for (const [i, used, why] of wrong) {
      if (why !== null && isValid(validity, i)) node.fail(`Element ${i} ${why}`);
      if (!isCopy) {
        const copy = context.allocate(views.length, node);
        copy.set(views);
        [views, isCopy] = [copy, true];
      }
      views.fill(0, 16 * i + used, 16 * i + 16);
    }
    return { kind: "varbinview", dtype, length, validity, views, data };
  },
};

/** A view's row, how many of its bytes are valid, and what is wrong with the rest; null means nonzero padding. */
type WrongView = readonly [row: number, used: number, why: string | null];

// law vortex/wrongViews: vortex/core/contradictions
/**
 * The views that are out of bounds, or whose prefix, text or padding is wrong. Vortex accepts any padding; in Arrow it
 * must be zero, so Arrow consumers include it when comparing short texts.
 */
function* wrongViews(views: Bytes, data: readonly Bytes[], isText: boolean): Generator<WrongView> {
  const length = views.length / 16;
  const words = new Uint32Array(views.buffer, views.byteOffset, 4 * length);
  const texts = data.map((one) => new TextBytes(one));
  let at = 0;
  for (let i = 0; i < length; i++, at += 4) {
    const size = words[at] ?? 0;
    if (size <= INLINE_BYTES) {
      const [first, second, third] = [words[at + 1] ?? 0, words[at + 2] ?? 0, words[at + 3] ?? 0];
      // Most texts are ASCII: only a set top bit in some byte of the three words needs the UTF-8 check.
      const high = (first | second | third) & 0x8080_8080;
      if (isText && high !== 0 && !isUtf8(views.subarray(16 * i + 4, 16 * i + 4 + size))) {
        yield [i, 0, "is not UTF-8"];
      } else if (paddingOf(size, first, second, third) !== 0) yield [i, 4 + size, null];
      continue;
    }
    const [number, start] = [words[at + 2] ?? 0, words[at + 3] ?? 0];
    const bytes = data[number];
    if (bytes === undefined) yield [i, 0, `is in buffer ${number} of ${data.length}`];
    else if (start + size > bytes.length) yield [i, 0, `ends at ${start + size} of a buffer of ${bytes.length} bytes`];
    else if (!hasPrefix(bytes, start, words[at + 1] ?? 0)) yield [i, 0, "has a prefix unlike its bytes"];
    else if (isText && !(texts[number]?.holds(start, start + size) ?? false)) yield [i, 0, "is not UTF-8"];
  }
}

/** The bits of three words after their first 0 to 12 bytes, OR-ed together. */
function paddingOf(size: number, first: number, second: number, third: number): number {
  if (size < 4) return first >>> 8 * size | second | third;
  if (size < 8) return second >>> 8 * (size - 4) | third;
  return size < 12 ? third >>> 8 * (size - 8) : 0; // shifts are modulo 32
}

function hasPrefix(bytes: Bytes, start: number, prefix: number): boolean {
  const word = (bytes[start] ?? 0) | (bytes[start + 1] ?? 0) << 8 | (bytes[start + 2] ?? 0) << 16 |
    (bytes[start + 3] ?? 0) << 24;
  return word >>> 0 === prefix;
}
