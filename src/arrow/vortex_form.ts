/**
 * Vortex arrays as seen by code that passes them on: Arrow arrays that can also list their nodes. The code that makes
 * such arrays and the code that passes them on share only this interface.
 *
 * @module
 */
import type { ArrowDeviceArray } from "../cdata/mod.ts";
import type { StridedMemoryView } from "../view/mod.ts";

/** The method that returns the nodes of an array. */
export const vortexForm: unique symbol = Symbol("vortexForm");

/** A node of an array. */
export interface VortexNodeForm {
  /** The encoding, by its serialized id. */
  readonly id: string;
  /** The element type, as a flatbuffer. */
  readonly dtype: Uint8Array;
  /** Number of elements. */
  readonly length: number;
  /** Metadata of the encoding. */
  readonly metadata: Uint8Array;
  /** Host bytes, and the power of two to which their elements are aligned. */
  readonly buffers: readonly (readonly [bytes: StridedMemoryView, alignment: number])[];
  /** The child nodes. */
  readonly children: readonly VortexNodeForm[];
}

/** A Vortex array. */
export interface VortexForm {
  /** The elements by the Arrow C device interface. */
  toArrowDevice(): ArrowDeviceArray;
  /** The nodes. Their views keep the memory alive. */
  [vortexForm](): VortexNodeForm;
}

/** Whether a value is a Vortex array. */
export function isVortexForm(value: object): value is VortexForm {
  return vortexForm in value;
}
