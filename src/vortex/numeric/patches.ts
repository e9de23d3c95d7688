import { DataError } from "../error.ts";
import { type Indices, smallWords, words32 } from "./words.ts";

// law vortex/numeric.patchInto: vortex/numeric/patches
/**
 * Overwrites words: `out[indices[k] - offset] = values[k]` for every k; the last write to a word wins.
 *
 * @param width bytes of a word: 1, 2 or a multiple of 4
 * @param offset the number of rows sliced off the front
 * @throws {DataError} if an index is before the first word or after the last
 */
export function patchInto(out: Uint8Array, values: Uint8Array, width: number, indices: Indices, offset: number): void {
  const length = out.length / width;
  if (values.length !== indices.length * width) {
    throw new DataError(`Expected a value for each of ${indices.length} patches, got ${values.length / width}`);
  }
  const count = Math.max(1, width >> 2);
  const [from, to] = width < 4 ? [smallWords(values, width === 1 ? 8 : 16), smallWords(out, width === 1 ? 8 : 16)] : [
    words32(values),
    words32(out),
  ];
  for (let patch = 0; patch < indices.length; patch++) {
    const place = (indices[patch] ?? 0) - offset;
    if (!(place >= 0 && place < length)) {
      throw new DataError(`Patch ${patch} is for row ${place}, expected 0 to ${length - 1}`);
    }
    for (let word = 0; word < count; word++) to[place * count + word] = from[patch * count + word] ?? 0;
  }
}

// law vortex/numeric.patchLanesInto: vortex/numeric/patches
/**
 * Applies patches sorted by block of 1024, and by lane within a block: entries `laneOffsets[c * lanes]` to
 * `laneOffsets[(c + 1) * lanes]` belong to block c, and each states its place in the block. Patches of rows that were
 * sliced off are still included.
 *
 * @param offset rows sliced off the first block
 * @throws {DataError} if the offsets decrease, or extend past the patches
 */
export function patchLanesInto(
  out: Uint8Array,
  values: Uint8Array,
  width: number,
  patches: { readonly laneOffsets: Indices; readonly lanes: number; readonly places: Uint16Array },
  offset: number,
): void {
  const { laneOffsets, lanes, places } = patches;
  const length = out.length / width;
  const blocks = Math.ceil((offset + length) / 1024);
  const [wanted, indices] = [new Uint8Array(values.length), new Float64Array(places.length)];
  let count = 0;
  for (let block = 0; block < blocks; block++) {
    const [from, to] = [laneOffsets[block * lanes] ?? 0, laneOffsets[(block + 1) * lanes] ?? 0];
    if (from > to || to > places.length) {
      throw new DataError(`Block ${block} has patches ${from} to ${to}, expected a range within 0 to ${places.length}`);
    }
    for (let patch = from; patch < to; patch++) {
      const place = block * 1024 + (places[patch] ?? 0) - offset;
      if (place < 0 || place >= length) continue;
      indices[count] = place;
      wanted.set(values.subarray(patch * width, (patch + 1) * width), count++ * width);
    }
  }
  patchInto(out, wanted.subarray(0, count * width), width, indices.subarray(0, count), 0);
}
