/**
 * Conversions one element at a time, by the rules of `src/copy/conversion.ts`: how the host converted before it did
 * many at a time, and the reference for that where the integers of `numbers.ts` would take too long.
 *
 * A number passes through a double. That is exact for all but 64-bit integers, which are read as their destination
 * needs them: the lower word for other integers, and for floats rounded so that rounding once more is harmless.
 *
 * @module
 */
import { bytesOf, type Conversion, isInteger, type NumberType } from "../../src/copy/conversion.ts";

const littleEndian = true;

type Reader = (view: DataView, at: number) => number;
type Writer = (view: DataView, at: number, value: number) => void;

/** Converts contiguous elements. */
export function convertedOneByOne(elements: Uint8Array, { from, to }: Conversion): Uint8Array<ArrayBuffer> {
  const [read, written] = [bytesOf(from), bytesOf(to)];
  const count = elements.length / read;
  const result = new Uint8Array(new ArrayBuffer(count * written));
  const [out, into] = [viewOf(elements), viewOf(result)];
  const move = from.isComplex && (to.isComplex || to.kind === "bool") ? moveComplex(from, to) : moveReal(from, to);
  for (let i = 0; i < count; i++) move(out, i * read, into, i * written);
  return result;
}

type Move = (from: DataView, fromAt: number, to: DataView, toAt: number) => void;

function viewOf({ buffer, byteOffset, byteLength }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}

/** Moves a number, or the real part of one; a complex destination's imaginary part becomes zero. */
function moveReal(from: NumberType, to: NumberType): Move {
  const [read, write] = [readerOf(from, to), writerOf(to, from)];
  if (!to.isComplex) return (out, fromAt, into, toAt) => write(into, toAt, read(out, fromAt));
  const part = to.bits / 8;
  return (out, fromAt, into, toAt) => {
    write(into, toAt, read(out, fromAt));
    write(into, toAt + part, 0);
  };
}

/** Moves both parts, or, to a boolean, whether either of them is not zero. */
function moveComplex(from: NumberType, to: NumberType): Move {
  const [read, write] = [readerOf(from, to), writerOf(to, from)];
  const [fromPart, toPart] = [from.bits / 8, to.bits / 8];
  if (to.isComplex) {
    return (out, fromAt, into, toAt) => {
      write(into, toAt, read(out, fromAt));
      write(into, toAt + toPart, read(out, fromAt + fromPart));
    };
  }
  return (out, fromAt, into, toAt) => {
    const isZero = read(out, fromAt) === 0 && read(out, fromAt + fromPart) === 0;
    write(into, toAt, isZero ? 0 : 1);
  };
}

/** Returns a reader of a number as the destination needs it. */
function readerOf(from: NumberType, to: NumberType): Reader {
  switch (`${from.kind}${from.bits}` as const) {
    case "bool8":
      return (view, at) => view.getUint8(at) === 0 ? 0 : 1;
    case "int8":
      return (view, at) => view.getInt8(at);
    case "uint8":
      return (view, at) => view.getUint8(at);
    case "int16":
      return (view, at) => view.getInt16(at, littleEndian);
    case "uint16":
      return (view, at) => view.getUint16(at, littleEndian);
    case "int32":
      return (view, at) => view.getInt32(at, littleEndian);
    case "uint32":
      return (view, at) => view.getUint32(at, littleEndian);
    case "float16":
      return (view, at) => view.getFloat16(at, littleEndian);
    case "float32":
      return (view, at) => view.getFloat32(at, littleEndian);
    case "float64":
      return (view, at) => view.getFloat64(at, littleEndian);
    case "bfloat16":
      return readBfloat16;
    default:
      return longReader(from, to);
  }
}

/** Returns a reader of a 64-bit integer. */
function longReader(from: NumberType, to: NumberType): Reader {
  if (isInteger(to)) return (view, at) => view.getInt32(at, littleEndian); // the other integers have no more bits
  if (to.kind === "bool") return (view, at) => view.getInt32(at, littleEndian) | view.getInt32(at + 4, littleEndian);
  const upper: Reader = from.kind === "int"
    ? (view, at) => view.getInt32(at + 4, littleEndian)
    : (view, at) => view.getUint32(at + 4, littleEndian);
  // Both terms are doubles, so their sum is rounded once.
  if (to.bits === 64) return (view, at) => upper(view, at) * 2 ** 32 + view.getUint32(at, littleEndian);
  return (view, at) => {
    const [high, low] = [upper(view, at), view.getUint32(at, littleEndian)];
    // Small values are exact. In large ones the lowest 11 bits are far below the precision of a smaller float: a sticky
    // bit above them records whether any was set. The rest has 53 bits, and is rounded once, by the writer.
    const isSmall = high >= -(2 ** 20) && high < 2 ** 20;
    const kept = isSmall || (low & 0x7ff) === 0 ? low : ((low & ~0x7ff) | 0x800) >>> 0;
    return high * 2 ** 32 + kept;
  };
}

/** Returns a writer of a number, given the type it was read from. */
function writerOf(to: NumberType, from: NumberType): Writer {
  if (isInteger(to) && !isInteger(from) && from.kind !== "bool") return saturatingWriter(to);
  switch (`${to.kind}${to.bits}` as const) {
    case "bool8":
      return (view, at, value) => view.setUint8(at, value === 0 ? 0 : 1);
    case "int8":
    case "uint8":
      return (view, at, value) => view.setUint8(at, value);
    case "int16":
    case "uint16":
      return (view, at, value) => view.setUint16(at, value, littleEndian);
    case "int32":
    case "uint32":
      return (view, at, value) => view.setUint32(at, value, littleEndian);
    case "float16":
      return (view, at, value) => view.setFloat16(at, value, littleEndian);
    case "float32":
      return (view, at, value) => view.setFloat32(at, value, littleEndian);
    case "float64":
      return (view, at, value) => view.setFloat64(at, value, littleEndian);
    case "bfloat16":
      return writeBfloat16;
    default:
      return writeLong;
  }
}

/** Writes an integer of up to 53 bits and a sign as a 64-bit one. */
function writeLong(view: DataView, at: number, value: number): void {
  view.setUint32(at, value, littleEndian); // the lowest 32 bits, whatever the sign
  view.setInt32(at + 4, Math.floor(value / 2 ** 32), littleEndian);
}

/** Returns a writer that truncates a float, and saturates to the nearest representable integer. */
function saturatingWriter({ kind, bits }: NumberType): Writer {
  const isSigned = kind === "int";
  const least = isSigned ? -(2 ** (bits - 1)) : 0;
  const end = isSigned ? 2 ** (bits - 1) : 2 ** bits;
  if (bits === 64) {
    return (view, at, value) => {
      if (value < end) return writeLong(view, at, value > least ? Math.trunc(value) : least);
      const isNumber = value >= end;
      view.setInt32(at, isNumber ? -1 : 0, littleEndian);
      view.setInt32(at + 4, isNumber ? (isSigned ? 0x7fff_ffff : -1) : 0, littleEndian);
    };
  }
  const fit = (value: number) => value > least ? Math.min(Math.trunc(value), end - 1) : value <= least ? least : 0;
  if (bits === 8) return (view, at, value) => view.setUint8(at, fit(value));
  if (bits === 16) return (view, at, value) => view.setUint16(at, fit(value), littleEndian);
  return (view, at, value) => view.setUint32(at, fit(value), littleEndian);
}

const scratch = new DataView(new ArrayBuffer(4));

function readBfloat16(view: DataView, at: number): number {
  scratch.setUint32(0, view.getUint16(at, littleEndian) << 16);
  return scratch.getFloat32(0);
}

/** Converts through a float32 that is rounded to odd, so that only the second rounding counts. */
function writeBfloat16(view: DataView, at: number, value: number): void {
  view.setUint16(at, Number.isNaN(value) ? 0x7fc0 : nearestBfloat16(value), littleEndian);
}

function nearestBfloat16(value: number): number {
  scratch.setFloat32(0, value);
  const rounded = scratch.getFloat32(0);
  let bits = scratch.getUint32(0);
  if (rounded !== value) bits = (Math.abs(rounded) > Math.abs(value) ? bits - 1 : bits) | 1;
  return (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16;
}
