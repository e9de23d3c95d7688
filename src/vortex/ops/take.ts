/**
 * Gathers elements of a decoded array by index, to decode dictionaries and list views.
 *
 * @module
 */
import { bitAt, bothValid, bytesForBits } from "../bits.ts";
import type { CanonicalArray, ListArray, PrimitiveArray } from "../canonical.ts";
import { withNullable } from "../dtype.ts";
import { type PrimitiveValues, valuesAt, widthOf } from "../ptype.ts";
import type { Allocate, Bytes } from "../wire/source.ts";

/** Numbers used as indices: patches, ends of runs, codes. */
export type Indices = Uint8Array | Uint16Array | Uint32Array | Float64Array;

// law vortex/takeOf: vortex/core/ops
/**
 * The elements at the given indices, each of which must be less than the array's length.
 *
 * @param valid a mask: results whose bit is clear are null, whatever their source. Makes the dtype nullable unless null
 */
export function takeOf(
  array: CanonicalArray,
  indices: Indices,
  valid: Bytes | null,
  allocate: Allocate,
): CanonicalArray {
  const { length } = indices;
  const own = array.validity === null ? null : takeBits(array.validity, 0, indices, allocate);
  const validity = bothValid(own, valid, length, allocate);
  const part = { length, validity };
  const again = (one: CanonicalArray) => takeOf(one, indices, null, allocate);
  const dtypeOf = <DType extends CanonicalArray["dtype"]>(dtype: DType): DType =>
    valid === null ? dtype : withNullable(dtype, true) as DType; // the kind is the same
  switch (array.kind) {
    case "null":
      return { ...array, length };
    case "bool":
      return {
        ...array,
        ...part,
        dtype: dtypeOf(array.dtype),
        bits: takeBits(array.bits, array.offset, indices, allocate),
        offset: 0,
      };
    case "primitive":
      return { ...array, ...part, dtype: dtypeOf(array.dtype), values: takeValues(array, indices, allocate) };
    case "decimal": {
      const bytes = allocate(length * array.width);
      takeWide(array.bytes, array.width, indices, bytes);
      return { ...array, ...part, dtype: dtypeOf(array.dtype), bytes };
    }
    case "varbinview": {
      const views = allocate(16 * length);
      takeWide(array.views, 16, indices, views);
      return { ...array, ...part, dtype: dtypeOf(array.dtype), views };
    }
    case "list":
      return { ...takeLists(array, indices, allocate), ...part, dtype: dtypeOf(array.dtype) };
    case "fixedSizeList": {
      const { size } = array;
      const inner = indexArray(allocate, length * size, array.elements.length);
      let to = 0;
      for (let i = 0; i < length; i++) {
        const from = (indices[i] ?? 0) * size;
        for (let j = 0; j < size; j++) inner[to++] = from + j;
      }
      const elements = takeOf(array.elements, inner, null, allocate);
      return { ...array, ...part, dtype: dtypeOf(array.dtype), elements };
    }
    case "struct":
      return { ...array, ...part, dtype: dtypeOf(array.dtype), fields: array.fields.map(again) };
    case "extension": {
      const storage = takeOf(array.storage, indices, valid, allocate);
      return { ...array, ...part, dtype: dtypeOf(array.dtype), storage };
    }
    case "dictionary": {
      const codes = takeOf(array.codes, indices, null, allocate);
      return codes.kind === "primitive" ? { ...array, ...part, dtype: dtypeOf(array.dtype), codes } : array;
    }
    case "runEnd": {
      const runs = indexArray(allocate, array.length, array.values.length);
      fillRuns(array.ends, runs);
      const inner = indexArray(allocate, length, array.values.length);
      for (let i = 0; i < length; i++) inner[i] = runs[indices[i] ?? 0] ?? 0;
      return takeOf(array.values, inner, valid, allocate);
    }
  }
}

/** Allocates indices wide enough for `elements` elements. */
export function indexArray(allocate: Allocate, length: number, elements: number): Uint32Array | Float64Array {
  if (elements <= 2 ** 32) return new Uint32Array(allocate(4 * length).buffer, 0, length);
  return new Float64Array(allocate(8 * length).buffer, 0, length);
}

/** Writes the index of each row's run. `offset` rows were sliced off the front, which the ends still count. */
export function fillRuns(ends: ArrayLike<number>, runs: Uint32Array | Float64Array, offset = 0): void {
  let row = 0;
  for (let run = 0; row < runs.length; run++) {
    const end = (ends[run] ?? Infinity) - offset;
    runs.fill(run, row, end);
    row = end;
  }
}

function takeBits(bits: Uint8Array, offset: number, indices: Indices, allocate: Allocate): Bytes {
  const out = allocate(bytesForBits(indices.length));
  for (let i = 0; i < indices.length; i++) {
    if (bitAt(bits, offset + (indices[i] ?? 0))) out[i >>> 3] = (out[i >>> 3] ?? 0) | 1 << (i & 7);
  }
  return out;
}

/** The numbers at the given indices, each of which must be less than the array's length unless its row is null. */
export function takeValues({ values, dtype }: PrimitiveArray, indices: Indices, allocate: Allocate): PrimitiveValues {
  const { length } = indices;
  const width = widthOf(dtype.ptype);
  const { buffer } = allocate(length * width);
  if (width === 8) {
    const from = new Uint32Array(values.buffer, values.byteOffset, 2 * values.length);
    const to = new Uint32Array(buffer, 0, 2 * length); // as halves, which allocates no bigints
    let at = 0;
    for (let i = 0; i < length; i++) {
      const source = 2 * (indices[i] ?? 0);
      to[at++] = from[source] ?? 0;
      to[at++] = from[source + 1] ?? 0;
    }
  } else {
    // As integers of equal width: a NaN must keep its bits. Engines keep signed words as integers, others as floats.
    const kind = width === 1 ? Uint8Array : width === 2 ? Uint16Array : Int32Array;
    const from = new kind(values.buffer, values.byteOffset, values.length);
    const to = new kind(buffer, 0, length);
    for (let i = 0; i < length; i++) to[i] = from[indices[i] ?? 0] ?? 0;
  }
  return valuesAt(dtype.ptype, buffer, 0, length);
}

/** Copies elements of any width. */
function takeWide(from: Bytes, width: number, indices: Indices, to: Bytes): void {
  const { length } = indices;
  const isAligned = width % 4 === 0 && from.byteOffset % 4 === 0;
  if (isAligned) {
    const words = width / 4;
    const source = new Uint32Array(from.buffer, from.byteOffset, Math.floor(from.length / 4));
    const target = new Uint32Array(to.buffer, to.byteOffset, Math.floor(to.length / 4));
    if (words === 4) {
      let at = 0;
      for (let i = 0; i < length; i++, at += 4) {
        const start = 4 * (indices[i] ?? 0);
        target[at] = source[start] ?? 0;
        target[at + 1] = source[start + 1] ?? 0;
        target[at + 2] = source[start + 2] ?? 0;
        target[at + 3] = source[start + 3] ?? 0;
      }
      return;
    }
    let at = 0;
    for (let i = 0; i < length; i++) {
      const start = words * (indices[i] ?? 0);
      for (let j = 0; j < words; j++) target[at++] = source[start + j] ?? 0;
    }
    return;
  }
  let at = 0;
  for (let i = 0; i < length; i++) {
    const start = width * (indices[i] ?? 0);
    for (let j = 0; j < width; j++) to[at++] = from[start + j] ?? 0;
  }
}

/** Lists as ranges: where each begins and how many elements it has. */
export interface Ranges {
  readonly starts: ArrayLike<number>;
  readonly sizes: ArrayLike<number>;
}

/**
 * Gathers the elements of lists given as ranges, which must be in bounds. The caller sets validity.
 *
 * @throws {RangeError} if they have more elements in total than 32-bit offsets can address
 */
export function gatherLists(
  { starts, sizes }: Ranges,
  length: number,
  elements: CanonicalArray,
  allocate: Allocate,
): { readonly offsets: Int32Array<ArrayBuffer>; readonly elements: CanonicalArray } {
  const offsets = new Int32Array(allocate(4 * (length + 1)).buffer, 0, length + 1);
  let total = 0;
  for (let i = 0; i < length; i++) {
    total += sizes[i] ?? 0;
    offsets[i + 1] = total;
  }
  if (total > maxListElements) throw tooManyElements(total);
  const inner = indexArray(allocate, total, elements.length);
  let to = 0;
  for (let i = 0; i < length; i++) {
    const [from, size] = [starts[i] ?? 0, sizes[i] ?? 0];
    for (let j = 0; j < size; j++) inner[to++] = from + j;
  }
  return { offsets, elements: takeOf(elements, inner, null, allocate) };
}

/** The most elements that lists with 32-bit offsets can have. */
export const maxListElements: number = 2 ** 31 - 1;

/** The error for exceeding `maxListElements`. */
export function tooManyElements(count: number): RangeError {
  return new RangeError(
    `The lists have ${count} elements in total, more than 32-bit offsets can address: decode fewer rows at a time`,
  );
}

function takeLists(array: ListArray, indices: Indices, allocate: Allocate): ListArray {
  const { length } = indices;
  const starts = new Uint32Array(allocate(4 * length).buffer, 0, length);
  const sizes = new Uint32Array(allocate(4 * length).buffer, 0, length);
  for (let i = 0; i < length; i++) {
    const index = indices[i] ?? 0;
    const start = array.offsets[index] ?? 0;
    starts[i] = start;
    sizes[i] = (array.offsets[index + 1] ?? 0) - start;
  }
  return { ...array, length, ...gatherLists({ starts, sizes }, length, array.elements, allocate) };
}
