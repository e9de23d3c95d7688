/**
 * Strings as sequences of codes, each of which a table maps to a few bytes.
 *
 * @module
 */
import type { Fail } from "../error.ts";
import type { Allocate } from "../wire/source.ts";
import { CodeLoop } from "./code_loop.ts";
import { checkTotal } from "./row_numbers.ts";
import { type DataBuffer, decodeStrings, type StringViews } from "./string_views.ts";

/** Decoded strings, and whether they are all known to be ASCII. */
export interface DecodedStrings extends StringViews {
  readonly isAscii: boolean;
}

/** In tables with an escape, the code that makes the next code a literal byte. */
export const ESCAPE = 255;

/** A table of the symbols that codes stand for. */
export interface CodeTable {
  /** The size of each symbol in bytes: 1 to `symbolBytes`. */
  readonly sizes: Uint8Array;
  /** The symbols, `symbolBytes` each; the padding after a symbol is arbitrary. */
  readonly symbols: Uint8Array;
  readonly symbolBytes: 8 | 16;
  /** Whether there is an {@linkcode ESCAPE}. */
  readonly hasEscape: boolean;
  /** Whether all symbols are ASCII, and thus every string without escapes. */
  readonly isAscii: boolean;
}

/** Strings encoded as codes. */
export interface CodedStrings {
  readonly table: CodeTable;
  /** The codes of all strings. */
  readonly codes: Uint8Array | Uint16Array;
  /** Where each string's codes begin, and where the last string's end; checked to be non-decreasing and in bounds. */
  readonly offsets: Uint32Array;
  /** The size of each string in bytes. */
  readonly lengths: Uint32Array;
}

/**
 * Decodes the strings, each to exactly its length.
 *
 * @param limit the most bytes in a data buffer
 */
export function decodeCodes(strings: CodedStrings, allocate: Allocate, fail: Fail, limit?: number): DecodedStrings {
  const { table, offsets, lengths } = strings;
  const total = checkTotal(lengths, table.symbolBytes * ((offsets.at(-1) ?? 0) - (offsets[0] ?? 0)), fail);
  const loop = new CodeLoop(strings);
  // Non-ASCII symbols may be in any row.
  let seen = table.isAscii ? 0 : 0x80;
  const decodeRows = (start: number, end: number, data: DataBuffer, from: number): void => {
    let at = from;
    for (let row = start; row < end;) {
      const done = loop.run(row, end, data.bytes, at);
      seen |= done.seen;
      at = done.at;
      row = done.row;
      if (row === end) break;
      // The loop stopped at a row that is invalid, or too long for its memory.
      seen |= decodeRow(strings, row, data.bytes, at, fail);
      at += lengths[row++] ?? 0;
    }
  };
  const views = decodeStrings(lengths, total, decodeRows, allocate, fail, limit);
  return { ...views, isAscii: seen < 0x80 };
}

/** Decodes one row, byte by byte. @returns all literal bytes, OR-ed together */
function decodeRow(strings: CodedStrings, row: number, out: Uint8Array, start: number, fail: Fail): number {
  const { codes, offsets, lengths, table: { sizes, symbols, symbolBytes, hasEscape } } = strings;
  const length = lengths[row] ?? 0;
  const stop = offsets[row + 1] ?? 0;
  let seen = 0;
  let at = 0;
  // law vortex/strings/decodeRow: vortex/strings/string_views, vortex/strings/malformed
  for (let code = offsets[row] ?? 0; code < stop; code++) {
    const symbol = codes[code] ?? 0;
    const isEscape = hasEscape && symbol === ESCAPE;
    if (isEscape && ++code === stop) fail(`row ${row} ends in an escape: expected a byte after it`);
    const size = isEscape ? 1 : sizes[symbol] ?? 0;
    if (size === 0) fail(`row ${row} has the code ${symbol}, which is unassigned`);
    if (at + size > length) fail(`row ${row} decodes to ${at + size} bytes or more, expected ${length}`);
    if (isEscape) {
      const literal = codes[code] ?? 0;
      out[start + at] = literal;
      seen |= literal;
    } else {
      for (let i = 0; i < size; i++) out[start + at + i] = symbols[symbol * symbolBytes + i] ?? 0;
    }
    at += size;
  }
  if (at !== length) fail(`row ${row} decodes to ${at} bytes, expected ${length}`);
  return seen;
}
