/**
 * Views from parts.
 *
 * @module
 */
import type { ArrayParts } from "../copy/mod.ts";
import { makeView, StridedMemoryView } from "./strided_memory_view.ts";

/** Makes a view from parts that fit each other. */
export function viewOf({ buffer, offset, layout, dtype, readonly }: ArrayParts): StridedMemoryView {
  return StridedMemoryView[makeView](buffer, offset, layout, dtype, readonly, null);
}
