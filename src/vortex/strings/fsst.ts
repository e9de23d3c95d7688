/**
 * FSST: a string is a sequence of codes, each of which stands for 1 to 8 bytes; code 255 says that the next byte stands
 * for itself.
 *
 * @module
 */
import type { Allocate } from "../allocator.ts";
import type { Fail } from "./fail.ts";
import { checkTotal } from "./row_numbers.ts";
import { type DataBuffer, type DecodeRows, decodeStrings, type StringViews } from "./string_views.ts";

const ESCAPE = 255;

/** What the codes stand for, two words each. */
export interface FsstSymbols {
  /** How many codes there are. */
  readonly count: number;
  /** Bytes that each of 256 codes stands for; 0 for one that stands for nothing. */
  readonly lengths: Uint8Array;
  /** The first four bytes of each. */
  readonly low: Int32Array;
  /** The next four. */
  readonly high: Int32Array;
  /** Whether all bytes are ASCII: then so is every string without escapes. */
  readonly isAscii: boolean;
}

/**
 * @param symbols 8 bytes for each code, little endian
 * @param lengths how many of them count, 1 to 8
 */
export function fsstSymbols(symbols: Uint8Array, lengths: Uint8Array, fail: Fail): FsstSymbols {
  const count = lengths.length;
  if (count > ESCAPE || symbols.length !== count * 8) {
    fail(`${symbols.length} bytes of symbols and ${count} lengths, expected 8 bytes for each of at most 255 lengths`);
  }
  const view = new DataView(symbols.buffer, symbols.byteOffset, symbols.byteLength);
  const table = { lengths: new Uint8Array(256), low: new Int32Array(256), high: new Int32Array(256) };
  let seen = 0;
  // law vortex/strings/fsstSymbols: vortex/strings/fsst
  for (let code = 0; code < count; code++) {
    const length = lengths[code] ?? 0;
    if (length < 1 || length > 8) fail(`symbol ${code} has ${length} bytes, expected 1 to 8`);
    table.lengths[code] = length;
    table.low[code] = view.getInt32(code * 8, true);
    table.high[code] = view.getInt32(code * 8 + 4, true);
    for (let i = 0; i < length; i++) seen |= symbols[code * 8 + i] ?? 0;
  }
  return { count, ...table, isAscii: seen < 0x80 };
}

/** Strings as codes. */
export interface FsstStrings {
  readonly symbols: FsstSymbols;
  /** The codes of all strings. */
  readonly codes: Uint8Array;
  /** Where the codes of each string begin, and where those of the last end; checked to rise and to be inside. */
  readonly offsets: Uint32Array;
  /** Bytes of each string. */
  readonly lengths: Uint32Array;
}

/**
 * Decodes the strings, each to exactly its length.
 *
 * @param limit bytes of a data buffer
 */
export function decodeFsst(strings: FsstStrings, allocate: Allocate, fail: Fail, limit?: number): StringViews {
  const { symbols, offsets, lengths } = strings;
  checkTotal(lengths, 8 * ((offsets.at(-1) ?? 0) - (offsets[0] ?? 0)), fail);
  // Symbols that are no ASCII may be in any row.
  const known = symbols.isAscii ? 0 : 0x80;
  const decode: DecodeRows = (start, end, data, at) => known | decodeRows(strings, start, end, data, at, fail);
  return decodeStrings(lengths, decode, allocate, fail, limit);
}

/** As {@linkcode DecodeRows}, of the literal bytes. */
function decodeRows(strings: FsstStrings, start: number, end: number, data: DataBuffer, at: number, fail: Fail) {
  const { codes, offsets, lengths, symbols: { lengths: sizes, low, high } } = strings;
  const { words } = data;
  // A code writes 8 bytes whatever it stands for; near the end of the memory a row is decoded byte by byte.
  const roomy = words.byteLength - 8;
  let seen = 0;
  let code = offsets[start] ?? 0;
  // law vortex/strings/decodeRows: vortex/strings/fsst
  for (let row = start; row < end; row++) {
    const stop = offsets[row + 1] ?? 0;
    const expected = at + (lengths[row] ?? 0);
    if (at + (stop - code) * 8 > roomy) {
      seen |= decodeCarefully(strings, row, data.bytes, at, fail);
      code = stop;
      at = expected;
      continue;
    }
    while (code < stop) {
      const symbol = codes[code++] ?? 0;
      const size = sizes[symbol] ?? 0;
      if (size !== 0) {
        words.setInt32(at, low[symbol] ?? 0, true);
        words.setInt32(at + 4, high[symbol] ?? 0, true);
        at += size;
      } else {
        if (symbol !== ESCAPE) unknown(symbol, row, fail);
        if (code === stop) fail(`row ${row} ends in an escape: expected a byte behind it`);
        const literal = codes[code++] ?? 0;
        words.setUint8(at++, literal);
        seen |= literal;
      }
    }
    if (at !== expected) mismatch(row, lengths, at - expected + (lengths[row] ?? 0), fail);
  }
  return seen;
}

/** Decodes one row, and writes nothing behind it. */
function decodeCarefully(strings: FsstStrings, row: number, bytes: Uint8Array, start: number, fail: Fail): number {
  const { codes, offsets, lengths, symbols: { lengths: sizes, low, high } } = strings;
  const [begin, stop] = [offsets[row] ?? 0, offsets[row + 1] ?? 0];
  const end = start + (lengths[row] ?? 0);
  let seen = 0;
  let at = start;
  // law vortex/strings/decodeCarefully: vortex/strings/fsst
  for (let code = begin; code < stop; code++) {
    const symbol = codes[code] ?? 0;
    let size = sizes[symbol] ?? 0;
    if (size === 0 && symbol !== ESCAPE) unknown(symbol, row, fail);
    if (symbol === ESCAPE) size = 1;
    if (at + size > end) mismatch(row, lengths, at + size - start, fail);
    if (symbol !== ESCAPE) {
      for (let i = 0; i < size; i++) bytes[at++] = ((i < 4 ? low : high)[symbol] ?? 0) >>> (i % 4 * 8);
    } else {
      if (++code === stop) fail(`row ${row} ends in an escape: expected a byte behind it`);
      bytes[at++] = codes[code] ?? 0;
      seen |= codes[code] ?? 0;
    }
  }
  if (at !== end) mismatch(row, lengths, at - start, fail);
  return seen;
}

function unknown(symbol: number, row: number, fail: Fail): never {
  return fail(`row ${row} has the code ${symbol}, which stands for nothing`);
}

function mismatch(row: number, lengths: Uint32Array, got: number, fail: Fail): never {
  return fail(`row ${row} decodes to ${got} bytes or more, expected ${lengths[row]}`);
}
