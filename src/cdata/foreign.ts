/**
 * Foreign objects that export Arrow's structs through their own protocol, such as Python's capsules. They implement the
 * methods that the symbols below name.
 *
 * @module
 */
import type { ArrowPointers, ArrowStreamPointer } from "./device_array.ts";
import type { ArrowField } from "./type.ts";

/** Structs exported by a foreign object. */
export interface OpenedArrow<Pointers> {
  /** Their addresses. */
  readonly pointers: Pointers;
  /** Releases the object that owned the structs: a capsule. */
  readonly close: () => void;
}

/** The method that exports an array. Its argument is the requested schema; null: any. */
export const arrowArraySource: unique symbol = Symbol("arrowArraySource");

/** The method that exports a stream. Its argument is the requested schema; null: any. */
export const arrowStreamSource: unique symbol = Symbol("arrowStreamSource");

/** An object that exports an array or a stream. */
export interface ForeignArrow {
  [arrowArraySource](requested: ArrowField | null): OpenedArrow<ArrowPointers>;
  [arrowStreamSource](requested: ArrowField | null): OpenedArrow<ArrowStreamPointer>;
}

/** The structs of an array that a foreign object exports; null if it does not. */
export function openForeignArray(source: unknown, requested: ArrowField | null): OpenedArrow<ArrowPointers> | null {
  return isForeign(source) ? source[arrowArraySource]?.(requested) ?? null : null;
}

/** The struct of a stream that a foreign object exports; null if it does not. */
export function openForeignStream(
  source: unknown,
  requested: ArrowField | null,
): OpenedArrow<ArrowStreamPointer> | null {
  return isForeign(source) ? source[arrowStreamSource]?.(requested) ?? null : null;
}

/** The method that returns the pointer of a capsule with a given name. */
export const capsuleSource: unique symbol = Symbol("capsuleSource");

/** The pointer of a capsule. */
export interface CapsulePointer {
  readonly pointer: bigint;
  /** Takes ownership from the capsule, which is renamed to `used_` and its name. */
  readonly take: () => void;
}

/** A capsule of a foreign object. */
interface ForeignCapsule {
  /** @throws {ExchangeError} if it is not a capsule of that name, or its pointer has been taken before */
  [capsuleSource](name: string): CapsulePointer;
}

/** Whether a value may be a capsule. */
export function isForeignCapsule(source: unknown): source is ForeignCapsule {
  return isForeign(source) && (source as Partial<ForeignCapsule>)[capsuleSource] !== undefined;
}

function isForeign(source: unknown): source is Partial<ForeignArrow> {
  return (typeof source === "object" || typeof source === "function") && source !== null;
}
