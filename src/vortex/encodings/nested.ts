/**
 * Nested arrays: structs, all kinds of lists, maps, extensions.
 *
 * @module
 */
import { isValid } from "../bits.ts";
import type { CanonicalArray, PrimitiveArray } from "../canonical.ts";
import type { DecodeContext } from "../decode_context.ts";
import { boolDType, type DTypeOf, entriesOf, type VortexDType } from "../dtype.ts";
import type { EncodedNode } from "../encoded_node.ts";
import type { VortexEncoding } from "../encoding.ts";
import type { Place } from "../error.ts";
import type { Bytes } from "../wire/source.ts";
import { gatherLists, maxListElements, tooManyElements } from "../ops/take.ts";
import { retyped } from "../ops/retyped.ts";
import { dtypeOf } from "./null_bool_primitive.ts";
import { checkOffsets, wholeDType, type WholeNumbers, wholeNumbers, wholesOf } from "./whole_numbers.ts";

interface OpenedStruct {
  readonly dtype: DTypeOf<"struct">;
  readonly validity: EncodedNode | null;
  readonly fields: readonly EncodedNode[];
}

// law vortex/structEncoding: vortex/core/built
/** One array per field; validity comes before the fields, not after as elsewhere. */
export const structEncoding: VortexEncoding<OpenedStruct> = {
  id: "vortex.struct",
  open(node) {
    node.expectNoMetadata();
    const dtype = dtypeOf(node, "struct");
    const { length } = dtype.fields;
    node.expectBuffers(0);
    node.expectChildren(length, length + 1);
    const first = node.childCount - length;
    if (first > 0 && !dtype.nullable) node.fail(`It has a validity child but dtype ${node.typeText} is not nullable`);
    const validity = first > 0 ? node.child(0, boolDType, node.length) : null;
    return { dtype, validity, fields: dtype.fields.map((field, i) => node.child(first + i, field, node.length)) };
  },
  decode({ length }, { dtype, validity, fields }, context) {
    return {
      kind: "struct",
      dtype,
      length,
      validity: context.validity(validity),
      fields: fields.map((field) => context.decodeKeeping(field)),
    };
  },
};

interface OpenedList {
  readonly dtype: DTypeOf<"list">;
  readonly elements: EncodedNode;
  readonly offsets: EncodedNode;
  readonly validity: EncodedNode | null;
}

/** Concatenated elements, and the offset at which each list begins. */
export const listEncoding: VortexEncoding<OpenedList> = {
  id: "vortex.list",
  open(node) {
    const dtype = dtypeOf(node, "list");
    const message = node.message();
    node.expectBuffers(0);
    return {
      dtype,
      elements: node.child(0, dtype.element, message.number(1)),
      offsets: node.child(1, wholeDType(node, message.u32(2), "offsets"), node.length + 1),
      validity: node.validityChild(2),
    };
  },
  decode(node, { dtype, elements, offsets, validity }, context) {
    const at = context.primitive(offsets);
    return listsOf(dtype, at, context.decode(elements), context.validity(validity), node, context);
  },
};

// law vortex/listsOf: vortex/core/contradictions
/** Builds lists from their offsets, which are checked; the last offset is the end of the last list. */
export function listsOf(
  dtype: DTypeOf<"list">,
  at: PrimitiveArray,
  elements: CanonicalArray,
  validity: Bytes | null,
  place: Place,
  context: DecodeContext,
): CanonicalArray {
  const wholes = wholesOf(at, place, context, "Offset");
  checkOffsets(wholes, elements.length, place, "the elements");
  checkCount(elements.length, place);
  const offsets = new Int32Array(context.allocate(4 * wholes.length, place).buffer, 0, wholes.length);
  offsets.set(wholes);
  return { kind: "list", dtype, length: wholes.length - 1, validity, offsets, elements };
}

/** @throws {VortexError} if there are more elements than 32-bit offsets can address */
function checkCount(count: number, node: Place): void {
  if (count > maxListElements) node.fail(tooManyElements(count).message);
}

interface OpenedListView {
  readonly dtype: DTypeOf<"list">;
  readonly elements: EncodedNode;
  readonly starts: EncodedNode;
  readonly sizes: EncodedNode;
  readonly validity: EncodedNode | null;
}

// law vortex/listViewEncoding: vortex/core/contradictions
/** A range of the elements per list: ranges may overlap, and may leave elements out. */
export const listViewEncoding: VortexEncoding<OpenedListView> = {
  id: "vortex.listview",
  open(node) {
    const dtype = dtypeOf(node, "list");
    const message = node.message();
    node.expectBuffers(0);
    return {
      dtype,
      elements: node.child(0, dtype.element, message.number(1)),
      starts: node.child(1, wholeDType(node, message.u32(2), "offsets"), node.length),
      sizes: node.child(2, wholeDType(node, message.u32(3), "sizes"), node.length),
      validity: node.validityChild(3),
    };
  },
  decode(node, opened, context) {
    const { dtype } = opened;
    const { length } = node;
    const validity = context.validity(opened.validity);
    const starts = wholeNumbers(opened.starts, context, "Offset");
    const sizes = wholeNumbers(opened.sizes, context, "Size");
    const { length: count } = opened.elements;
    checkCount(count, node);
    const ranges = new Uint32Array(context.allocate(8 * length, node).buffer, 0, 2 * length);
    const [from, of] = [ranges.subarray(0, length), ranges.subarray(length)];
    for (let i = 0; i < length; i++) {
      if (!isValid(validity, i)) continue; // its range is arbitrary
      const [start, size] = [starts[i] ?? 0, sizes[i] ?? 0];
      if (start + size > count) node.fail(`List ${i} ends at element ${start + size} of ${count}`);
      [from[i], of[i]] = [start, size];
    }
    // Contiguous lists need no gather; an empty list starts wherever the previous one ends.
    let end = from[of.findIndex((size) => size > 0)] ?? 0;
    let isInRow = true;
    for (let i = 0; i < length && isInRow; i++) {
      const size = of[i] ?? 0;
      if (size === 0) from[i] = end;
      isInRow = from[i] === end;
      end += size;
    }
    const elements = context.decode(opened.elements);
    const plain = { kind: "list", dtype, length, validity } as const;
    if (!isInRow) return { ...plain, ...gathered({ starts: from, sizes: of }, length, elements, node, context) };
    const offsets = new Int32Array(context.allocate(4 * (length + 1), node).buffer, 0, length + 1);
    offsets.set(from);
    offsets[length] = end;
    return { ...plain, offsets, elements };
  },
};

function gathered(
  ranges: { readonly starts: WholeNumbers; readonly sizes: WholeNumbers },
  length: number,
  elements: CanonicalArray,
  node: EncodedNode,
  context: DecodeContext,
): ReturnType<typeof gatherLists> {
  let total = 0;
  for (let i = 0; i < length; i++) total += ranges.sizes[i] ?? 0;
  checkCount(total, node);
  return gatherLists(ranges, length, elements, context.allocator(node));
}

interface OpenedFixed {
  readonly dtype: DTypeOf<"fixedSizeList">;
  readonly elements: EncodedNode;
  readonly validity: EncodedNode | null;
}

/** Lists with equal numbers of elements. */
export const fixedSizeListEncoding: VortexEncoding<OpenedFixed> = {
  id: "vortex.fixed_size_list",
  open(node) {
    node.expectNoMetadata();
    const dtype = dtypeOf(node, "fixedSizeList");
    node.expectBuffers(0);
    return {
      dtype,
      elements: node.child(0, dtype.element, node.length * dtype.size),
      validity: node.validityChild(1),
    };
  },
  decode({ length }, { dtype, elements, validity }, context) {
    return {
      kind: "fixedSizeList",
      dtype,
      length,
      validity: context.validity(validity),
      size: dtype.size,
      elements: context.decode(elements),
    };
  },
};

interface OpenedMap {
  readonly dtype: DTypeOf<"map">;
  readonly lists: EncodedNode;
}

/** Maps: lists of entries. */
export const mapEncoding: VortexEncoding<OpenedMap> = {
  id: "vortex.map",
  open(node) {
    node.expectNoMetadata();
    const dtype = dtypeOf(node, "map");
    const list: VortexDType = { kind: "list", element: entriesOf(dtype), nullable: dtype.nullable };
    node.expectBuffers(0);
    node.expectChildren(1);
    return { dtype, lists: node.child(0, list, node.length) };
  },
  decode: (_, { dtype, lists }, context) => retyped(context.decode(lists), dtype),
};

interface OpenedExtension {
  readonly dtype: DTypeOf<"extension">;
  readonly storage: EncodedNode;
}

/** Values of an extension type, held in their storage array. */
export const extensionEncoding: VortexEncoding<OpenedExtension> = {
  id: "vortex.ext",
  open(node) {
    node.expectNoMetadata();
    const dtype = dtypeOf(node, "extension");
    node.expectBuffers(0);
    node.expectChildren(1);
    return { dtype, storage: node.child(0, dtype.storage, node.length) };
  },
  decode({ length }, { dtype, storage: storageNode }, context) {
    const storage = context.decode(storageNode);
    return { kind: "extension", dtype, length, validity: storage.validity, storage };
  },
};
