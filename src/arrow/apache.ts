/**
 * Conversion of vectors of the npm package `apache-arrow` to and from `ArrowArray`, in the same memory.
 *
 * When the package slices an array, it slices values, offsets and children, but leaves validity bitmaps and truth
 * values, which are bits, whole and keeps an offset for them; Arrow's C structs have one offset for all buffers.
 *
 * @module
 */
import { showGiven, type TypedArray } from "../layout/mod.ts";
import { StridedMemoryView } from "../view/mod.ts";
import { type ApacheArrow, type ApacheType, make, typeFromApache, typeToApache } from "./apache_types.ts";
import { ArrowArray } from "./array.ts";
import { type ArrowField, bitOf, bitsOf, childrenOf, hasOffsets, hasViews, hostBytes } from "../cdata/mod.ts";
import { ExchangeError } from "../order/mod.ts";

/** A chunk in the package: an array. */
export interface ApacheData {
  /** The type. */
  readonly type: ApacheType;
  /** Elements. */
  readonly length: number;
  /** Bits that precede the first one in the bitmap. */
  readonly offset: number;
  /** Number of nulls. */
  readonly nullCount: number;
  /** Which elements are not null; empty if none is null. */
  readonly nullBitmap?: TypedArray | null;
  /** The elements, or the data of text. */
  readonly values?: unknown;
  /** Where elements of variable length begin. */
  readonly valueOffsets?: TypedArray | null;
  /** Data of views. */
  readonly variadicBuffers?: readonly TypedArray[];
  /** Chunks of nested types. */
  readonly children: readonly ApacheData[];
  /** The values that the indices of a dictionary refer to. */
  readonly dictionary?: ApacheVector | null;
}

/** A vector, table or record batch of the package: one or more chunks. */
export interface ApacheVector {
  /** The chunks. */
  readonly data: ApacheData | readonly ApacheData[];
  /** Of tables and record batches. */
  readonly schema?: { readonly metadata: ReadonlyMap<string, string> };
}

/**
 * Imports the chunks of a vector, table or record batch of `apache-arrow`, without copying them, except validity
 * bitmaps of slices that begin inside a byte: one bit per element.
 *
 * The JavaScript memory stays in place, and is kept alive as long as an array or an export of it is.
 *
 * @returns an array per chunk
 * @throws {ExchangeError} for types that are not supported: unions
 * @throws {TypeError} for anything but a vector, and for vectors over shared or resizable memory, which has no stable
 *   address. Copy them first
 */
export function fromApacheArrow(vector: ApacheVector): ArrowArray[] {
  return chunksOf(vector).map((data) =>
    fromData(data, {
      name: "",
      type: typeFromApache(data.type),
      nullable: true,
      metadata: new Map(vector.schema?.metadata), // of a table or a record batch
    })
  );
}

function chunksOf(vector: ApacheVector): readonly ApacheData[] {
  const data = (vector as Partial<ApacheVector> | null)?.data; // the types may be wrong
  if (typeof data !== "object" || data === null) {
    throw new TypeError(
      `Cannot take ${showGiven(vector)} from apache-arrow: expected one of its vectors, tables or record batches`,
    );
  }
  return "type" in data ? [data] : data;
}

function fromData(data: ApacheData, field: ArrowField): ArrowArray {
  const { type } = field;
  const { length } = data;
  if (type.kind === "null") return new ArrowArray({ field, length, buffers: [] });
  const { nullBitmap = null } = data;
  const nullCount = nullBitmap === null || nullBitmap.length === 0 ? 0 : data.nullCount;
  const isBits = type.kind === "bool"; // the only values that are not sliced
  const validity = nullCount === 0 || nullBitmap === null
    ? null
    : isBits
    ? bytes(nullBitmap)
    : bitmapOf(data, nullBitmap);
  const dictionary = type.kind === "dictionary" ? dictionaryOf(data, type.values) : null;
  return new ArrowArray({
    field,
    length,
    offset: isBits ? data.offset : 0,
    nullCount,
    buffers: [validity, ...contents(data, field)],
    children: childrenOf(type).map((child, i) => fromData(partOf(data, i), child)),
    dictionary,
  });
}

/** The buffers after the bitmap. */
function contents(data: ApacheData, { type }: ArrowField): StridedMemoryView[] {
  if (hasViews(type)) {
    const parts = (data.variadicBuffers ?? []).map(bytes);
    const sizes = BigInt64Array.from(parts, ({ nbytes }) => BigInt(nbytes));
    return [bytes(data.values), ...parts, bytes(sizes)];
  }
  if (!hasOffsets(type)) return bitsOf(type) === null ? [] : [bytes(data.values)];
  return childrenOf(type).length > 0 ? [bytes(data.valueOffsets)] : [bytes(data.valueOffsets), bytes(data.values)];
}

// law arrow/partOf: arrow/apache
function partOf({ children, type, length }: ApacheData, index: number): ApacheData {
  const child = children[index];
  if (child !== undefined) return child;
  const field = type.children?.[index];
  if (length === 0 && field !== undefined) return emptyOf(field.type);
  throw new ExchangeError(`Cannot take a vector of ${String(type)} from apache-arrow: child ${index} is missing`);
}

/** What the package leaves out of nested chunks without elements, such as those of a file without rows. */
function emptyOf(type: ApacheType): ApacheData {
  return { type, length: 0, offset: 0, nullCount: 0, children: [] };
}

function dictionaryOf({ dictionary, type, length }: ApacheData, values: ArrowField): ArrowArray {
  const chunks = dictionary === null || dictionary === undefined ? [] : chunksOf(dictionary);
  const [only] = chunks;
  if (only !== undefined && chunks.length === 1) return fromData(only, values);
  if (chunks.length === 0 && length === 0 && type.dictionary !== undefined) {
    return fromData(emptyOf(type.dictionary), values);
  }
  throw new ExchangeError(
    `Cannot take a vector with a dictionary of ${chunks.length} chunks from apache-arrow: expected one. ` +
      "arrow.vectorFromArray([...vector], vector.type) encodes it anew",
  );
}

/** A bitmap whose first bit belongs to the first element. */
function bitmapOf({ offset, length }: ApacheData, bitmap: TypedArray): StridedMemoryView {
  return bytes(offset % 8 === 0 ? bitmap.subarray(offset / 8) : movedBits(hostBytes(bytes(bitmap)), offset, length));
}

/** A copy of bits, which begins at the first bit of a byte. */
function movedBits(source: DataView, offset: number, length: number): Uint8Array<ArrayBuffer> {
  const moved = new Uint8Array(new ArrayBuffer(Math.ceil(length / 8)));
  for (let i = 0; i < length; i++) {
    if (bitOf(source, offset + i)) moved[i >>> 3] = (moved[i >>> 3] ?? 0) | 1 << i % 8;
  }
  return moved;
}

function bytes(array: unknown): StridedMemoryView {
  if (!ArrayBuffer.isView(array)) return StridedMemoryView.fromTypedArray(new Uint8Array(0));
  const { buffer, byteOffset, byteLength } = array;
  return StridedMemoryView.fromTypedArray(new Uint8Array(buffer, byteOffset, byteLength));
}

/**
 * Makes a vector of `apache-arrow` from an array in host memory, without copying it.
 *
 * The vector shares the array's memory and keeps it alive. Once the array is closed there is nothing in it: it keeps
 * its length, and its elements are undefined or null, or reading them throws. Only buffers whose first element is not
 * aligned to its size are copied, because typed arrays require alignment.
 *
 * @param arrow the package: `import * as arrow from "apache-arrow"`
 * @throws {TypeError} for device memory, and for anything but an `ArrowArray` and the package
 * @throws {ExchangeError} for types that this version of the package lacks, and for dictionaries with indices of 64
 *   bits, which it cannot read
 */
export function toApacheArrow<Vector>(array: ArrowArray, arrow: ApacheArrow<Vector>): Vector {
  checkArguments(array, arrow);
  return make(arrow, "Vector", [toData(array, arrow)]) as Vector; // made by the package's own class
}

// law arrow/checkArguments: arrow/apache
/** Finds what an untyped program may pass: a view, or the package's default export, which it lacks. */
function checkArguments(array: unknown, arrow: Partial<ApacheArrow> | null | undefined): void {
  if (!(array instanceof ArrowArray)) {
    const way = "ArrowArray.from(it) makes one of a view";
    throw new TypeError(
      `Cannot make a vector of apache-arrow from ${showGiven(array)}: expected an ArrowArray. ${way}`,
    );
  }
  if (typeof arrow?.Vector === "function" && typeof arrow.makeData === "function") return;
  throw new TypeError(
    `Cannot make a vector of apache-arrow with ${showGiven(arrow)}: expected the package behind the array, as in ` +
      'import * as arrow from "apache-arrow"',
  );
}

// law arrow/toData: arrow/apache
function toData(array: ArrowArray, arrow: ApacheArrow<unknown>): unknown {
  const { type, length, offset, buffers, children, dictionary } = array;
  const [bitmap = null] = buffers;
  const isViews = hasViews(type);
  const props: Record<string, unknown> = {
    type: typeToApache(arrow, type),
    offset: isViews ? 0 : offset, // the package's tableToIPC would skip as many of the views once more
    length,
    nullCount: array.nullCount,
  };
  if (bitmap !== null && array.nullCount > 0) {
    props["nullBitmap"] = isViews ? bitsFrom(bitmap, offset, length) : all(bitmap);
  }
  const bits = bitsOf(type);
  if (type.kind === "bool") props["data"] = all(buffers[1]);
  else if (bits !== null) {
    props["data"] = part(buffers[1], offset * bits / 8, (offset + length) * bits / 8, alignmentOf(bits));
  } else if (isViews) {
    props["views"] = part(buffers[1], offset * 16, (offset + length) * 16, 1);
    props["variadicBuffers"] = buffers.slice(2, -1).map(all);
  } else if (hasOffsets(type)) {
    const width = "offsets" in type && type.offsets === 64 ? 8 : 4;
    // There is always one offset, even if the array has no memory for it.
    props["valueOffsets"] = length === 0
      ? new Uint8Array(width)
      : part(buffers[1], offset * width, (offset + length + 1) * width, width);
    if (children.length === 0) props["data"] = all(buffers[2]);
  }
  // The package keeps children of lists whole, and slices those of structs and fixed-size lists.
  const step = type.kind === "fixed_size_list" ? type.size : 1;
  const inner = hasOffsets(type)
    ? children
    : children.map((child) => child.sliced(offset * step, (offset + length) * step));
  const parts = inner.map((child) => toData(child, arrow));
  if (type.kind === "struct") props["children"] = parts;
  else if (parts.length > 0) props["child"] = parts[0];
  if (dictionary !== null) props["dictionary"] = toApacheArrow(dictionary, arrow);
  return arrow.makeData(props as never); // its argument has the package's own type, which is unknown here
}

/** The largest element size of a typed array by which values of `bits` bits are read. */
function alignmentOf(bits: number): number {
  const bytes = bits / 8;
  return Math.min(8, bytes & -bytes);
}

/** The bits of a bitmap from an element on, copied only if that one lies inside a byte. */
function bitsFrom(bitmap: StridedMemoryView, offset: number, length: number): Uint8Array {
  return offset % 8 === 0 ? part(bitmap, offset / 8, bitmap.nbytes, 1) : movedBits(hostBytes(bitmap), offset, length);
}

function all(view: StridedMemoryView | null | undefined): Uint8Array {
  return part(view, 0, view?.nbytes ?? 0, 1);
}

/** Bytes of a buffer, copied only if they are not aligned for typed arrays of that element size. */
function part(view: StridedMemoryView | null | undefined, start: number, end: number, alignment: number): Uint8Array {
  if (view === null || view === undefined || end <= start) return new Uint8Array(0);
  const whole = hostBytes(view);
  const bytes = new Uint8Array(whole.buffer, whole.byteOffset + start, end - start);
  return bytes.byteOffset % alignment === 0 ? bytes : bytes.slice();
}
