/**
 * The header of a message that carries an array: the name of its element type, and its shape.
 *
 * @module
 */
import { DType, type Shape } from "../layout/mod.ts";

/** Element type and shape. */
export interface ArrayHeader {
  readonly dtype: DType;
  readonly shape: Shape;
}

/** Encodes the header of an array as JSON. */
export function writeArrayHeader({ dtype, shape }: ArrayHeader): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(JSON.stringify({ dtype: dtype.name, shape }));
}

// law ucx/readArrayHeader: ucx/arrays
/**
 * Reads a header.
 *
 * @param bytes the number of bytes that came with it, which the array must have
 * @throws {TypeError} if it is not an array header, or describes an array of another size
 */
export function readArrayHeader(header: Uint8Array, bytes: number): ArrayHeader {
  let given: unknown;
  try {
    given = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(header));
  } catch {
    throw noArray(`a header of ${header.length} other bytes`);
  }
  const { dtype: name, shape }: { dtype?: unknown; shape?: unknown } = Object(given);
  if (typeof name !== "string" || !isShape(shape)) throw noArray(JSON.stringify(given));
  let dtype: DType;
  try {
    dtype = DType.from(name);
  } catch {
    throw noArray(`elements of type ${JSON.stringify(name)}`);
  }
  const expected = Math.ceil(shape.reduce((product, extent) => product * extent, 1) * dtype.itemsize);
  if (expected !== bytes) {
    throw noArray(`${bytes} bytes for shape (${shape.join(", ")}) of ${name}, which has ${expected}`);
  }
  return { dtype, shape };
}

function isShape(shape: unknown): shape is number[] {
  return Array.isArray(shape) && shape.length <= 64 &&
    shape.every((extent) => Number.isSafeInteger(extent) && extent >= 0);
}

function noArray(got: string): TypeError {
  return new TypeError(`Cannot receive an array: expected its element type and shape, got ${got}`);
}
