/**
 * Encodings whose buffers hold the elements directly: nulls, booleans, numbers.
 *
 * @module
 */
import { bytesForBits } from "../bits.ts";
import type { DTypeOf, VortexDType } from "../dtype.ts";
import type { EncodedNode } from "../encoded_node.ts";
import type { VortexEncoding } from "../encoding.ts";
import { type PrimitiveValues, valuesAt, widthOf } from "../ptype.ts";

/** The node's dtype, which must be of a kind that the encoding supports. */
export function dtypeOf<Kind extends VortexDType["kind"]>(node: EncodedNode, ...kinds: readonly Kind[]): DTypeOf<Kind> {
  const isOfKind = (dtype: VortexDType): dtype is DTypeOf<Kind> => kinds.some((kind) => kind === dtype.kind);
  if (isOfKind(node.dtype)) return node.dtype;
  return node.fail(`${node.id} cannot have the dtype ${node.typeText}. Expected ${kinds.join(" or ")}`);
}

/** All nulls. */
export const nullEncoding: VortexEncoding<VortexDType> = {
  id: "vortex.null",
  open(node) {
    node.expectNoMetadata();
    return dtypeOf(node, "null");
  },
  decode: ({ length }, dtype) => ({ kind: "null", dtype, length, validity: null }),
};

interface OpenedBool {
  readonly dtype: VortexDType;
  /** The number of bits before the first element. */
  readonly offset: number;
  readonly validity: EncodedNode | null;
}

// law vortex/boolEncoding: vortex/core/built
/** One bit per boolean. */
export const boolEncoding: VortexEncoding<OpenedBool> = {
  id: "vortex.bool",
  open(node) {
    const dtype = dtypeOf(node, "bool");
    const offset = node.message().u32(1);
    if (offset >= 8) node.fail(`The first bit of vortex.bool is bit ${offset}. Expected 0 to 7`);
    node.expectBuffers(1);
    node.expectSize(0, bytesForBits(offset + node.length));
    return { dtype, offset, validity: node.validityChild(0) };
  },
  decode(node, { dtype, offset, validity }, context) {
    const { length } = node;
    return { kind: "bool", dtype, length, validity: context.validity(validity), bits: node.bytes(0), offset };
  },
};

interface OpenedPlain<DType> {
  readonly dtype: DType;
  readonly validity: EncodedNode | null;
}

// law vortex/byteBoolEncoding: vortex/core/built
/** One byte per boolean. */
export const byteBoolEncoding: VortexEncoding<OpenedPlain<VortexDType>> = {
  id: "vortex.bytebool",
  open(node) {
    node.expectNoMetadata();
    const dtype = dtypeOf(node, "bool");
    node.expectBuffers(1);
    node.expectSize(0, node.length, node.length);
    return { dtype, validity: node.validityChild(0) };
  },
  decode(node, { dtype, validity }, context) {
    const { length } = node;
    const bytes = node.bytes(0);
    const bits = context.allocate(bytesForBits(length), node);
    for (let i = 0; i < length; i++) if (bytes[i] !== 0) bits[i >>> 3] = (bits[i >>> 3] ?? 0) | 1 << (i & 7);
    return { kind: "bool", dtype, length, validity: context.validity(validity), bits, offset: 0 };
  },
};

/** Plain numbers. */
export const primitiveEncoding: VortexEncoding<OpenedPlain<DTypeOf<"primitive">>> = {
  id: "vortex.primitive",
  open(node) {
    node.expectNoMetadata();
    const dtype = dtypeOf(node, "primitive");
    node.expectBuffers(1);
    const bytes = node.length * widthOf(dtype.ptype);
    node.expectSize(0, bytes, bytes);
    return { dtype, validity: node.validityChild(0) };
  },
  decode(node, { dtype, validity }, context) {
    const { length } = node;
    const bytes = node.buffer(0);
    const values: PrimitiveValues = valuesAt(dtype.ptype, bytes.buffer, length === 0 ? 0 : bytes.byteOffset, length);
    return { kind: "primitive", dtype, length, validity: context.validity(validity), values };
  },
};
