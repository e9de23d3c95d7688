import { DataError } from "./data_error.ts";
import { type Indices, isValid, type Validity, words32 } from "./words.ts";

// law vortex/numeric.lookUpLeft: vortex/numeric/alp_rd
/**
 * Looks up the upper parts of floats by code.
 *
 * @throws {DataError} if the code of a valid row is not in the dictionary
 */
export function lookUpLeft(
  codes: Indices,
  dictionary: readonly number[],
  validity: Validity,
): Uint16Array<ArrayBuffer> {
  const left = new Uint16Array(codes.length);
  for (let row = 0; row < codes.length; row++) {
    const value = dictionary[codes[row] ?? 0];
    if (value === undefined && isValid(validity, row)) {
      throw new DataError(`Row ${row} has code ${codes[row]}, expected one below ${dictionary.length}`);
    }
    left[row] = value ?? 0;
  }
  return left;
}

// law vortex/numeric.joinInto: vortex/numeric/alp_rd
/**
 * Joins the upper and lower parts of floats: `left << width | right`.
 *
 * @param right words of `bits` bits
 * @param width bits of a lower part, less than `bits`
 */
export function joinInto(out: Uint8Array, left: Uint16Array, right: Uint8Array, bits: 32 | 64, width: number): void {
  const [to, from] = [words32(out), words32(right)];
  if (bits === 32) {
    for (let row = 0; row < left.length; row++) to[row] = (left[row] ?? 0) << width | (from[row] ?? 0);
  } else if (width >= 32) {
    for (let row = 0; row < left.length; row++) {
      to[2 * row] = from[2 * row] ?? 0;
      to[2 * row + 1] = (left[row] ?? 0) << (width - 32) | (from[2 * row + 1] ?? 0);
    }
  } else {
    const carried = 2 ** (width - 32); // a shift by 32 would be a shift by 0
    for (let row = 0; row < left.length; row++) {
      to[2 * row] = (left[row] ?? 0) << width | (from[2 * row] ?? 0);
      to[2 * row + 1] = (left[row] ?? 0) * carried | (from[2 * row + 1] ?? 0);
    }
  }
}
