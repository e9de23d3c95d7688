/**
 * Views by a layout that is there already.
 *
 * @module
 */
import { type MemoryBuffer, StridedMemoryView } from "../../mod.ts";
import { DType, type StridedLayout } from "../../src/layout/mod.ts";

/** What is seen, and from which byte on. */
export interface LaidOut {
  readonly layout: StridedLayout;
  readonly offset: number;
  readonly dtype: DType | string;
  readonly readonly?: boolean;
}

/** A view of a buffer by a layout. @throws {RangeError} if it reaches outside */
export function laidOut(buffer: MemoryBuffer, { layout, offset, dtype, readonly = false }: LaidOut): StridedMemoryView {
  const nothing = StridedMemoryView.fromBuffer(buffer, { shape: [0], dtype: "uint8", offset, readonly });
  return nothing.view({ layout, dtype: DType.from(dtype) });
}
