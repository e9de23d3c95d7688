/**
 * Arrow's string views: 16 bytes per row, with the length, then either the string inline if it has at most 12 bytes, or
 * its first 4 bytes, the index of a data buffer and the offset in it.
 *
 * @module
 */
import { INLINE_BYTES, MAX_BUFFER_BYTES } from "../canonical.ts";
import type { Fail } from "../error.ts";
import type { Allocate, Bytes } from "../wire/source.ts";

/** Strings or binaries in Arrow's layout. */
export interface StringViews {
  /** 16 bytes per row. */
  readonly views: Bytes;
  /** The concatenated bytes of all rows; views of more than 12 bytes point into them. */
  readonly buffers: readonly Bytes[];
}

/** Readable bytes after a data buffer: a view's words are read whole, wherever a string ends. */
const SLACK_BYTES = 16;

/** Rows that share a data buffer. */
export interface Part {
  /** Row numbers. */
  readonly start: number;
  readonly end: number;
  /** The total size of the rows in bytes. */
  readonly bytes: number;
}

/**
 * Splits rows into parts, one data buffer each: a part ends where the next row would not fit.
 *
 * @param lengths the size of each row in bytes
 * @param total the size of all rows in bytes
 * @param limit the most bytes in a data buffer, at least those of the longest row
 */
export function partsOf(lengths: Uint32Array, total: number, fail: Fail, limit = MAX_BUFFER_BYTES): readonly Part[] {
  if (total <= limit && lengths.length > 0) return [{ start: 0, end: lengths.length, bytes: total }];
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
  if (start < lengths.length) parts.push({ start, end: lengths.length, bytes });
  return parts;
}

/** A data buffer's memory followed by slack, and the bytes in it that belong to rows. */
export class DataBuffer {
  /** The buffer as passed to Arrow. */
  readonly bytes: Bytes;
  /** The same and the slack, for unaligned reads of words. */
  readonly words: DataView<ArrayBuffer>;

  constructor(size: number, allocate: Allocate) {
    const memory = allocate(size + SLACK_BYTES);
    this.bytes = memory.subarray(0, size);
    this.words = new DataView(memory.buffer, memory.byteOffset, size + SLACK_BYTES);
  }
}

/** Writes at most {@linkcode MAX_ROWS} rows to a data buffer, starting at offset `at`. */
export type DecodeRows = (start: number, end: number, data: DataBuffer, at: number) => void;

/** The most rows decoded before their views are written, while their bytes are still in cache. */
export const MAX_ROWS = 2048;

/**
 * Decodes strings, each to exactly its length, and writes their views.
 *
 * @param lengths the size of each row in bytes
 * @param total the size of all rows in bytes
 * @param limit the most bytes in a data buffer
 */
export function decodeStrings(
  lengths: Uint32Array,
  total: number,
  decodeRows: DecodeRows,
  allocate: Allocate,
  fail: Fail,
  limit?: number,
): StringViews {
  const views = allocate(lengths.length * 16);
  const words = new Int32Array(views.buffer, views.byteOffset, lengths.length * 4);
  const buffers: Bytes[] = [];
  for (const { start, end, bytes } of partsOf(lengths, total, fail, limit)) {
    const data = new DataBuffer(bytes, allocate);
    let at = 0;
    for (let row = start; row < end; row += MAX_ROWS) {
      const last = Math.min(row + MAX_ROWS, end);
      const from = at;
      for (let i = row; i < last; i++) at += lengths[i] ?? 0;
      decodeRows(row, last, data, from);
      writeViews(words, row, last, lengths, data.words, buffers.length, from);
    }
    buffers.push(data.bytes);
  }
  return { views, buffers };
}

/**
 * Writes the views of contiguous rows in a data buffer.
 *
 * @param views the views of all rows
 * @param start the first row
 * @param end one past the last row
 * @param lengths the size of each row in bytes
 * @param words the data buffer, with at least 8 bytes after the last row's
 * @param index the data buffer's index
 * @param at where the first row begins in it
 */
function writeViews(
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

/** A mask of a word's first 1 to 4 bytes. */
function keptBits(bytes: number): number {
  return -1 >>> (32 - bytes * 8);
}
