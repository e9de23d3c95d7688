/**
 * Decoded arrays as nodes again, in the simplest encodings, over the same memory.
 *
 * @module
 */
import { bytesForBits } from "./bits.ts";
import type { CanonicalArray, ListArray } from "./canonical.ts";
import { boolDType, entriesOf, primitiveDType, type VortexDType } from "./dtype.ts";
import { flatten } from "./ops/flatten.ts";
import { type PType, ptypes } from "./ptype.ts";
import type { RawNode } from "./raw_node.ts";
import { type ProtoField, protoOf } from "./wire/proto_writer.ts";
import { type Bytes, bytesOf, noBytes } from "./wire/source.ts";

/** Codes of the integer types that store decimals, by width in bytes. */
const decimalCodes: Readonly<Record<number, number>> = { 1: 0, 2: 1, 4: 2, 8: 3, 16: 4, 32: 5 };

function codeOf(ptype: PType): number {
  return ptypes.indexOf(ptype);
}

// law vortex/encodeCanonical: vortex/core/ipc
/** The nodes of a decoded array. Each states its dtype and length. */
export function encodeCanonical(array: CanonicalArray): RawNode {
  const { dtype, length } = array;
  const node: MakeNode = (id, fields, buffers, children) => ({
    id,
    metadata: fields.length === 0 ? noBytes : protoOf(fields),
    buffers,
    children,
    outer: { dtype, length },
  });
  const validity = validityOf(array);
  switch (array.kind) {
    case "null":
      return node("vortex.null", [], [], []);
    case "bool": {
      const first = Math.floor(array.offset / 8);
      const bits = array.bits.subarray(first, bytesForBits(array.offset + length));
      return node("vortex.bool", [[1, array.offset % 8]], [bits], validity);
    }
    case "primitive":
      return node("vortex.primitive", [], [bytesOf(array.values)], validity);
    case "decimal":
      return node(
        "vortex.decimal",
        [[1, decimalCodes[array.width] ?? 0]],
        [array.bytes.subarray(0, length * array.width)],
        validity,
      );
    case "varbinview":
      return node("vortex.varbinview", [], [...array.data, array.views.subarray(0, 16 * length)], validity);
    case "list":
      return listNode(array, dtype, node, validity);
    case "fixedSizeList":
      return node("vortex.fixed_size_list", [], [], [encodeCanonical(array.elements), ...validity]);
    case "struct":
      return node("vortex.struct", [], [], [...validity, ...array.fields.map(encodeCanonical)]);
    case "extension":
      return node("vortex.ext", [], [], [encodeCanonical(array.storage)]);
    case "dictionary": {
      const codes = encodeCanonical({
        ...array.codes,
        dtype: { ...array.codes.dtype, nullable: dtype.nullable },
        validity: array.validity,
      });
      const { ptype } = array.codes.dtype;
      const fields: ProtoField[] = [[1, array.values.length], [2, codeOf(ptype)], [3, Number(dtype.nullable)]];
      return node("vortex.dict", fields, [], [codes, encodeCanonical(array.values)]);
    }
    case "runEnd":
      return encodeCanonical(flatten(array, (bytes) => new Uint8Array(bytes)));
  }
}

type MakeNode = (
  id: string,
  fields: readonly ProtoField[],
  buffers: readonly Bytes[],
  children: readonly RawNode[],
) => RawNode;

/** Lists by offsets. For maps, Vortex expects lists by offsets and sizes. */
function listNode(
  { offsets, elements, length }: ListArray,
  dtype: VortexDType,
  node: MakeNode,
  validity: readonly RawNode[],
): RawNode {
  const i32 = primitiveDType("i32");
  const numbers = (values: Int32Array<ArrayBuffer>): RawNode =>
    encodeCanonical({ kind: "primitive", dtype: i32, length: values.length, validity: null, values });
  const code = codeOf("i32");
  if (dtype.kind !== "map") {
    const fields: ProtoField[] = [[1, elements.length], [2, code]];
    return node("vortex.list", fields, [], [encodeCanonical(elements), numbers(offsets), ...validity]);
  }
  const sizes = new Int32Array(length);
  for (let i = 0; i < length; i++) sizes[i] = (offsets[i + 1] ?? 0) - (offsets[i] ?? 0);
  const lists: RawNode = {
    id: "vortex.listview",
    metadata: protoOf([[1, elements.length], [2, code], [3, code]]),
    buffers: [],
    children: [encodeCanonical(elements), numbers(offsets.subarray(0, length)), numbers(sizes), ...validity],
    outer: { dtype: { kind: "list", element: entriesOf(dtype), nullable: dtype.nullable }, length },
  };
  return node("vortex.map", [], [], [lists]);
}

/** The validity child, if there is one. */
function validityOf({ validity, length }: CanonicalArray): readonly RawNode[] {
  if (validity === null) return [];
  return [encodeCanonical({ kind: "bool", dtype: boolDType, length, validity: null, bits: validity, offset: 0 })];
}
