import { DataError } from "./data_error.ts";
import { type Indices, isValid, smallWords, type Validity, words32 } from "./words.ts";

// law vortex/numeric.takeInto: vortex/numeric/take
/**
 * Looks words up: `out[i] = values[codes[i]]`. The code of a null row may be anything, and yields an arbitrary value or
 * 0.
 *
 * @param width bytes of a word: 1, 2 or a multiple of 4
 * @throws {DataError} if the code of a valid row is out of bounds
 */
export function takeInto(
  out: Uint8Array,
  values: Uint8Array,
  width: number,
  codes: Indices,
  validity: Validity = null,
): void {
  const count = values.length / width;
  for (let row = 0; row < codes.length; row++) {
    if ((codes[row] ?? 0) < count || !isValid(validity, row)) continue;
    throw new DataError(`Row ${row} has code ${codes[row]}, expected one below ${count}`);
  }
  if (width < 4) takeSmall(out, values, width === 1 ? 8 : 16, codes);
  else if (width === 4) takeSmall(out, values, 32, codes);
  else if (width === 8) takePairs(words32(out), words32(values), codes);
  else takeLong(words32(out), words32(values), width >> 2, codes);
}

function takeSmall(out: Uint8Array, values: Uint8Array, bits: 8 | 16 | 32, codes: Indices): void {
  const [to, from] = [smallWords(out, bits), smallWords(values, bits)];
  for (let row = 0; row < codes.length; row++) to[row] = from[codes[row] ?? 0] ?? 0;
}

function takePairs(to: Int32Array, from: Int32Array, codes: Indices): void {
  for (let row = 0; row < codes.length; row++) {
    const code = codes[row] ?? 0;
    to[2 * row] = from[2 * code] ?? 0;
    to[2 * row + 1] = from[2 * code + 1] ?? 0;
  }
}

function takeLong(to: Int32Array, from: Int32Array, count: number, codes: Indices): void {
  for (let row = 0; row < codes.length; row++) {
    const code = codes[row] ?? 0;
    for (let word = 0; word < count; word++) to[row * count + word] = from[code * count + word] ?? 0;
  }
}
