/**
 * Whether two arrays have the same elements.
 *
 * @module
 */
import { type ArrayParts, byteCount, checkOpen } from "../copy/mod.ts";
import { dlpackCode, type ElementValue, type Scalar, type TypedArray } from "../layout/mod.ts";
import { asTypedArray } from "./element_access.ts";
import { copyOf } from "./place.ts";

// law view/hasEqualElements: view/elements
/** Whether shapes, types and elements are equal. See `StridedMemoryView.equals`. */
export function hasEqualElements(one: ArrayParts, other: ArrayParts): boolean {
  checkOpen(one);
  checkOpen(other);
  const { shape } = one.layout;
  if (!one.dtype.equals(other.dtype) || shape.length !== other.layout.shape.length) return false;
  if (shape.some((extent, axis) => extent !== other.layout.shape[axis])) return false;
  if (one.layout.volume === 0) return true;
  const [here, there] = [onHost(one), onHost(other)];
  // Complex numbers are compared by their parts, and booleans by truth value.
  if (one.dtype.typedArray !== null && one.dtype.dlpack.code !== dlpackCode.bool) {
    return isEvery(asTypedArray(here), asTypedArray(there));
  }
  return elementsOf(here).every(isSameAs(elementsOf(there)));
}

/** A private copy of the elements in host memory, in C order. */
function onHost(array: ArrayParts): ArrayParts {
  return copyOf<ArrayParts>(
    array,
    { device: "host" },
    (buffer, offset, layout, dtype, readonly) => ({ buffer, offset, layout, dtype, readonly }),
  );
}

function isEvery(one: TypedArray, other: TypedArray): boolean {
  for (let at = 0; at < one.length; at++) if (one[at] !== other[at]) return false;
  return true;
}

function elementsOf(array: ArrayParts): ElementValue[] {
  const { buffer, layout, dtype } = array;
  const bytes = buffer.bytes();
  const view = new DataView(bytes.buffer, bytes.byteOffset, byteCount(array));
  return Array.from({ length: layout.volume }, (_, at) => dtype.read(view, at * dtype.itemsize));
}

function isSameAs(others: readonly ElementValue[]): (element: ElementValue, at: number) => boolean {
  return (element, at) => {
    const other = others[at];
    if (Array.isArray(element)) return element.every((lane: Scalar, place) => lane === lanesOf(other)[place]);
    return element === other;
  };
}

function lanesOf(value: ElementValue | undefined): readonly Scalar[] {
  return Array.isArray(value) ? value : [];
}
