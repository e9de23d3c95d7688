/**
 * Arrays of a single value.
 *
 * @module
 */
import type { Allocate } from "../wire/source.ts";
import { bytesForBits, fillBits } from "../bits.ts";
import { type CanonicalArray, INLINE_BYTES } from "../canonical.ts";
import { entriesOf, type VortexDType } from "../dtype.ts";
import { valuesAt, widthOf } from "../ptype.ts";
import { scalarBytes, type VortexScalar } from "../wire/scalar.ts";
import { concatOf } from "./concat.ts";
import { allNull, zeros } from "./fill.ts";
import { takeOf } from "./take.ts";

// law vortex/repeat: vortex/core/built
/** Repeats an element. */
export function repeat(dtype: VortexDType, scalar: VortexScalar, length: number, allocate: Allocate): CanonicalArray {
  if (scalar === null) return allNull(dtype, length, allocate);
  const plain = { length, validity: null };
  switch (dtype.kind) {
    case "bool": {
      const bits = allocate(bytesForBits(length));
      if (scalar === true) fillBits(bits, 0, length);
      return { ...plain, kind: "bool", dtype, bits, offset: 0 };
    }
    case "primitive": {
      const bytes = allocate(length * widthOf(dtype.ptype));
      fillBytes(bytes, scalarBytes(dtype, scalar));
      return { ...plain, kind: "primitive", dtype, values: valuesAt(dtype.ptype, bytes.buffer, 0, length) };
    }
    case "decimal": {
      const one = scalarBytes(dtype, scalar);
      const bytes = allocate(length * one.length);
      fillBytes(bytes, one);
      return { ...plain, kind: "decimal", dtype, width: one.length, bytes };
    }
    case "utf8":
    case "binary": {
      const views = allocate(16 * length);
      const data = scalarBytes(dtype, scalar);
      const isInline = data.length <= INLINE_BYTES;
      const view = new Uint8Array(16);
      new DataView(view.buffer).setUint32(0, data.length, true);
      view.set(data.subarray(0, isInline ? INLINE_BYTES : 4), 4);
      fillBytes(views, view);
      return { ...plain, kind: "varbinview", dtype, views, data: isInline ? [] : [data] };
    }
    case "extension":
      return { ...plain, kind: "extension", dtype, storage: repeat(dtype.storage, scalar, length, allocate) };
    default:
      return length === 0
        ? zeros(dtype, 0, allocate)
        : takeOf(single(dtype, scalar, allocate), allocate(length), null, allocate);
  }
}

/** An array with one element: a list, a map or a struct. */
function single(dtype: VortexDType, scalar: VortexScalar, allocate: Allocate): CanonicalArray {
  if (!Array.isArray(scalar)) throw new TypeError(`Expected the parts of a ${dtype.kind}`);
  const parts: readonly VortexScalar[] = scalar;
  const together = (element: VortexDType): CanonicalArray =>
    concatOf(element, parts.map((part) => repeat(element, part, 1, allocate)), allocate);
  const plain = { length: 1, validity: null };
  switch (dtype.kind) {
    case "struct": {
      const fields = dtype.fields.map((field, i) => repeat(field, parts[i] ?? null, 1, allocate));
      return { ...plain, kind: "struct", dtype, fields };
    }
    case "fixedSizeList":
      return { ...plain, kind: "fixedSizeList", dtype, size: dtype.size, elements: together(dtype.element) };
    case "list":
    case "map": {
      const elements = together(dtype.kind === "list" ? dtype.element : entriesOf(dtype));
      return { ...plain, kind: "list", dtype, offsets: Int32Array.of(0, parts.length), elements };
    }
    default:
      throw new TypeError(`A ${dtype.kind} has no parts`);
  }
}

/** Fills bytes with copies of `one`. */
function fillBytes(to: Uint8Array, one: Uint8Array): void {
  if (to.length === 0) return;
  to.set(one);
  for (let done = one.length; done < to.length; done *= 2) to.copyWithin(done, 0, Math.min(done, to.length - done));
}
