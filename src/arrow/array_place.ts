/**
 * Copies of arrays on a device, or in host memory.
 *
 * @module
 */
import { hasViews } from "../cdata/mod.ts";
import type { ArrayPlaceOptions, Place, StridedMemoryView } from "../view/mod.ts";
import type { ArrowArray, ArrowArrayParts } from "./array.ts";

// law arrow/arrayAt: arrow/place
/** An array whose buffers are at a place: copies of those that are elsewhere, which closing the array frees. */
export function arrayAt(
  array: ArrowArray,
  place: Place,
  options: ArrayPlaceOptions,
  make: (parts: ArrowArrayParts) => ArrowArray,
): ArrowArray {
  using undo = new DisposableStack(); // unless all are there
  const copies = undo.use(new DisposableStack());
  const at = (one: ArrowArray): ArrowArrayParts => {
    const { field, length, offset, knownNullCount: nullCount, buffers, children, dictionary } = one;
    const last = hasViews(field.type) ? buffers.length - 1 : -1; // whose sizes the host reads
    const copyAt = (view: StridedMemoryView, i: number) => {
      void view.buffer.ptr; // throws if it is closed
      return i === last ? view.copy() : view.to(place, options);
    };
    return {
      field,
      length,
      offset,
      nullCount,
      buffers: buffers.map((view, i) => view === null ? null : copies.use(copyAt(view, i))),
      children: children.map((child) => make(at(child))),
      dictionary: dictionary === null ? null : make(at(dictionary)),
    };
  };
  const made = make({ ...at(array), onClose: () => copies.dispose() });
  undo.move();
  return made;
}
