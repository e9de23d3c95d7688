/**
 * Views with a given layout.
 *
 * @module
 */
import { type MemoryBuffer, StridedMemoryView } from "../../mod.ts";
import { DType, type StridedLayout } from "../../src/layout/mod.ts";

/** The layout of a view, and the byte where it begins. */
export interface LaidOut {
  readonly layout: StridedLayout;
  readonly offset: number;
  readonly dtype: DType | string;
  readonly readonly?: boolean;
}

/** A view of a buffer with a layout. @throws {RangeError} if it exceeds the buffer */
export function laidOut(buffer: MemoryBuffer, { layout, offset, dtype, readonly = false }: LaidOut): StridedMemoryView {
  const nothing = StridedMemoryView.fromBuffer(buffer, { shape: [0], dtype: "uint8", offset, readonly });
  return nothing.view({ layout, dtype: DType.from(dtype) });
}
