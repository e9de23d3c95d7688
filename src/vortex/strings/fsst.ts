/**
 * FSST: a string is a sequence of 8-bit codes, each of which stands for 1 to 8 bytes; code 255 makes the next byte a
 * literal.
 *
 * @module
 */
import type { Fail } from "../error.ts";
import { type CodeTable, ESCAPE } from "./codes.ts";

/** Bytes per symbol in the table. */
const SYMBOL_BYTES = 8;

// law vortex/strings/fsstTable: vortex/strings/string_views, vortex/strings/malformed
/**
 * Builds the table of the codes.
 *
 * @param symbols 8 bytes per code
 * @param sizes how many of each code's bytes are used, 1 to 8
 */
export function fsstTable(symbols: Uint8Array, sizes: Uint8Array, fail: Fail): CodeTable {
  const count = sizes.length;
  if (count > ESCAPE || symbols.length !== count * SYMBOL_BYTES) {
    fail(`${symbols.length} bytes of symbols and ${count} lengths, expected 8 bytes for each of at most 255 lengths`);
  }
  let seen = 0;
  for (let code = 0; code < count; code++) {
    const size = sizes[code] ?? 0;
    if (size < 1 || size > SYMBOL_BYTES) fail(`symbol ${code} has ${size} bytes, expected 1 to 8`);
    for (let i = 0; i < size; i++) seen |= symbols[code * SYMBOL_BYTES + i] ?? 0;
  }
  return { sizes, symbols, symbolBytes: SYMBOL_BYTES, hasEscape: true, isAscii: seen < 0x80 };
}
