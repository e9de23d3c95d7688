/**
 * Strings as sequences of codes, each of which stands for a few bytes by a table.
 *
 * @module
 */
import type { Allocate } from "../allocator.ts";
import { CodeLoop } from "./code_loop.ts";
import type { Fail } from "./fail.ts";
import { checkTotal } from "./row_numbers.ts";
import { type DataBuffer, decodeStrings, type StringViews } from "./string_views.ts";

/** Decoded strings, and whether it is known that they are all ASCII. */
export interface DecodedStrings extends StringViews {
  readonly isAscii: boolean;
}

/** The code that says that the next one is a byte that stands for itself, in a table that has it. */
export const ESCAPE = 255;

/** What the codes stand for. */
export interface CodeTable {
  /** Bytes of each symbol: 1 to `symbolBytes`. */
  readonly sizes: Uint8Array;
  /** The symbols, `symbolBytes` for each; what is behind a symbol's own bytes is arbitrary. */
  readonly symbols: Uint8Array;
  readonly symbolBytes: 8 | 16;
  /** Whether there is an {@linkcode ESCAPE}. */
  readonly hasEscape: boolean;
  /** Whether all symbols are ASCII: then so is every string without escapes. */
  readonly isAscii: boolean;
}

/** Strings as codes. */
export interface CodedStrings {
  readonly table: CodeTable;
  /** The codes of all strings. */
  readonly codes: Uint8Array | Uint16Array;
  /** Where the codes of each string begin, and where those of the last end; checked not to fall and to be inside. */
  readonly offsets: Uint32Array;
  /** Bytes of each string. */
  readonly lengths: Uint32Array;
}

/**
 * Decodes the strings, each to exactly its length.
 *
 * @param limit bytes of a data buffer
 */
export function decodeCodes(strings: CodedStrings, allocate: Allocate, fail: Fail, limit?: number): DecodedStrings {
  const { table, offsets, lengths } = strings;
  const total = checkTotal(lengths, table.symbolBytes * ((offsets.at(-1) ?? 0) - (offsets[0] ?? 0)), fail);
  const loop = new CodeLoop(strings);
  // Symbols that are no ASCII may be in any row.
  let seen = table.isAscii ? 0 : 0x80;
  const decodeRows = (start: number, end: number, data: DataBuffer, from: number): void => {
    let at = from;
    for (let row = start; row < end;) {
      const done = loop.run(row, end, data.bytes, at);
      seen |= done.seen;
      at = done.at;
      row = done.row;
      if (row === end) break;
      // The loop has stopped at a row that is wrong, or too long for its memory.
      seen |= decodeRow(strings, row, data.bytes, at, fail);
      at += lengths[row++] ?? 0;
    }
  };
  const views = decodeStrings(lengths, total, decodeRows, allocate, fail, limit);
  return { ...views, isAscii: seen < 0x80 };
}

/** Decodes one row, byte by byte. @returns all literal bytes, or'ed */
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
    if (isEscape && ++code === stop) fail(`row ${row} ends in an escape: expected a byte behind it`);
    const size = isEscape ? 1 : sizes[symbol] ?? 0;
    if (size === 0) fail(`row ${row} has the code ${symbol}, which stands for nothing`);
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
