/**
 * Slices of decoded arrays; only bitmaps that start within a byte are copied.
 *
 * @module
 */
import type { Allocate } from "../wire/source.ts";
import { bitmapFrom } from "../bits.ts";
import type { CanonicalArray } from "../canonical.ts";

// law vortex/sliceOf: vortex/core/ops
/** The elements from `start` up to but excluding `end`, which must be within the array. */
export function sliceOf(array: CanonicalArray, start: number, end: number, allocate: Allocate): CanonicalArray {
  const length = end - start;
  if (length === array.length) return array;
  const validity = array.validity === null ? null : bitmapFrom(array.validity, start, length, allocate);
  const part = { length, validity };
  const sliced = (one: CanonicalArray, from = start, to = end) => sliceOf(one, from, to, allocate);
  switch (array.kind) {
    case "null":
      return { ...array, length };
    case "bool":
      return { ...array, ...part, offset: array.offset + start };
    case "primitive":
      return { ...array, ...part, values: array.values.subarray(start, end) };
    case "decimal":
      return { ...array, ...part, bytes: array.bytes.subarray(start * array.width, end * array.width) };
    case "varbinview":
      return { ...array, ...part, views: array.views.subarray(16 * start, 16 * end) };
    case "list":
      return { ...array, ...part, offsets: array.offsets.subarray(start, end + 1) };
    case "fixedSizeList":
      return { ...array, ...part, elements: sliced(array.elements, start * array.size, end * array.size) };
    case "struct":
      return { ...array, ...part, fields: array.fields.map((field) => sliced(field)) };
    case "extension":
      return { ...array, ...part, storage: sliced(array.storage) };
    case "dictionary": {
      const codes = sliced(array.codes);
      return codes.kind === "primitive" ? { ...array, ...part, codes } : array; // always primitive
    }
    case "runEnd": {
      const first = runOf(array.ends, start);
      const last = length === 0 ? first : runOf(array.ends, end - 1) + 1;
      const ends = array.ends.slice(first, last).map((one) => Math.min(one, end) - start);
      return { ...array, length, ends, values: sliced(array.values, first, last) };
    }
  }
}

/** The run that contains an element. */
function runOf(ends: Int32Array, element: number): number {
  let [low, high] = [0, ends.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((ends[middle] ?? 0) > element) high = middle;
    else low = middle + 1;
  }
  return low;
}
