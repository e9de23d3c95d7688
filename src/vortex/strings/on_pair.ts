/**
 * OnPair: a string is a sequence of codes of 16 bits, each of which stands for 1 to 16 bytes.
 *
 * @module
 */
import type { Allocate } from "../allocator.ts";
import type { Fail } from "./fail.ts";
import { checkTotal } from "./row_numbers.ts";
import { type DataBuffer, type DecodeRows, decodeStrings, type StringViews } from "./string_views.ts";

/** The most bytes that a code stands for. */
const TOKEN_BYTES = 16;

/** The most codes that 16 bits have. */
export const MAX_TOKENS = 0x1_0000;

/** What the codes stand for. */
export interface OnPairTokens {
  /** Bytes of each. */
  readonly lengths: Uint8Array;
  /** The bytes of each, in four words, zeros behind them. */
  readonly words: Int32Array;
  /** Whether all bytes are ASCII: then so is every string. */
  readonly isAscii: boolean;
}

/**
 * @param dictionary all tokens, one behind the other
 * @param offsets where each begins and where the last ends: checked not to fall and to be inside
 */
export function onPairTokens(dictionary: Uint8Array, offsets: Uint32Array, fail: Fail): OnPairTokens {
  const count = Math.max(0, offsets.length - 1);
  if (count > MAX_TOKENS) fail(`a dictionary of ${count} tokens, expected at most ${MAX_TOKENS}`);
  const lengths = new Uint8Array(count);
  const bytes = new Uint8Array(count * TOKEN_BYTES);
  let seen = 0;
  // law vortex/strings/onPairTokens: vortex/strings/on_pair, vortex/strings/malformed
  for (let token = 0; token < count; token++) {
    const start = offsets[token] ?? 0;
    const length = (offsets[token + 1] ?? 0) - start;
    if (length < 1 || length > TOKEN_BYTES) fail(`token ${token} has ${length} bytes, expected 1 to ${TOKEN_BYTES}`);
    lengths[token] = length;
    for (let i = 0; i < length; i++) {
      const byte = dictionary[start + i] ?? 0;
      bytes[token * TOKEN_BYTES + i] = byte;
      seen |= byte;
    }
  }
  return { lengths, words: new Int32Array(bytes.buffer), isAscii: seen < 0x80 };
}

/** Strings as codes. */
export interface OnPairStrings {
  readonly tokens: OnPairTokens;
  /** The codes of all strings. */
  readonly codes: Uint16Array;
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
export function decodeOnPair(strings: OnPairStrings, allocate: Allocate, fail: Fail, limit?: number): StringViews {
  const { tokens, offsets, lengths } = strings;
  checkTotal(lengths, TOKEN_BYTES * ((offsets.at(-1) ?? 0) - (offsets[0] ?? 0)), fail);
  const known = tokens.isAscii ? 0 : 0x80;
  const decode: DecodeRows = (start, end, data, at) => {
    decodeRows(strings, start, end, data, at, fail);
    return known;
  };
  return decodeStrings(lengths, decode, allocate, fail, limit);
}

function decodeRows(
  { tokens: { lengths: sizes, words: tokens }, codes, offsets, lengths }: OnPairStrings,
  start: number,
  end: number,
  data: DataBuffer,
  at: number,
  fail: Fail,
): void {
  const { words } = data;
  // A code writes 8 or 16 bytes whatever it stands for; near the end of the memory a row is decoded byte by byte.
  const roomy = words.byteLength - TOKEN_BYTES;
  let code = offsets[start] ?? 0;
  // law vortex/strings/OnPair.decodeRows: vortex/strings/on_pair, vortex/strings/malformed
  for (let row = start; row < end; row++) {
    const stop = offsets[row + 1] ?? 0;
    const begin = at;
    const isRoomy = at + (stop - code) * TOKEN_BYTES <= roomy;
    const limit = begin + (lengths[row] ?? 0);
    for (; code < stop; code++) {
      const token = codes[code] ?? 0;
      const size = sizes[token] ?? 0;
      if (size === 0) fail(`row ${row} has the code ${token}, and there are only ${sizes.length}`);
      const from = token * 4;
      if (isRoomy) {
        words.setInt32(at, tokens[from] ?? 0, true);
        words.setInt32(at + 4, tokens[from + 1] ?? 0, true);
        if (size > 8) {
          words.setInt32(at + 8, tokens[from + 2] ?? 0, true);
          words.setInt32(at + 12, tokens[from + 3] ?? 0, true);
        }
      } else {
        if (at + size > limit) mismatch(row, lengths, at + size - begin, fail);
        for (let i = 0; i < size; i++) words.setUint8(at + i, (tokens[from + (i >> 2)] ?? 0) >>> (i % 4 * 8));
      }
      at += size;
    }
    if (at !== limit) mismatch(row, lengths, at - begin, fail);
  }
}

function mismatch(row: number, lengths: Uint32Array, got: number, fail: Fail): never {
  return fail(`row ${row} decodes to ${got} bytes or more, expected ${lengths[row]}`);
}
