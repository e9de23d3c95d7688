/**
 * The demo's control: what the second process must answer, computed from the file's bytes with index arithmetic written
 * out here. It shares no code with the layouts, views and element types that it checks.
 *
 * @module
 */
import { createHash } from "node:crypto";
import type { Summary } from "./summary.ts";

type Read = (bytes: DataView, at: number) => number | bigint;

/** How each element type is read; a complex number is two of them. */
const readers: { readonly [typestr: string]: { readonly size: number; readonly parts: 1 | 2; readonly read: Read } } = {
  "|b1": { size: 1, parts: 1, read: (bytes, at) => (bytes.getUint8(at) === 0 ? 0 : 1) },
  "|i1": { size: 1, parts: 1, read: (bytes, at) => bytes.getInt8(at) },
  "|u1": { size: 1, parts: 1, read: (bytes, at) => bytes.getUint8(at) },
  "<i2": { size: 2, parts: 1, read: (bytes, at) => bytes.getInt16(at, true) },
  "<u2": { size: 2, parts: 1, read: (bytes, at) => bytes.getUint16(at, true) },
  "<i4": { size: 4, parts: 1, read: (bytes, at) => bytes.getInt32(at, true) },
  "<u4": { size: 4, parts: 1, read: (bytes, at) => bytes.getUint32(at, true) },
  "<i8": { size: 8, parts: 1, read: (bytes, at) => bytes.getBigInt64(at, true) },
  "<u8": { size: 8, parts: 1, read: (bytes, at) => bytes.getBigUint64(at, true) },
  "<f2": { size: 2, parts: 1, read: (bytes, at) => halfToNumber(bytes.getUint16(at, true)) },
  "<f4": { size: 4, parts: 1, read: (bytes, at) => bytes.getFloat32(at, true) },
  "<f8": { size: 8, parts: 1, read: (bytes, at) => bytes.getFloat64(at, true) },
  "<c8": { size: 4, parts: 2, read: (bytes, at) => bytes.getFloat32(at, true) },
  "<c16": { size: 8, parts: 2, read: (bytes, at) => bytes.getFloat64(at, true) },
};

/** IEEE 754 binary16. */
function halfToNumber(bits: number): number {
  const sign = bits >> 15 === 0 ? 1 : -1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction === 0 ? sign * Infinity : NaN;
  return sign * (exponent === 0 ? fraction * 2 ** -24 : (1024 + fraction) * 2 ** (exponent - 25));
}

/** The part of an array that the demo sends: every second index of the first axis, the last axis backwards. */
export interface Part {
  readonly shape: readonly number[];
  readonly isFortran: boolean;
  readonly typestr: string;
}

/** Whether the demo can add up elements of this type. */
export function canSum(typestr: string | null): typestr is string {
  return typestr !== null && typestr in readers;
}

/** Summarises `array[::2, ..., ::-1]` (`array[::2]` with one axis, all of it with none) straight from its bytes. */
export function controlSummary(bytes: Uint8Array, { shape, isFortran, typestr }: Part): Summary {
  const reader = readers[typestr];
  if (reader === undefined) throw new TypeError(`Cannot add up elements of type ${typestr}`);
  const { size, parts, read } = reader;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const last = shape.length - 1;
  const extents = shape.map((extent, axis) => (axis === 0 ? Math.ceil(extent / 2) : extent));
  const columns = shape.length < 2 ? 1 : shape[last] ?? 1;
  const exact = typestr === "<i8" || typestr === "<u8";
  const sums = Array.from({ length: parts }, () => new Array<number | bigint>(columns).fill(exact ? 0n : 0));
  const hash = createHash("sha256");
  const staged = new Uint8Array(65536 - 65536 % (size * parts)); // hashing element by element would take minutes
  let waiting = 0;
  const index = shape.map(() => 0);
  for (let remaining = extents.reduce((all, extent) => all * extent, 1); remaining > 0; remaining--) {
    let position = 0;
    for (let i = 0; i < shape.length; i++) {
      const axis = isFortran ? last - i : i;
      const extent = shape[axis] ?? 1;
      const at = index[axis] ?? 0;
      position = position * extent + (axis === 0 ? at * 2 : axis === last ? extent - 1 - at : at);
    }
    const byte = position * size * parts;
    for (let i = 0; i < size * parts; i++) staged[waiting++] = view.getUint8(byte + i);
    if (waiting === staged.length) {
      hash.update(staged);
      waiting = 0;
    }
    for (let part = 0; part < parts; part++) {
      const value = read(view, byte + part * size);
      const column = columns === 1 ? 0 : index[last] ?? 0;
      const row = sums[part] ?? [];
      const sum = row[column] ?? 0;
      row[column] = typeof value === "bigint" ? BigInt(sum) + value : Number(sum) + value;
    }
    for (let axis = last; axis >= 0; axis--) {
      index[axis] = (index[axis] ?? 0) + 1;
      if ((index[axis] ?? 0) < (extents[axis] ?? 0)) break;
      index[axis] = 0;
    }
  }
  hash.update(staged.subarray(0, waiting));
  const [real = [], imaginary] = sums;
  return {
    sha256: hash.digest("hex"),
    sums: real.map((re, column) => (imaginary === undefined ? `${re}` : `${re}+${imaginary[column]}i`)),
  };
}
