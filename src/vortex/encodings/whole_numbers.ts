/**
 * Numbers used as counts or indices: offsets, sizes, codes.
 *
 * @module
 */
import { isValid } from "../bits.ts";
import type { PrimitiveArray } from "../canonical.ts";
import type { DecodeContext } from "../decode_context.ts";
import { primitiveDType, type VortexDType } from "../dtype.ts";
import type { EncodedNode } from "../encoded_node.ts";
import type { Place } from "../error.ts";
import { isFloat, isSigned, widthOf } from "../ptype.ts";
import { ptypeOfCode } from "../wire/dtype_flatbuffer.ts";

/** Non-negative whole numbers. 64-bit numbers beyond 2^53 are rounded; every bound rejects them. */
export type WholeNumbers =
  | Uint8Array<ArrayBuffer>
  | Uint16Array<ArrayBuffer>
  | Uint32Array<ArrayBuffer>
  | Float64Array<ArrayBuffer>;

/** The dtype of numbers whose ptype is a metadata field. @throws {VortexError} unless it is an integer type */
export function wholeDType(node: EncodedNode, code: number, what: string, nullable = false): VortexDType {
  const ptype = ptypeOfCode(code, node.path, what);
  if (isFloat(ptype)) node.fail(`The ptype of ${what} is ${ptype}. Expected whole numbers`);
  return primitiveDType(ptype, nullable);
}

/**
 * Decodes numbers. The value of a null element is arbitrary; a negative one becomes 0.
 *
 * @param what names the numbers in errors
 * @throws {VortexError} if a non-null number is negative
 */
export function wholeNumbers(node: EncodedNode, context: DecodeContext, what: string): WholeNumbers {
  return wholesOf(context.primitive(node), node, context, what);
}

// law vortex/wholesOf: vortex/core/contradictions
/** The same for numbers that are already decoded. */
export function wholesOf(array: PrimitiveArray, node: Place, context: DecodeContext, what: string): WholeNumbers {
  const { values, validity, length } = array;
  const { ptype } = array.dtype;
  const width = widthOf(ptype);
  const isNull = (i: number): boolean => !isValid(validity, i);
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
 * Checks that offsets never decrease and that the last one is at most `most`.
 *
 * @throws {VortexError} if the offsets are invalid
 */
export function checkOffsets(offsets: WholeNumbers, most: number, node: Place, what: string): void {
  let before = 0;
  for (let i = 0; i < offsets.length; i++) {
    const offset = offsets[i] ?? 0;
    if (offset < before) node.fail(`Offset ${i} of ${what} is ${offset}, less than the one before it, ${before}`);
    before = offset;
  }
  if (before > most) node.fail(`The last offset of ${what} is ${before}, but there are only ${most}`);
}
