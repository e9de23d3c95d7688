/**
 * How each value of a decoded column compares with a literal: loops without an object or a bigint per row, where the
 * kind of values allows it.
 *
 * @module
 */
import { bitAt, isValid } from "../bits.ts";
import { type CanonicalArray, INLINE_BYTES, type PrimitiveArray, type VarBinViewArray } from "../canonical.ts";
import { signedOf } from "../wire/scalar.ts";
import { type ColumnValue, compareWith, type Literal } from "./literal.ts";

/** Below the literal, equal to it, above it; undefined for values without an order. Must not be called for nulls. */
export type RowOrder = (row: number) => -1 | 0 | 1 | undefined;

/**
 * How rows compare with a literal.
 *
 * @param isEquality whether it does not matter which of two different values is less
 */
export function rowOrderOf(array: CanonicalArray, literal: Literal, isEquality: boolean): RowOrder {
  if (array.kind === "extension") return rowOrderOf(array.storage, literal, isEquality);
  return fastOrderOf(array, literal, isEquality) ?? ((row) => {
    const value = valueAt(array, row);
    return value === undefined ? undefined : compareWith(value, literal);
  });
}

function fastOrderOf(array: CanonicalArray, literal: Literal, isEquality: boolean): RowOrder | null {
  if (array.kind === "varbinview" && literal.value instanceof Uint8Array) {
    return textOrder(array, literal.value, isEquality);
  }
  if (array.kind !== "primitive") return null;
  if (literal.order === "float") return floatOrder(array, literal);
  const { values } = array;
  if (values instanceof BigInt64Array || values instanceof BigUint64Array) return wideOrder(values, literal);
  if (literal.order !== "number") return null;
  const wanted = Number(literal.value); // rounded only beyond the range of 32 bits
  const equal = literal.isExact ? 0 : -1;
  return (row) => {
    const value = values[row] ?? 0;
    return value < wanted ? -1 : value > wanted ? 1 : equal;
  };
}

// law vortex/floatOrder: vortex/file/row_order
/**
 * Order of floats. Whether a NaN is above everything or below is in its sign, which is read from memory: in a number
 * JavaScriptCore has one NaN only.
 */
function floatOrder(array: PrimitiveArray, literal: Literal): RowOrder {
  const { dtype: { ptype }, values } = array;
  const { buffer, byteOffset, length } = values;
  const floats = ptype === "f16" ? new Float16Array(buffer, byteOffset, length) : values;
  const words = ptype === "f16"
    ? new Uint16Array(buffer, byteOffset, length)
    : new Uint32Array(buffer, byteOffset, ptype === "f64" ? 2 * length : length);
  const [each, last] = ptype === "f64" ? [2, 1] : [1, 0];
  const sign = ptype === "f16" ? 0x8000 : 0x8000_0000;
  return (row) => {
    const value = Number(floats[row]);
    const isBelow = Number.isNaN(value) && ((words[each * row + last] ?? 0) & sign) !== 0;
    return isBelow ? -1 : compareWith(value, literal);
  };
}

// law vortex/wideOrder: vortex/file/row_order
/** Order of 64-bit integers, as two halves; null if the literal is not an integer. */
function wideOrder(
  values: BigInt64Array<ArrayBuffer> | BigUint64Array<ArrayBuffer>,
  literal: Literal,
): RowOrder | null {
  const { value, isExact } = literal;
  if (typeof value !== "bigint" && !(typeof value === "number" && Number.isInteger(value))) return null;
  const isSigned = values instanceof BigInt64Array;
  const wanted = BigInt(value);
  if ((isSigned ? BigInt.asIntN(64, wanted) : BigInt.asUintN(64, wanted)) !== wanted) return () => wanted < 0n ? 1 : -1;
  // Flipping the sign bit makes signed numbers sort as unsigned ones.
  const flip = isSigned ? 0x8000_0000 : 0;
  const high = (Number(BigInt.asUintN(32, wanted >> 32n)) ^ flip) >>> 0;
  const low = Number(BigInt.asUintN(32, wanted));
  const words = new Uint32Array(values.buffer, values.byteOffset, 2 * values.length);
  const equal = isExact ? 0 : -1;
  return (row) => {
    const top = ((words[2 * row + 1] ?? 0) ^ flip) >>> 0;
    if (top !== high) return top < high ? -1 : 1;
    const bottom = words[2 * row] ?? 0;
    return bottom === low ? equal : bottom < low ? -1 : 1;
  };
}

/** A value in the form that filters compare; undefined for a null, and for values without an order. */
export function valueAt(array: CanonicalArray, at: number): ColumnValue | undefined {
  if (!isValid(array.validity, at)) return undefined;
  switch (array.kind) {
    case "bool":
      return bitAt(array.bits, array.offset + at);
    case "primitive": {
      const value = array.values[at];
      return array.dtype.ptype === "f16" ? new Float16Array(Uint16Array.of(Number(value)).buffer)[0] : value;
    }
    case "decimal":
      return signedOf(array.bytes.subarray(at * array.width, (at + 1) * array.width));
    case "varbinview": {
      const { bytes, start, size } = textCursor(array)(at);
      return bytes.subarray(start, start + size);
    }
    case "extension":
      return valueAt(array.storage, at);
    default:
      return undefined;
  }
}

/** The bytes of a text to compare, without an array per text. */
export interface TextCursor {
  readonly bytes: Uint8Array;
  readonly start: number;
  readonly size: number;
}

/** Moves over an array's texts: every call returns the same object, updated. */
export function textCursor({ views, data }: VarBinViewArray): (row: number) => TextCursor {
  const view = new DataView(views.buffer, views.byteOffset, views.byteLength);
  const none = new Uint8Array(0);
  const cursor = { bytes: none, start: 0, size: 0 };
  return (row) => {
    const at = 16 * row;
    const size = view.getUint32(at, true);
    const isInline = size <= INLINE_BYTES;
    cursor.bytes = isInline ? views : data[view.getUint32(at + 8, true)] ?? none;
    cursor.start = isInline ? at + 4 : view.getUint32(at + 12, true);
    cursor.size = size;
    return cursor;
  };
}

// law vortex/textOrder: vortex/file/row_order
function textOrder(array: VarBinViewArray, wanted: Uint8Array, isEquality: boolean): RowOrder {
  const move = textCursor(array);
  return (row) => {
    const { bytes, start, size } = move(row);
    if (isEquality && size !== wanted.length) return 1;
    const length = Math.min(size, wanted.length);
    for (let i = 0; i < length; i++) {
      const [one = 0, other = 0] = [bytes[start + i], wanted[i]];
      if (one !== other) return one < other ? -1 : 1;
    }
    return size === wanted.length ? 0 : size < wanted.length ? -1 : 1;
  };
}
