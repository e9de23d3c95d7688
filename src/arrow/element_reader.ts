/**
 * Reads the elements of an Arrow array in host memory as JavaScript values.
 *
 * @module
 */
import { decodeText, littleEndian } from "../ffi/mod.ts";
import { DType } from "../layout/mod.ts";
import { type ArrowType, bitOf, bitsOf, childrenOf, empty, formatOf, hostBytes } from "../cdata/mod.ts";
import type { ArrowArray } from "./array.ts";
import { ExchangeError } from "../order/mod.ts";

/** A value of an element. See {@linkcode ArrowArray.get}. */
export type ArrowValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | Uint8Array
  | readonly ArrowValue[]
  | { readonly [field: string]: ArrowValue };

/** Reads the element at a position in the buffers, which includes the array's offset. The element is not null. */
export type Reader = (at: number) => ArrowValue;

// law arrow/makeReader: arrow/array, view/arrow
/** The reader of an array's elements. */
export function makeReader(array: ArrowArray): Reader {
  const { type } = array;
  switch (type.kind) {
    case "null":
      return () => null;
    case "bool": {
      const bits = bufferBytes(array, 1);
      return (at) => bitOf(bits, at);
    }
    case "int":
    case "uint":
    case "float":
      return numberReader(array, formatOf(type));
    case "date":
    case "time":
    case "timestamp":
    case "duration":
      return numberReader(array, bitsOf(type) === 32 ? "i" : "l");
    case "decimal":
      return decimalReader(bufferBytes(array, 1), type.bits / 8, type.scale);
    case "interval":
      return intervalReader(bufferBytes(array, 1), type.unit);
    case "fixed_size_binary": {
      const bytes = bufferBytes(array, 1);
      return (at) => copyOf(bytes, at * type.width, type.width);
    }
    case "utf8":
    case "binary": {
      const read = type.offsets === "view" ? viewedBytes(array) : slicedBytes(array, type.offsets);
      return type.kind === "utf8" ? (at) => decodeText(read(at)) : (at) => read(at).slice();
    }
    case "list": {
      const slots = ranges(array, type.offsets);
      return (at) => elements(childOf(array), ...slots(at));
    }
    case "list_view": {
      const slots = viewedRanges(array, type.offsets);
      return (at) => elements(childOf(array), ...slots(at));
    }
    case "fixed_size_list":
      return (at) => elements(childOf(array), at * type.size, (at + 1) * type.size);
    case "map":
      return mapReader(array);
    case "struct": {
      const names = childrenOf(type).map(({ name }) => name);
      const pairs = (at: number) => array.children.map((child, i) => [names[i] ?? "", child.get(at)] as const);
      // Of several fields with the same name, an object would keep only the last.
      return new Set(names).size === names.length ? (at) => Object.fromEntries(pairs(at)) : pairs;
    }
    case "run_end_encoded":
      return runReader(array);
    case "dictionary":
      return dictionaryReader(array, formatOf(type.index));
  }
}

function bufferBytes({ buffers }: ArrowArray, index: number): DataView<ArrayBuffer> {
  const buffer = buffers[index] ?? null;
  return buffer === null ? empty : hostBytes(buffer);
}

function numberReader(array: ArrowArray, format: string): (at: number) => number | bigint {
  const dtype = DType.from(format);
  const bytes = bufferBytes(array, 1);
  return (at) => {
    const value = dtype.read(bytes, at * dtype.itemsize);
    if (typeof value === "number" || typeof value === "bigint") return value;
    throw new ExchangeError(`Cannot read ${dtype.name} as a number`);
  };
}

function decimalReader(bytes: DataView, width: number, scale: number): Reader {
  return (at) => {
    let value = 0n;
    for (let i = width - 1; i >= 0; i--) value = value << 8n | BigInt(bytes.getUint8(at * width + i));
    return decimalText(BigInt.asIntN(width * 8, value), scale);
  };
}

// law arrow/decimalText: arrow/array, view/arrow
/** An integer times ten to the power of minus `scale`, written out exactly, with all of its decimal places. */
export function decimalText(value: bigint, scale: number): string {
  if (scale <= 0) return `${value}${value === 0n ? "" : "0".repeat(-scale)}`;
  const digits = `${value < 0n ? -value : value}`.padStart(scale + 1, "0");
  return `${value < 0n ? "-" : ""}${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
}

function intervalReader(bytes: DataView, unit: (ArrowType & { readonly kind: "interval" })["unit"]): Reader {
  switch (unit) {
    case "months":
      return (at) => bytes.getInt32(at * 4, littleEndian);
    case "days_milliseconds":
      return (at) => ({
        days: bytes.getInt32(at * 8, littleEndian),
        milliseconds: bytes.getInt32(at * 8 + 4, littleEndian),
      });
    case "months_days_nanoseconds":
      return (at) => ({
        months: bytes.getInt32(at * 16, littleEndian),
        days: bytes.getInt32(at * 16 + 4, littleEndian),
        nanoseconds: bytes.getBigInt64(at * 16 + 8, littleEndian),
      });
  }
}

/** Reads the integers of `bits` bits in a buffer. */
function integers(array: ArrowArray, index: number, bits: 32 | 64): (at: number) => number {
  const bytes = bufferBytes(array, index);
  return bits === 32
    ? (at) => bytes.getInt32(at * 4, littleEndian)
    : (at) => Number(bytes.getBigInt64(at * 8, littleEndian));
}

// law arrow/viewedRanges: view/arrow
/** Where an element's parts begin and end in the child, by its offset and its size. */
function viewedRanges(array: ArrowArray, bits: 32 | 64): (at: number) => [start: number, end: number] {
  const [offset, size] = [integers(array, 1, bits), integers(array, 2, bits)];
  return (at) => {
    const [start, length] = [offset(at), size(at)];
    if (start >= 0 && length >= 0) return [start, start + length];
    throw new ExchangeError(`Cannot read an Arrow ${array.type.kind}: it has ${length} elements from ${start} on`);
  };
}

// law arrow/ranges: arrow/array, view/arrow
/** Where an element's parts begin and end in the buffer or child, by the offsets. */
function ranges(array: ArrowArray, bits: 32 | 64): (at: number) => [start: number, end: number] {
  const offset = integers(array, 1, bits);
  return (at) => {
    const [start, end] = [offset(at), offset(at + 1)];
    if (start >= 0 && start <= end) return [start, end];
    throw new ExchangeError(`Cannot read an Arrow ${array.type.kind}: its offsets go from ${start} to ${end}`);
  };
}

function slicedBytes(array: ArrowArray, bits: 32 | 64): (at: number) => Uint8Array<ArrayBuffer> {
  const slots = ranges(array, bits);
  const data = bufferBytes(array, 2);
  return (at) => part(data, ...slots(at));
}

/**
 * Reads views of 16 bytes: a length, then either up to 12 bytes in place, or 4 bytes, the index of a buffer and the
 * offset of all bytes in it.
 */
function viewedBytes(array: ArrowArray): (at: number) => Uint8Array<ArrayBuffer> {
  const views = bufferBytes(array, 1);
  const data = array.buffers.slice(2, -1).map((_, i) => bufferBytes(array, 2 + i));
  return (at) => {
    const length = views.getInt32(at * 16, littleEndian);
    if (length >= 0 && length <= 12) return part(views, at * 16 + 4, at * 16 + 4 + length);
    const index = views.getInt32(at * 16 + 8, littleEndian);
    const start = views.getInt32(at * 16 + 12, littleEndian);
    const buffer = data[index];
    if (length >= 0 && start >= 0 && buffer !== undefined) return part(buffer, start, start + length);
    throw new ExchangeError(`Cannot read an Arrow view of ${length} bytes from byte ${start} of data buffer ${index}`);
  };
}

function part(bytes: DataView<ArrayBuffer>, start: number, end: number): Uint8Array<ArrayBuffer> {
  if (end > bytes.byteLength) {
    throw new ExchangeError(`Cannot read bytes ${start} to ${end} of an Arrow buffer of ${bytes.byteLength}`);
  }
  return new Uint8Array(bytes.buffer, bytes.byteOffset + start, end - start);
}

function copyOf(bytes: DataView<ArrayBuffer>, start: number, length: number): Uint8Array {
  return part(bytes, start, start + length).slice();
}

function childOf({ children: [child], type }: ArrowArray): ArrowArray {
  if (child === undefined) throw new ExchangeError(`Cannot read an Arrow ${type.kind} without a child`);
  return child;
}

// law arrow/elements: arrow/array, view/arrow
function elements(child: ArrowArray, start: number, end: number): ArrowValue[] {
  if (end > child.length) {
    throw new ExchangeError(`Cannot read elements ${start} to ${end} of an Arrow list's child of ${child.length}`);
  }
  checkCount(end - start);
  return Array.from({ length: end - start }, (_, i) => child.get(start + i));
}

// law arrow/checkCount: arrow/array
/** @throws {RangeError} if these are more values than an array of JavaScript can have */
export function checkCount(count: number): void {
  if (count < 2 ** 32) return;
  throw new RangeError(
    `Cannot make an array of ${count} Arrow values: expected fewer than 2^32. get(index) returns one, of a list's ` +
      "child, too",
  );
}

// law arrow/mapReader: arrow/array, view/arrow
function mapReader(array: ArrowArray): Reader {
  const slots = ranges(array, 32);
  const entries = childOf(array);
  return (at) => {
    const [start, end] = slots(at);
    if (end > entries.length) {
      throw new ExchangeError(`Cannot read entries ${start} to ${end} of an Arrow map's child of ${entries.length}`);
    }
    // Keys and values are at the entries' own offset: an entry is never null.
    const [keys, values] = entries.children;
    return Array.from({ length: end - start }, (_, i) => {
      const entry = entries.offset + start + i;
      return [keys?.get(entry) ?? null, values?.get(entry) ?? null];
    });
  };
}

function dictionaryReader(array: ArrowArray, format: string): Reader {
  const index = numberReader(array, format);
  const { dictionary } = array;
  return (at) => {
    const entry = Number(index(at));
    if (dictionary !== null && entry >= 0 && entry < dictionary.length) return dictionary.get(entry);
    throw new ExchangeError(`Cannot read entry ${entry} of an Arrow dictionary of ${dictionary?.length ?? 0}`);
  };
}

// law arrow/runReader: arrow/run_ends
/** The value of the first run that ends after an element. */
function runReader({ children: [ends, values] }: ArrowArray): Reader {
  if (ends === undefined || values === undefined) throw new ExchangeError("Cannot read runs without ends and values");
  return (at) => {
    let [low, high] = [0, ends.length];
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if (Number(ends.get(middle)) > at) high = middle;
      else low = middle + 1;
    }
    if (low < ends.length) return values.get(low);
    throw new ExchangeError(`Cannot read element ${at} of an Arrow array whose runs end before it`);
  };
}
