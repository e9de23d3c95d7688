/**
 * Arrow's string views: 16 bytes a row, the length, then either all of at most 12 bytes, or the first 4, the number of
 * a data buffer and the place in it.
 *
 * @module
 */
import type { Allocate, Fail } from "./fail.ts";

/** Strings or binaries as Arrow has them. */
export interface StringViews {
  /** Four words a row. */
  readonly views: Int32Array<ArrayBuffer>;
  /** What the views of more than 12 bytes point into. */
  readonly buffers: readonly Uint8Array<ArrayBuffer>[];
}

/** The longest string that a view has in itself. */
export const INLINE_BYTES = 12;

/** A place in a data buffer is an int32. */
export const MAX_BUFFER_BYTES = 0x7fff_ffff;

/** Bytes behind a data buffer's that may be read and written: words are moved whole, whatever a string's end. */
export const SLACK_BYTES = 16;

/** Rows that share a data buffer. */
export interface Part {
  /** Row numbers. */
  readonly start: number;
  readonly end: number;
  /** Bytes of all of them. */
  readonly bytes: number;
}

/**
 * The rows in parts, one data buffer each: a part ends where the next row would not fit.
 *
 * @param lengths bytes of each row
 * @param limit bytes of a data buffer, at least those of the longest row
 */
export function partsOf(lengths: Uint32Array, fail: Fail, limit = MAX_BUFFER_BYTES): readonly Part[] {
  const parts: Part[] = [];
  let start = 0;
  let bytes = 0;
  // law vortex/strings/partsOf: vortex/strings/string_views
  for (let row = 0; row < lengths.length; row++) {
    const length = lengths[row] ?? 0;
    if (bytes + length > limit) {
      if (length > limit) {
        fail(`row ${row} has ${length} bytes, a string view holds at most ${limit}: it cannot be an Arrow string view`);
      }
      parts.push({ start, end: row, bytes });
      [start, bytes] = [row, 0];
    }
    bytes += length;
  }
  parts.push({ start, end: lengths.length, bytes });
  return parts;
}

/** A data buffer's memory, with slack behind it, and the bytes of it that belong to rows. */
export class DataBuffer {
  /** The buffer as Arrow gets it. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** The same and the slack: words at any byte's address. */
  readonly words: DataView<ArrayBuffer>;

  constructor(size: number, allocate: Allocate) {
    const memory = allocate(size + SLACK_BYTES);
    this.bytes = memory.subarray(0, size);
    this.words = new DataView(memory.buffer, memory.byteOffset, size + SLACK_BYTES);
  }
}

/**
 * Writes the views of rows that follow each other in a data buffer.
 *
 * @param views those of all rows
 * @param start the first row
 * @param end behind the last row
 * @param lengths bytes of each row
 * @param words the data buffer, with at least 8 bytes behind the last row's
 * @param index the data buffer's number
 * @param at where the first row begins in it
 */
export function writeViews(
  views: Int32Array,
  start: number,
  end: number,
  lengths: Uint32Array,
  words: DataView,
  index: number,
  at: number,
): void {
  // law vortex/strings/writeViews: vortex/strings/string_views
  let to = start * 4;
  for (let row = start; row < end; row++, to += 4) {
    const length = lengths[row] ?? 0;
    views[to] = length;
    if (length > INLINE_BYTES) {
      views[to + 1] = words.getInt32(at, true);
      views[to + 2] = index;
      views[to + 3] = at;
    } else if (length > 8) {
      views[to + 1] = words.getInt32(at, true);
      views[to + 2] = words.getInt32(at + 4, true);
      views[to + 3] = words.getInt32(at + 8, true) & keptBits(length - 8);
    } else if (length > 4) {
      views[to + 1] = words.getInt32(at, true);
      views[to + 2] = words.getInt32(at + 4, true) & keptBits(length - 4);
    } else if (length > 0) {
      views[to + 1] = words.getInt32(at, true) & keptBits(length);
    }
    at += length;
  }
}

/** The bits of a word's first 1 to 4 bytes. */
function keptBits(bytes: number): number {
  return -1 >>> (32 - bytes * 8);
}

/**
 * The words of row's lengths or places, of any integer type, as uint32.
 *
 * @param what what they are, for an error
 * @param limit the greatest that may be
 */
export function asUint32(values: IntegerArray, limit: number, what: string, fail: Fail): Uint32Array {
  if (values instanceof Uint32Array) {
    for (let i = 0; i < values.length; i++) if ((values[i] ?? 0) > limit) wrong(values, i, limit, what, fail);
    return values;
  }
  const words = new Uint32Array(values.length);
  // law vortex/strings/asUint32: vortex/strings/string_views
  if (values instanceof BigInt64Array || values instanceof BigUint64Array) {
    const halves = new Uint32Array(values.buffer, values.byteOffset, values.length * 2);
    for (let i = 0; i < words.length; i++) {
      if ((halves[2 * i + 1] ?? 0) !== 0 || (halves[2 * i] ?? 0) > limit) wrong(values, i, limit, what, fail);
      words[i] = halves[2 * i] ?? 0;
    }
    return words;
  }
  for (let i = 0; i < words.length; i++) {
    const value = values[i] ?? 0;
    if (value < 0 || value > limit) wrong(values, i, limit, what, fail);
    words[i] = value;
  }
  return words;
}

/** What children with lengths and places hold. */
export type IntegerArray =
  | Uint8Array
  | Uint16Array
  | Uint32Array
  | BigUint64Array
  | Int8Array
  | Int16Array
  | Int32Array
  | BigInt64Array;

function wrong(values: IntegerArray, index: number, limit: number, what: string, fail: Fail): never {
  return fail(`${what} ${index} is ${values[index]}, expected 0 to ${limit}`);
}

/** Checks that places never fall, and that the last is inside. */
export function checkOffsets(offsets: Uint32Array, end: number, what: string, fail: Fail): void {
  let last = 0;
  let falls = 0;
  // law vortex/strings/checkOffsets: vortex/strings/string_views
  for (let i = 0; i < offsets.length; i++) {
    const offset = offsets[i] ?? 0;
    falls |= Number(offset < last);
    last = offset;
  }
  if (falls !== 0) {
    const at = offsets.findIndex((offset, i) => i > 0 && offset < (offsets[i - 1] ?? 0));
    fail(
      `${what} fall from ${offsets[at - 1]} to ${offsets[at]} at ${at}: expected none to be less than the one before`,
    );
  }
  if (last > end) fail(`the last of the ${what} is ${last}, but there are only ${end}`);
}
