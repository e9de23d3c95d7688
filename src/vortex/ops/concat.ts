/**
 * Concatenation of decoded arrays.
 *
 * @module
 */
import { bytesForBits, copyBits, fillBits } from "../bits.ts";
import {
  type CanonicalArray,
  type CanonicalOf,
  INLINE_BYTES,
  MAX_BUFFER_BYTES,
  type VarBinViewArray,
} from "../canonical.ts";
import { entriesOf, type VortexDType } from "../dtype.ts";
import { valuesAt } from "../ptype.ts";
import { type Allocate, type Bytes, bytesOf } from "../wire/source.ts";
import { zeros } from "./fill.ts";
import { flatten } from "./flatten.ts";
import { sliceOf } from "./slice.ts";
import { maxListElements, tooManyElements } from "./take.ts";

// law vortex/concatOf: vortex/core/ops
/**
 * Concatenates arrays of one dtype.
 *
 * @throws {RangeError} if lists have more elements in total than 32-bit offsets can address
 */
export function concatOf(dtype: VortexDType, parts: readonly CanonicalArray[], allocate: Allocate): CanonicalArray {
  const [first] = parts;
  if (first === undefined) return zeros(dtype, 0, allocate);
  if (parts.length === 1) return first;
  const arrays = parts.map((one) => flatten(one, allocate)).filter(({ length }) => length > 0);
  const [only] = arrays;
  if (only === undefined) return zeros(dtype, 0, allocate);
  if (arrays.length === 1) return only;
  const length = arrays.reduce((sum, one) => sum + one.length, 0);
  const plain = { length, validity: validityOf(arrays, length, allocate) };
  const inner = (element: VortexDType, of: readonly CanonicalArray[]) => concatOf(element, of, allocate);
  switch (only.kind) {
    case "null":
      return { ...only, length };
    case "bool": {
      const bits = allocate(bytesForBits(length));
      let at = 0;
      for (const one of all(arrays, "bool")) {
        copyBits(one.bits, one.offset, bits, at, one.length);
        at += one.length;
      }
      return { ...only, ...plain, bits, offset: 0 };
    }
    case "primitive": {
      const bytes = joined(all(arrays, "primitive").map(({ values }) => bytesOf(values)), allocate);
      return { ...only, ...plain, values: valuesAt(only.dtype.ptype, bytes.buffer, 0, length) };
    }
    case "decimal": {
      const decimals = all(arrays, "decimal");
      const width = Math.max(...decimals.map((one) => one.width));
      const bytes = allocate(length * width);
      let at = 0;
      for (const one of decimals) {
        widen(one.bytes, one.width, bytes.subarray(at, at + one.length * width), width);
        at += one.length * width;
      }
      return { ...only, ...plain, width, bytes };
    }
    case "varbinview":
      return { ...only, ...plain, ...joinViews(all(arrays, "varbinview"), allocate) };
    case "list":
      return { ...only, ...plain, ...joinLists(dtype, all(arrays, "list"), length, allocate) };
    case "fixedSizeList": {
      const element = dtype.kind === "fixedSizeList" ? dtype.element : only.elements.dtype;
      return { ...only, ...plain, elements: inner(element, all(arrays, "fixedSizeList").map((one) => one.elements)) };
    }
    case "struct": {
      const structs = all(arrays, "struct");
      const fields = only.dtype.fields.map((field, i) =>
        inner(field, structs.map((one) => one.fields[i] ?? zeros(field, one.length, allocate)))
      );
      return { ...only, ...plain, fields };
    }
    case "extension":
      return {
        ...only,
        ...plain,
        storage: inner(only.dtype.storage, all(arrays, "extension").map((one) => one.storage)),
      };
    default:
      throw new TypeError(`Expected plain arrays, got ${only.kind}`); // removed by `flatten`
  }
}

/** The same arrays, all of which must be of one kind. */
function all<Kind extends CanonicalArray["kind"]>(arrays: readonly CanonicalArray[], kind: Kind): CanonicalOf<Kind>[] {
  const isOfKind = (one: CanonicalArray): one is CanonicalOf<Kind> => one.kind === kind;
  const found = arrays.filter(isOfKind);
  if (found.length !== arrays.length) throw new TypeError(`Expected arrays of ${kind} alone`);
  return found;
}

function joined(parts: readonly Bytes[], allocate: Allocate): Bytes {
  const bytes = allocate(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

function validityOf(arrays: readonly CanonicalArray[], length: number, allocate: Allocate): Bytes | null {
  if (arrays.every(({ validity }) => validity === null)) return null;
  const bits = allocate(bytesForBits(length));
  let at = 0;
  for (const { validity, length } of arrays) {
    if (validity === null) fillBits(bits, at, length);
    else copyBits(validity, 0, bits, at, length);
    at += length;
  }
  return bits;
}

// law vortex/widen: vortex/file/files, vortex/core/ops
/** Sign-extends integers into wider ones. */
export function widen(from: Uint8Array, width: number, to: Uint8Array, wider: number): void {
  if (width === wider) {
    to.set(from);
    return;
  }
  if (width % 4 === 0 && from.byteOffset % 4 === 0 && to.byteOffset % 4 === 0) {
    return widenWords(from, width, to, wider);
  }
  let target = 0;
  for (let source = 0; source < from.length; source += width, target += wider) {
    for (let i = 0; i < width; i++) to[target + i] = from[source + i] ?? 0;
    if ((from[source + width - 1] ?? 0) >= 0x80) to.fill(0xff, target + width, target + wider);
  }
}

/** The same, a column of 32-bit words after the other. */
function widenWords(from: Uint8Array, width: number, to: Uint8Array, wider: number): void {
  const narrow = new Int32Array(from.buffer, from.byteOffset, from.length / 4);
  const wide = new Int32Array(to.buffer, to.byteOffset, to.length / 4);
  const [words, wanted] = [width / 4, wider / 4];
  for (let word = 0; word < wanted; word++) {
    const shift = word < words ? 0 : 31; // beyond them there is the sign of the last
    let target = word;
    for (let source = Math.min(word, words - 1); source < narrow.length; source += words) {
      wide[target] = (narrow[source] ?? 0) >> shift;
      target += wanted;
    }
  }
}

/** If buffers are more and smaller than this they are merged: each costs consumers more than copying its bytes. */
const manyBuffers = 16;
const smallBuffer = 4096;

// law vortex/joinViews: vortex/core/ops
function joinViews(
  arrays: readonly VarBinViewArray[],
  allocate: Allocate,
): Pick<VarBinViewArray, "views" | "data"> {
  const views = joined(arrays.map((one) => one.views), allocate);
  const words = new Uint32Array(views.buffer, 0, views.length / 4);
  const buffers = arrays.flatMap(({ data }) => data);
  const total = buffers.reduce((sum, one) => sum + one.length, 0);
  const isPacked = buffers.length > manyBuffers && total < smallBuffer * buffers.length && total <= MAX_BUFFER_BYTES;
  let [base, start, row] = [0, 0, 0];
  for (const one of arrays) {
    const end = row + one.length;
    if (one.data.length > 0 && (base > 0 || isPacked)) {
      const starts: number[] = [];
      let next = start;
      for (const { length } of one.data) {
        starts.push(next);
        next += length;
      }
      for (let at = 4 * row; at < 4 * end; at += 4) {
        if ((words[at] ?? 0) <= INLINE_BYTES) continue;
        const buffer = words[at + 2] ?? 0;
        if (isPacked) {
          words[at + 2] = 0;
          words[at + 3] = (words[at + 3] ?? 0) + (starts[buffer] ?? 0);
        } else {
          words[at + 2] = buffer + base;
        }
      }
      start = next;
    }
    base += one.data.length;
    row = end;
  }
  return { views, data: isPacked ? [joined(buffers, allocate)] : buffers };
}

function joinLists(
  dtype: VortexDType,
  lists: readonly CanonicalOf<"list">[],
  length: number,
  allocate: Allocate,
): Pick<CanonicalOf<"list">, "offsets" | "elements"> {
  const offsets = new Int32Array(allocate(4 * (length + 1)).buffer, 0, length + 1);
  let [base, at] = [0, 0];
  for (const one of lists) {
    for (let i = 0; i < one.length; i++) offsets[at++] = base + (one.offsets[i] ?? 0);
    base += one.elements.length;
    if (base > maxListElements) throw tooManyElements(base);
  }
  // A list ends where the next one begins: across two arrays, only if the first array's lists end with its elements.
  offsets[at] = base;
  const isWhole = lists.every((one) => one.offsets[0] === 0 && one.offsets[one.length] === one.elements.length);
  const elementsOf = (one: CanonicalOf<"list">) => one.elements;
  const element = dtype.kind === "list" ? dtype.element : dtype.kind === "map" ? entriesOf(dtype) : dtype;
  if (isWhole) return { offsets, elements: concatOf(element, lists.map(elementsOf), allocate) };
  const cut = lists.map((one) => wholeLists(one, allocate));
  return joinLists(dtype, cut, length, allocate);
}

/** The same lists, with offsets that start at 0 and end with the elements. */
function wholeLists(one: CanonicalOf<"list">, allocate: Allocate): CanonicalOf<"list"> {
  const [start, end] = [one.offsets[0] ?? 0, one.offsets[one.length] ?? 0];
  const offsets = new Int32Array(allocate(4 * (one.length + 1)).buffer, 0, one.length + 1);
  for (let i = 0; i <= one.length; i++) offsets[i] = (one.offsets[i] ?? 0) - start;
  return { ...one, offsets, elements: sliceOf(one.elements, start, end, allocate) };
}
