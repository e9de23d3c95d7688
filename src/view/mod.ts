/**
 * `StridedMemoryView`: memory viewed as an n-dimensional array.
 *
 * A view composes what the rooms below do with the parts of an array: layouts select and reshape, `copy/` copies,
 * `dlpack/` and `cdata/` hand over, `order/` lends. `StridedMemoryView.from` takes whatever is an array: `from.ts` has
 * the protocols, in the order in which an object is asked for them. Foreign objects that are seen in a way of their
 * own, as those of Python, say so by a method under the symbol `arraySource`.
 *
 * @module
 */
export { arraySource, isArraySource } from "./from.ts";
export type { FromBufferOptions } from "./from_buffer.ts";
export { Lease } from "./lease.ts";
export { makeView, StridedMemoryView } from "./strided_memory_view.ts";
export { viewOf } from "./view_of.ts";
