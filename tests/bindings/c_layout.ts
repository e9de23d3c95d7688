/** The layout of C structs, computed independently to check `src/ffi/struct.ts`. */
import type { CScalar, Field, StructDescription } from "../../bindings/abi.ts";

/** A struct's layout, in bytes. */
export interface Layout {
  readonly size: number;
  readonly alignment: number;
  readonly fields: { readonly [field: string]: { readonly offset: number; readonly size: number } };
}

/** Bytes of a scalar, also its alignment. The width is in the name; names without a width are 64-bit. */
function widthOf(scalar: CScalar): number {
  const bits = scalar.slice(1);
  return /^\d+$/.test(bits) ? Number(bits) / 8 : 8;
}

/** Size and alignment of a field. */
function extentOf(field: Field): { size: number; alignment: number } {
  if (typeof field === "string") return { size: widthOf(field), alignment: widthOf(field) };
  if (Symbol.iterator in field) {
    const [element, count] = field as readonly [CScalar | StructDescription, number];
    const { size, alignment } = extentOf(element);
    return { size: size * count, alignment };
  }
  return cLayout(field);
}

/** Lays out a struct: every field goes where its alignment allows, and so does the next struct of an array. */
export function cLayout(description: StructDescription): Layout {
  const fields: Record<string, { offset: number; size: number }> = {};
  let size = 0;
  let alignment = 1;
  for (const [name, field] of Object.entries(description)) {
    const extent = extentOf(field);
    while (size % extent.alignment !== 0) size++;
    fields[name] = { offset: size, size: extent.size };
    size += extent.size;
    if (extent.alignment > alignment) alignment = extent.alignment;
  }
  while (size % alignment !== 0) size++;
  return { size, alignment, fields };
}
