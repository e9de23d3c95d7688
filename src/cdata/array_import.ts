/**
 * Reads a foreign ArrowArray and checks it against its type, before it is taken.
 *
 * @module
 */
import { ArrowArray as ArrowArrayStruct } from "../../bindings/arrow.ts";
import { struct } from "../ffi/mod.ts";
import { bufferCount, hasValidity, hasViews, needsOf, type Probe, secondBuffer } from "./buffers.ts";
import { type ArrowField, childrenOf } from "./type.ts";
import type { Walk } from "./walk.ts";

/** A buffer of a foreign array. */
export interface RawBuffer {
  readonly ptr: bigint;
  readonly size: number;
  /** Whether it is in host memory regardless of the array's device, as the sizes of an array of views are. */
  readonly isHost: boolean;
}

/** The contents of a foreign array's struct. */
export interface RawArray {
  readonly field: ArrowField;
  readonly length: number;
  readonly offset: number;
  readonly nullCount: number;
  readonly buffers: readonly (RawBuffer | null)[];
  readonly children: readonly RawArray[];
  readonly dictionary: RawArray | null;
}

/** Reads an integer of `bits` bits from an array's buffers. */
export type ReadInteger = (address: bigint, bits: 32 | 64, where: "array" | "host") => bigint;

// law cdata/readArray: cdata/fuzz, view/arrow
/**
 * Reads an array, which its producer still owns.
 *
 * @throws {ExchangeError} if it was released, or does not match this type
 */
export function readArray(address: bigint, field: ArrowField, read: ReadInteger, walk: Walk, depth = 0): RawArray {
  walk.enter(address, depth);
  const raw = struct(ArrowArrayStruct).at(address);
  if (raw.release === 0n) throw walk.refusal("is released or was moved: its release callback is NULL");
  const { type } = field;
  const length = walk.count(raw.length, "length");
  const start = walk.count(raw.offset, "offset");
  if (!Number.isSafeInteger(start + length)) {
    throw walk.refusal(`has ${length} elements from offset ${start}: expected an end of at most 2^53 - 1`);
  }
  const offset = length === 0 ? 0 : start; // an empty array skips nothing, and may have no buffers
  const nullCount = readNullCount(raw.null_count, length, walk);
  const pointers = readBuffers(raw.n_buffers, raw.buffers, field, walk);
  const children = readChildren(raw.n_children, raw.children, field, walk).map(([child, its]) =>
    readArray(child, its, read, walk, depth + 1)
  );
  const values = type.kind === "dictionary" ? type.values : null;
  if ((values === null) !== (raw.dictionary === 0n)) {
    throw walk.refusal(values === null ? "has a dictionary that its schema does not have" : "has no dictionary");
  }
  const dictionary = values === null ? null : readArray(raw.dictionary, values, read, walk, depth + 1);
  const sizes = sizesOf(field, { length, offset }, pointers, read, walk);
  const buffers = pointers.map((ptr, i) => {
    const isHost = hasViews(type) && i === pointers.length - 1;
    return makeBuffer(ptr, sizes[i] ?? 0, isHost, `buffer ${i}`, i === 0 && nullCount <= 0, walk);
  });
  const isValid = hasValidity(type) && (buffers[0] ?? null) === null;
  return { field, length, offset, nullCount: isValid ? 0 : nullCount, buffers, children, dictionary };
}

// law cdata/readNullCount: cdata/fuzz, view/arrow
function readNullCount(value: bigint, length: number, walk: Walk): number {
  if (value >= -1n && value <= length) return Number(value);
  throw walk.refusal(`has ${value} as its null count: expected -1 to its length ${length}`);
}

// law cdata/readBuffers: cdata/fuzz, view/arrow, arrow/array
function readBuffers(count: bigint, address: bigint, { type }: ArrowField, walk: Walk): bigint[] {
  const expected = bufferCount(type);
  const n = walk.count(count, "number of buffers");
  if (type.kind === "null" && n === 1) return []; // Polars' has a bitmap
  if (hasViews(type) ? n < expected : n !== expected) {
    throw walk.refusal(
      `has ${n} buffers: expected ${hasViews(type) ? "at least " : ""}${expected} for an array of ${type.kind}`,
    );
  }
  return walk.pointers(address, n, "buffers");
}

// law cdata/readChildren: cdata/fuzz, view/arrow
function readChildren(
  count: bigint,
  address: bigint,
  { type }: ArrowField,
  walk: Walk,
): (readonly [child: bigint, field: ArrowField])[] {
  const fields = childrenOf(type);
  const n = walk.count(count, "number of children");
  if (n !== fields.length) throw walk.refusal(`has ${n} children: expected ${fields.length} for its type`);
  const pointers = walk.pointers(address, n, "children");
  return fields.map((field, i) => [pointers[i] ?? 0n, field]);
}

function sizesOf(
  { type }: ArrowField,
  extent: { readonly length: number; readonly offset: number },
  pointers: readonly bigint[],
  read: ReadInteger,
  walk: Walk,
): readonly number[] {
  try {
    // children are checked by ArrowArray
    return needsOf(type, extent, pointers.length, probe(pointers, read, walk)).bytes;
  } catch (error) {
    if (error instanceof RangeError) throw walk.refusal(`is not valid: ${error.message}`);
    throw error;
  }
}

// law cdata/probe: cdata/fuzz, view/arrow
function probe(pointers: readonly bigint[], read: ReadInteger, walk: Walk): Probe {
  const at = (pointer: bigint, name: string, index: number, bits: 32 | 64, where: "array" | "host"): bigint => {
    if (pointer === 0n) throw walk.refusal(`has no ${name}: the pointer is NULL`);
    const address = pointer + BigInt(index) * BigInt(bits / 8);
    if (address + 8n > 1n << 64n) throw walk.refusal(`has ${name} at address ${pointer}, beyond the end of memory`);
    return read(address, bits, where);
  };
  return {
    offset: (index, bits) => at(pointers[secondBuffer] ?? 0n, "offsets", index, bits, "array"),
    dataSizes() {
      const sizes = pointers.at(-1) ?? 0n;
      const count = pointers.length - 3;
      return Array.from({ length: count }, (_, i) => at(sizes, "sizes of its data buffers", i, 64, "host"));
    },
  };
}

// law cdata/makeBuffer: cdata/fuzz, view/arrow
function makeBuffer(
  ptr: bigint,
  size: number,
  isHost: boolean,
  name: string,
  mayBeNull: boolean,
  walk: Walk,
): RawBuffer | null {
  if (ptr === 0n && (size === 0 || mayBeNull)) return null;
  if (ptr === 0n) throw walk.refusal(`has NULL as its ${name}, which must have ${size} bytes`);
  if (ptr + BigInt(size) > 1n << 64n) {
    throw walk.refusal(`has ${size} bytes at address ${ptr}, beyond the end of memory`);
  }
  return { ptr, size, isHost };
}
