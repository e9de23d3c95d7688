/**
 * Numbers that count or point: offsets, sizes, codes.
 *
 * @module
 */
import { bitAt } from "../bits.ts";
import type { PrimitiveArray } from "../canonical.ts";
import type { DecodeContext } from "../decode_context.ts";
import { primitiveDType, type VortexDType } from "../dtype.ts";
import type { EncodedNode } from "../encoded_node.ts";
import type { Place } from "../error.ts";
import { isFloat, isSigned, widthOf } from "../ptype.ts";
import { ptypeOfCode } from "../wire/dtype_flatbuffer.ts";

/** Whole numbers, none of which is negative. Those of 64 bits are rounded beyond 2^53, which no bound allows. */
export type WholeNumbers =
  | Uint8Array<ArrayBuffer>
  | Uint16Array<ArrayBuffer>
  | Uint32Array<ArrayBuffer>
  | Float64Array<ArrayBuffer>;

/** The dtype of numbers whose ptype stands in a field of the metadata. @throws {VortexError} unless they are whole */
export function wholeDType(node: EncodedNode, code: number, what: string, nullable = false): VortexDType {
  const ptype = ptypeOfCode(code, node.path, what);
  if (isFloat(ptype)) node.fail(`The ptype of ${what} is ${ptype}. Expected whole numbers`);
  return primitiveDType(ptype, nullable);
}

/**
 * Decodes numbers. What a null has is arbitrary, and 0 here if it is negative.
 *
 * @param what what they are, for errors
 * @throws {VortexError} if one is negative
 */
export function wholeNumbers(node: EncodedNode, context: DecodeContext, what: string): WholeNumbers {
  return wholesOf(context.primitive(node), node, context, what);
}

// law vortex/wholesOf: vortex/core/contradictions
/** The same of numbers that were decoded. */
export function wholesOf(array: PrimitiveArray, node: Place, context: DecodeContext, what: string): WholeNumbers {
  const { values, validity, length } = array;
  const { ptype } = array.dtype;
  const width = widthOf(ptype);
  const isNull = (i: number): boolean => validity !== null && !bitAt(validity, i);
  const negative = (i: number): never => node.fail(`${what} ${i} is ${values[i]}. Expected no negative numbers`);
  if (width === 8) {
    context.charge(8 * length, node);
    const wholes = new Float64Array(length);
    const halves = new Uint32Array(values.buffer, values.byteOffset, 2 * length);
    const isChecked = isSigned(ptype);
    for (let i = 0; i < length; i++) {
      const high = halves[2 * i + 1] ?? 0;
      if (isChecked && high > 0x7fff_ffff) {
        if (!isNull(i)) negative(i);
      } else wholes[i] = (halves[2 * i] ?? 0) + 2 ** 32 * high;
    }
    return wholes;
  }
  const kind = width === 1 ? Uint8Array : width === 2 ? Uint16Array : Uint32Array;
  let wholes = new kind(values.buffer, values.byteOffset, length);
  if (!isSigned(ptype)) return wholes;
  const most = 2 ** (8 * width - 1) - 1;
  let isCopy = false;
  for (let i = 0; i < length; i++) {
    if ((wholes[i] ?? 0) <= most) continue;
    if (!isNull(i)) negative(i);
    if (!isCopy) {
      context.charge(width * length, node);
      [wholes, isCopy] = [wholes.slice(), true];
    }
    wholes[i] = 0;
  }
  return wholes;
}

/**
 * Numbers that do not fall and end within so many elements.
 *
 * @throws {VortexError} if they do not
 */
export function checkOffsets(offsets: WholeNumbers, most: number, node: Place, what: string): void {
  let before = 0;
  for (let i = 0; i < offsets.length; i++) {
    const offset = offsets[i] ?? 0;
    if (offset < before) node.fail(`Offset ${i} of ${what} is ${offset}, less than the one before it, ${before}`);
    before = offset;
  }
  if (before > most) node.fail(`The last offset of ${what} is ${before}, and there are only ${most}`);
}
