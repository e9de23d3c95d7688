/**
 * Arrays of Vortex as those see them who hand them on: arrays of Arrow, that say as well which nodes they are made of.
 * Whoever makes such arrays, and whoever hands them on, know each other by this only.
 *
 * @module
 */
import type { ArrowDeviceArray } from "../cdata/mod.ts";
import type { StridedMemoryView } from "../view/mod.ts";

/** The method that says which nodes an array is made of. */
export const vortexForm: unique symbol = Symbol("vortexForm");

/** A node of an array. */
export interface VortexNodeForm {
  /** The encoding, by its serialized id. */
  readonly id: string;
  /** A flatbuffer. */
  readonly dtype: Uint8Array;
  /** Elements. */
  readonly length: number;
  /** What the encoding says of itself. */
  readonly metadata: Uint8Array;
  /** Bytes of the host, and the power of two that their elements are aligned to. */
  readonly buffers: readonly (readonly [bytes: StridedMemoryView, alignment: number])[];
  /** The nodes below it. */
  readonly children: readonly VortexNodeForm[];
}

/** An array of Vortex. */
export interface VortexForm {
  /** The elements by the Arrow C device interface. */
  toArrowDevice(): ArrowDeviceArray;
  /** The nodes. The views in them keep the memory. */
  [vortexForm](): VortexNodeForm;
}

/** Whether a value is an array of Vortex. */
export function isVortexForm(value: object): value is VortexForm {
  return vortexForm in value;
}
