import { DataError } from "./data_error.ts";
import { takeInto } from "./take.ts";
import { type Indices, isValid, type Validity } from "./words.ts";

// law vortex/numeric.rleInto: vortex/numeric/rle
/**
 * Decodes blocks of 1024 indices, each block with separate values: block b's run from `starts[b]` to the next block's.
 *
 * @param width bytes of a word: 1, 2, 4 or 8
 * @param indices whole blocks, of which the first `offset` indices have been sliced off; in a block with one value they
 *   may be anything
 * @param starts where each block's values begin, relative to an arbitrary origin
 * @param validity of the indices after `offset`
 * @throws {DataError} if a block's values or an index are out of bounds
 */
export function rleInto(
  out: Uint8Array,
  values: Uint8Array,
  width: number,
  indices: Indices,
  starts: Indices,
  { offset, validity }: { readonly offset: number; readonly validity: Validity },
): void {
  const length = out.length / width;
  if (offset + length > indices.length) {
    throw new DataError(`Expected indices for ${length} rows at offset ${offset}, got ${indices.length}`);
  }
  const origin = starts[0] ?? 0;
  const codes = new Uint32Array(length);
  for (let first = 0; first < offset + length; first += 1024) {
    const block = first / 1024;
    const start = (starts[block] ?? NaN) - origin;
    const end = block + 1 < starts.length ? (starts[block + 1] ?? 0) - origin : values.length / width;
    if (!(start <= end && end <= values.length / width)) {
      throw new DataError(
        `Block ${block} has values ${start} to ${end}, expected a range within 0 to ${values.length / width}`,
      );
    }
    for (let at = Math.max(first, offset); at < Math.min(first + 1024, offset + length); at++) {
      const index = end - start === 1 ? 0 : indices[at] ?? 0;
      if (index < end - start) codes[at - offset] = start + index;
      else if (isValid(validity, at - offset)) {
        throw new DataError(`Row ${at - offset} has index ${index}, expected one below ${end - start}`);
      }
    }
  }
  takeInto(out, values, width, codes, validity);
}
