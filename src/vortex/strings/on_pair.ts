/**
 * OnPair: a string is a sequence of 16-bit codes, each of which stands for 1 to 16 bytes.
 *
 * @module
 */
import type { Fail } from "../error.ts";
import type { CodeTable } from "./codes.ts";

/** The most bytes that a code stands for. */
const TOKEN_BYTES = 16;

/** The number of 16-bit codes. */
export const MAX_TOKENS = 0x1_0000;

// law vortex/strings/onPairTable: vortex/strings/string_views, vortex/strings/malformed
/**
 * Builds the table of the codes.
 *
 * @param dictionary all tokens, concatenated
 * @param offsets where each token begins and where the last ends: checked to be non-decreasing and in bounds
 */
export function onPairTable(dictionary: Uint8Array, offsets: Uint32Array, fail: Fail): CodeTable {
  const count = offsets.length - 1;
  if (count > MAX_TOKENS) fail(`a dictionary of ${count} tokens, expected at most ${MAX_TOKENS}`);
  const sizes = new Uint8Array(count);
  const symbols = new Uint8Array(count * TOKEN_BYTES);
  let seen = 0;
  for (let token = 0; token < count; token++) {
    const start = offsets[token] ?? 0;
    const size = (offsets[token + 1] ?? 0) - start;
    if (size < 1 || size > TOKEN_BYTES) fail(`token ${token} has ${size} bytes, expected 1 to ${TOKEN_BYTES}`);
    sizes[token] = size;
    for (let i = 0; i < size; i++) {
      const byte = dictionary[start + i] ?? 0;
      symbols[token * TOKEN_BYTES + i] = byte;
      seen |= byte;
    }
  }
  return { sizes, symbols, symbolBytes: TOKEN_BYTES, hasEscape: false, isAscii: seen < 0x80 };
}
