/**
 * Which buffers an array of a type has, and how many bytes each needs. Pure: a {@linkcode Probe} reads the buffer
 * contents on which sizes depend.
 *
 * @module
 */
import { type ArrowType, storageOf } from "./type.ts";

/** Reads the contents of an array's buffers on which the sizes of others depend. */
export interface Probe {
  /** Entry `index` of the buffer of offsets, which have `bits` bits. */
  offset(index: number, bits: 32 | 64): bigint;
  /** Bytes of the data buffers of an array of views. */
  dataSizes(): readonly bigint[];
}

/** An array without its contents. */
interface Extent {
  readonly length: number;
  readonly offset: number;
}

/** The memory that an array needs. */
interface Needs {
  /** Bytes of each buffer, in order. */
  readonly bytes: readonly number[];
  /** The minimum number of elements of each child. */
  readonly childLength: number;
}

/** The buffer of offsets of text, binary and lists; the values of all others. */
export const secondBuffer = 1;

/** Bits of an element; null for types whose elements differ in size. */
export function bitsOf(type: ArrowType): number | null {
  switch (type.kind) {
    case "bool":
      return 1;
    case "int":
    case "uint":
    case "float":
    case "decimal":
      return type.bits;
    case "fixed_size_binary":
      return 8 * type.width;
    case "date":
      return type.unit === "day" ? 32 : 64;
    case "time":
      return type.unit === "second" || type.unit === "millisecond" ? 32 : 64;
    case "timestamp":
    case "duration":
      return 64;
    case "interval":
      return { months: 32, days_milliseconds: 64, months_days_nanoseconds: 128 }[type.unit];
    case "dictionary":
      return type.index.bits;
    default:
      return null;
  }
}

/** The number of buffers of an array; for views, which have a buffer for each piece of data, the minimum. */
export function bufferCount(type: ArrowType): number {
  const stored = storageOf(type);
  switch (stored.kind) {
    case "null":
    case "run_end_encoded":
      return 0;
    case "struct":
    case "fixed_size_list":
      return 1;
    case "utf8":
    case "binary":
    case "list_view":
      return 3; // validity, offsets, data or sizes; or validity, views, sizes of the data buffers between them
    default:
      return 2;
  }
}

/** Whether an array has a data buffer for each piece of data. */
export function hasViews(type: ArrowType): boolean {
  return (type.kind === "utf8" || type.kind === "binary") && type.offsets === "view";
}

/** Whether an array has a buffer of offsets. */
export function hasOffsets(type: ArrowType): boolean {
  return type.kind === "list" || type.kind === "map" ||
    ((type.kind === "utf8" || type.kind === "binary") && type.offsets !== "view");
}

/**
 * Whether an array may have a validity bitmap: all but those of type null, and run-end encoded ones, whose values have
 * the nulls.
 */
export function hasValidity(type: ArrowType): boolean {
  return type.kind !== "null" && type.kind !== "run_end_encoded";
}

/**
 * The memory that an array of a type needs. An array without elements needs nothing, except for views, whose data
 * buffer sizes consumers read anyway.
 *
 * @param buffers the number of its buffers
 * @throws {RangeError} if it needs more bytes or elements than 2^53 - 1, or its offsets are negative or decrease
 */
export function needsOf(type: ArrowType, extent: Extent, buffers: number, probe: Probe): Needs {
  if (extent.length === 0 && !hasViews(type)) {
    return { bytes: Array.from({ length: buffers }, () => 0), childLength: 0 };
  }
  const { kind } = type;
  if (kind === "null") return { bytes: [], childLength: 0 };
  if (kind === "run_end_encoded") return { bytes: [], childLength: 1 }; // run ends are checked when read
  const end = safe(extent.offset + extent.length, "elements");
  const validity = Math.ceil(end / 8);
  const bits = bitsOf(type);
  if (bits !== null) return { bytes: [validity, Math.ceil(safe(end * bits, "bits") / 8)], childLength: 0 };
  switch (type.kind) {
    case "struct":
      return { bytes: [validity], childLength: end };
    case "fixed_size_list":
      return { bytes: [validity], childLength: safe(end * type.size, "elements") };
    case "list":
      return {
        bytes: [validity, offsetBytes(end, type.offsets)],
        childLength: lastOffset(extent, type.offsets, probe),
      };
    case "list_view": {
      // Lists may lie anywhere in the child, in any order: each is checked when it is read.
      const each = safe(end * (type.offsets / 8), "bytes of offsets");
      return { bytes: [validity, each, each], childLength: 0 };
    }
    case "map":
      return { bytes: [validity, offsetBytes(end, 32)], childLength: lastOffset(extent, 32, probe) };
    default:
      return { bytes: [validity, ...textNeeds(type, extent, end, probe)], childLength: 0 };
  }
}

function textNeeds(type: ArrowType, extent: Extent, end: number, probe: Probe): number[] {
  if (type.kind !== "utf8" && type.kind !== "binary") throw new RangeError(`${type.kind} is not text`);
  if (type.offsets !== "view") return [offsetBytes(end, type.offsets), lastOffset(extent, type.offsets, probe)];
  const sizes = probe.dataSizes().map((size) => safe(Number(size), "bytes of data"));
  return [safe(end * 16, "bytes"), ...sizes, sizes.length * 8];
}

// law cdata/offsetBytes: view/arrow, arrow/array, cdata/fuzz
function offsetBytes(end: number, bits: 32 | 64): number {
  return safe((end + 1) * (bits / 8), "bytes of offsets");
}

// law cdata/lastOffset: view/arrow, arrow/array, cdata/fuzz
function lastOffset({ length, offset }: Extent, bits: 32 | 64, probe: Probe): number {
  const [first, last] = [probe.offset(offset, bits), probe.offset(offset + length, bits)];
  if (first < 0n || last < first) {
    throw new RangeError(`its offsets go from ${first} to ${last}: expected them to be at least 0 and not to decrease`);
  }
  return safe(Number(last), "elements");
}

// law cdata/safe: view/arrow, arrow/array, cdata/fuzz
function safe(value: number, what: string): number {
  if (Number.isSafeInteger(value) && value >= 0) return value;
  throw new RangeError(`it has ${value} ${what}: expected 0 to 2^53 - 1`);
}
