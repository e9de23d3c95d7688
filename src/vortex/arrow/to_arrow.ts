/**
 * Decoded arrays as Arrow arrays, over the same memory.
 *
 * @module
 */
import { ArrowArray } from "../../arrow/mod.ts";
import { type ArrowField, childrenOf, countSet } from "../../cdata/mod.ts";
import { StridedMemoryView } from "../../view/mod.ts";
import { bitmapFrom } from "../bits.ts";
import type { CanonicalArray, DecimalArray, PrimitiveArray } from "../canonical.ts";
import { memoryOf } from "../handed_buffer.ts";
import { widen } from "../ops/concat.ts";
import { flatten } from "../ops/flatten.ts";
import { valuesAt } from "../ptype.ts";
import type { VortexSession } from "../session.ts";
import { type Allocate, type Bytes, bytesOf } from "../wire/source.ts";
import { arrowDecimalBits, fieldOf } from "./types.ts";

/** A decoded array as an Arrow array. Only bits that start inside a byte and decimals of another width are copied. */
export function toArrowArray(
  array: CanonicalArray,
  name: string,
  session: VortexSession,
  allocate: Allocate,
): ArrowArray {
  return arrayOf(array, fieldOf(array.dtype, name, session, array), allocate);
}

// law vortex/arrayOf: vortex/core/built
function arrayOf(given: CanonicalArray, field: ArrowField, allocate: Allocate): ArrowArray {
  // Nothing is kept inside maps and extensions: the field has no dictionary there, whatever the array has.
  const isKept = field.type.kind === "dictionary" || field.type.kind === "run_end_encoded";
  const array = isKept ? given : flatten(given, allocate);
  const { length } = array;
  const valid = array.validity === null ? length : countSet(array.validity, 0, length);
  const validity = array.validity === null || valid === length ? null : viewOf(array.validity);
  const plain = { field, length, nullCount: length - valid };
  const child = (one: CanonicalArray, at = 0): ArrowArray => {
    const inner = childrenOf(field.type)[at];
    if (inner === undefined) throw new TypeError(`A field of ${field.type.kind} has no child ${at}`);
    return arrayOf(one, inner, allocate);
  };
  switch (array.kind) {
    case "null":
      return new ArrowArray({ field, length, buffers: [] });
    case "bool":
      return new ArrowArray({
        ...plain,
        buffers: [validity, viewOf(bitmapFrom(array.bits, array.offset, length, allocate))],
      });
    case "primitive":
      return new ArrowArray({ ...plain, buffers: [validity, viewOf(bytesOf(array.values))] });
    case "decimal":
      return new ArrowArray({ ...plain, buffers: [validity, viewOf(decimalsOf(array, allocate))] });
    case "varbinview": {
      const { views, data } = array;
      const sizes = BigInt64Array.from(data, ({ length }) => BigInt(length));
      const buffers = [validity, viewOf(views), ...data.map(viewOf), viewOf(bytesOf(sizes))];
      return new ArrowArray({ ...plain, buffers });
    }
    case "list":
      return new ArrowArray({
        ...plain,
        buffers: [validity, viewOf(bytesOf(array.offsets))],
        children: [child(array.elements)],
      });
    case "fixedSizeList":
      return new ArrowArray({ ...plain, buffers: [validity], children: [child(array.elements)] });
    case "struct":
      return new ArrowArray({ ...plain, buffers: [validity], children: array.fields.map(child) });
    case "extension": {
      const { storage } = array;
      if (field.type.kind === "fixed_size_binary" && storage.kind === "fixedSizeList") {
        const { elements } = storage;
        const bytes = elements.kind === "primitive" ? bytesOf(elements.values) : new Uint8Array();
        return new ArrowArray({ ...plain, buffers: [validity, viewOf(bytes)] });
      }
      return arrayOf(storage, field, allocate);
    }
    case "dictionary": {
      if (field.type.kind !== "dictionary") throw new TypeError(`A dictionary is not ${field.type.kind}`);
      const indices = indicesOf(array.codes, field.type.index.bits / 8, allocate);
      const dictionary = arrayOf(array.values, field.type.values, allocate);
      return new ArrowArray({ ...plain, buffers: [validity, viewOf(indices)], dictionary });
    }
    case "runEnd": {
      if (field.type.kind !== "run_end_encoded") throw new TypeError(`Runs are not ${field.type.kind}`);
      const { ends } = array;
      const runEnds = { field: field.type.runEnds, length: ends.length, buffers: [null, viewOf(bytesOf(ends))] };
      const children = [new ArrowArray(runEnds), arrayOf(array.values, field.type.values, allocate)];
      return new ArrowArray({ field, length, buffers: [], children });
    }
  }
}

/** A view of bytes. Over handed-over memory it is a view of the memory itself, so that exports retain it. */
export function viewOf(bytes: Bytes): StridedMemoryView {
  const memory = memoryOf(bytes);
  if (memory === undefined) return StridedMemoryView.fromTypedArray(bytes);
  const { byteOffset: offset, length } = bytes;
  return StridedMemoryView.fromBuffer(memory, { shape: [length], dtype: "uint8", offset });
}

// law vortex/decimalsOf: vortex/core/ipc
/** Decimals at Arrow's width for their precision, which fits every value. */
function decimalsOf({ bytes, width, length, dtype }: DecimalArray, allocate: Allocate): Bytes {
  const wanted = arrowDecimalBits(dtype.precision) / 8;
  if (wanted === width) return bytes;
  const out = allocate(length * wanted);
  if (wanted > width) widen(bytes.subarray(0, length * width), width, out, wanted);
  else {
    for (let i = 0; i < length; i++) out.set(bytes.subarray(i * width, i * width + wanted), i * wanted);
  }
  return out;
}

/** Codes widened to twice their size, so that none becomes negative. */
function indicesOf({ values, length }: PrimitiveArray, width: number, allocate: Allocate): Bytes {
  const bytes = allocate(length * width);
  const words = valuesAt(width === 2 ? "u16" : "u32", bytes.buffer, 0, width === 8 ? 2 * length : length);
  const step = width === 8 ? 2 : 1;
  for (let i = 0; i < length; i++) words[i * step] = values[i] ?? 0;
  return bytes;
}
