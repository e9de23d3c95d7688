import { DataError } from "./data_error.ts";
import { type Indices, isValid, type Validity } from "./words.ts";

// law vortex/numeric.rleCodes: vortex/numeric/rle
/**
 * The indices among all values of `length` rows, from blocks of 1024 indices, each block with separate values: block
 * b's run from `starts[b]` to the next block's. That of a null row is 0.
 *
 * @param count the number of all values
 * @param indices whole blocks, of which the first `offset` indices have been sliced off; in a block with one value they
 *   may be anything
 * @param starts where each block's values begin, relative to an arbitrary origin
 * @param validity of the indices after `offset`
 * @throws {DataError} if a block's values or an index are out of bounds
 */
export function rleCodes(
  count: number,
  indices: Indices,
  starts: Indices,
  { offset, length, validity }: { readonly offset: number; readonly length: number; readonly validity: Validity },
): Uint32Array {
  if (offset + length > indices.length) {
    throw new DataError(`Expected indices for ${length} rows at offset ${offset}, got ${indices.length}`);
  }
  const origin = starts[0] ?? 0;
  const codes = new Uint32Array(length);
  for (let first = 0; first < offset + length; first += 1024) {
    const block = first / 1024;
    const start = (starts[block] ?? NaN) - origin;
    const end = block + 1 < starts.length ? (starts[block + 1] ?? 0) - origin : count;
    if (!(start <= end && end <= count)) {
      throw new DataError(`Block ${block} has values ${start} to ${end}, expected a range within 0 to ${count}`);
    }
    for (let at = Math.max(first, offset); at < Math.min(first + 1024, offset + length); at++) {
      const index = end - start === 1 ? 0 : indices[at] ?? 0;
      if (index < end - start) codes[at - offset] = start + index;
      else if (isValid(validity, at - offset)) {
        throw new DataError(`Row ${at - offset} has index ${index}, expected one below ${end - start}`);
      }
    }
  }
  return codes;
}
