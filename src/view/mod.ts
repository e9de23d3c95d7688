/**
 * `StridedMemoryView`: memory viewed as an n-dimensional array.
 *
 * A view composes what the rooms below do with the parts of an array: layouts select and reshape, `copy/` copies,
 * `dlpack/` and `cdata/` export and import, `order/` lends. `StridedMemoryView.from` takes any array: `from.ts` lists
 * the protocols, in the order in which they are tried. Foreign objects that need their own way of being viewed, such as
 * Python's, have a method under the symbol `arraySource`.
 *
 * The class is composed of its concerns, one file each: where elements lie (`shaped_array.ts`), what they are
 * (`element_array.ts`: `element_access.ts`, `equality.ts`, `print.ts`), how they are exported (`exported_array.ts`),
 * how they are copied (`copyable_array.ts`: `place.ts`). `create.ts` makes arrays in new memory.
 *
 * @module
 */
export type { CopyableArray } from "./copyable_array.ts";
export type { CreateOptions } from "./create.ts";
export type { AsTypedArrayOptions, ElementArray, ToTypedArrayOptions } from "./element_array.ts";
export type { ExportedArray } from "./exported_array.ts";
export { arraySource, type ForeignArray, isArraySource, wayOut } from "./from.ts";
export type { FromBufferOptions } from "./from_buffer.ts";
export { jsonOf } from "./json_of.ts";
export { Lease } from "./lease.ts";
export type { NestedValues } from "./nested_values.ts";
export {
  type ArrayCopyOptions,
  type ArrayPlaceOptions,
  checkPlaceOfArray,
  checkResource,
  type Place,
  placeOptionNames,
} from "./place.ts";
export type { ShapedArray, ViewOptions } from "./shaped_array.ts";
export { makeView, StridedMemoryView, viewOf } from "./strided_memory_view.ts";
