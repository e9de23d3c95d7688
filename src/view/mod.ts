/**
 * `StridedMemoryView`: memory viewed as an n-dimensional array.
 *
 * A view composes what the rooms below do with the parts of an array: layouts select and reshape, `copy/` copies,
 * `dlpack/` and `cdata/` hand over, `order/` lends. `StridedMemoryView.from` takes whatever is an array: `from.ts` has
 * the protocols, in the order in which an object is asked for them. Foreign objects that are seen in a way of their
 * own, as those of Python, say so by a method under the symbol `arraySource`.
 *
 * The class is put together of what it does, a file for each: where elements lie (`shaped_array.ts`), what they are
 * (`element_array.ts`: `element_access.ts`, `equality.ts`, `print.ts`), how they are handed out (`exported_array.ts`).
 * Arrays of new memory are made by `create.ts`, copies by `place.ts`.
 *
 * @module
 */
export type { CreateOptions } from "./create.ts";
export type { AsTypedArrayOptions, ElementArray } from "./element_array.ts";
export type { ExportedArray } from "./exported_array.ts";
export { arraySource, isArraySource } from "./from.ts";
export type { FromBufferOptions } from "./from_buffer.ts";
export { Lease } from "./lease.ts";
export type { NestedValues } from "./nested_values.ts";
export {
  type ArrayCopyOptions,
  type ArrayPlaceOptions,
  checkPlaceOfArray,
  checkResource,
  type Place,
} from "./place.ts";
export type { ShapedArray, ViewOptions } from "./shaped_array.ts";
export { makeView, StridedMemoryView } from "./strided_memory_view.ts";
export { viewOf } from "./view_of.ts";
