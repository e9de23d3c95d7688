/**
 * Arrays of only nulls or only zeros.
 *
 * @module
 */
import type { Allocate } from "../wire/source.ts";
import { bytesForBits } from "../bits.ts";
import type { CanonicalArray } from "../canonical.ts";
import { decimalWidth, entriesOf, type VortexDType } from "../dtype.ts";
import { VortexError } from "../error.ts";
import { valuesAt, widthOf } from "../ptype.ts";

/** An array of nulls. The dtype must be nullable. */
export function allNull(dtype: VortexDType, length: number, allocate: Allocate): CanonicalArray {
  const array = zeros(dtype, length, allocate);
  if (array.kind === "null" || length === 0) return array;
  const validity = allocate(bytesForBits(length));
  if (array.kind !== "extension") return { ...array, validity };
  return { ...array, validity, storage: allNull(array.dtype.storage, length, allocate) };
}

/** Zero, empty or false elements, non-null unless the dtype is null: placeholders where the values do not matter. */
export function zeros(dtype: VortexDType, length: number, allocate: Allocate): CanonicalArray {
  const plain = { length, validity: null };
  switch (dtype.kind) {
    case "null":
      return { ...plain, kind: "null", dtype };
    case "bool":
      return { ...plain, kind: "bool", dtype, bits: allocate(bytesForBits(length)), offset: 0 };
    case "primitive": {
      const { buffer } = allocate(length * widthOf(dtype.ptype));
      return { ...plain, kind: "primitive", dtype, values: valuesAt(dtype.ptype, buffer, 0, length) };
    }
    case "decimal": {
      const width = decimalWidth(dtype.precision);
      return { ...plain, kind: "decimal", dtype, width, bytes: allocate(length * width) };
    }
    case "utf8":
    case "binary":
      return { ...plain, kind: "varbinview", dtype, views: allocate(16 * length), data: [] };
    case "list":
    case "map": {
      const offsets = new Int32Array(allocate(4 * (length + 1)).buffer, 0, length + 1);
      const element = dtype.kind === "list" ? dtype.element : entriesOf(dtype);
      return { ...plain, kind: "list", dtype, offsets, elements: zeros(element, 0, allocate) };
    }
    case "fixedSizeList": {
      const { size } = dtype;
      return { ...plain, kind: "fixedSizeList", dtype, size, elements: zeros(dtype.element, length * size, allocate) };
    }
    case "struct":
      return { ...plain, kind: "struct", dtype, fields: dtype.fields.map((field) => zeros(field, length, allocate)) };
    case "extension":
      return { ...plain, kind: "extension", dtype, storage: zeros(dtype.storage, length, allocate) };
    case "variant":
    case "union":
      throw new VortexError("dtype", `Arrays of ${dtype.kind} are not supported`);
  }
}
