/**
 * Foreign objects that hand Arrow's structs over in a way of their own, as those of Python do by capsules. They say so by
 * methods under symbols.
 *
 * @module
 */
import type { ArrowPointers, ArrowStreamPointer } from "./device_array.ts";
import type { ArrowField } from "./type.ts";

/** Structs that a foreign object has handed over. */
export interface OpenedArrow<Pointers> {
  /** Where they are. */
  readonly pointers: Pointers;
  /** Releases what held them. */
  readonly close: () => void;
}

/** The method that hands over the structs of an array. Its argument is the field that is wanted; null: any. */
export const arrowArraySource: unique symbol = Symbol("arrowArraySource");

/** The method that hands over the struct of a stream. Its argument is the field that is wanted; null: any. */
export const arrowStreamSource: unique symbol = Symbol("arrowStreamSource");

/** An object that hands over an array or a stream. */
export interface ForeignArrow {
  [arrowArraySource](requested: ArrowField | null): OpenedArrow<ArrowPointers>;
  [arrowStreamSource](requested: ArrowField | null): OpenedArrow<ArrowStreamPointer>;
}

/** The structs of an array, if an object is such a foreign one; else null. */
export function openForeignArray(source: unknown, requested: ArrowField | null): OpenedArrow<ArrowPointers> | null {
  return isForeign(source) ? source[arrowArraySource]?.(requested) ?? null : null;
}

/** The struct of a stream, if an object is such a foreign one; else null. */
export function openForeignStream(
  source: unknown,
  requested: ArrowField | null,
): OpenedArrow<ArrowStreamPointer> | null {
  return isForeign(source) ? source[arrowStreamSource]?.(requested) ?? null : null;
}

function isForeign(source: unknown): source is Partial<ForeignArrow> {
  return (typeof source === "object" || typeof source === "function") && source !== null;
}
