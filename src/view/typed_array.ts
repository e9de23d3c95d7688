/**
 * Typed arrays as views, and views as typed arrays.
 *
 * @module
 */
import { type ArrayParts, byteCount, type MakeArray, readElements } from "../copy/mod.ts";
import { checkOptions, DType, type Shape, StridedLayout, type TypedArray } from "../layout/mod.ts";
import { MemoryBuffer } from "../memory/mod.ts";
import { newArrayBuffer } from "../native/mod.ts";

const fromTypedArrayOptionNames = { shape: true } as const;

/** Views a typed array. See `StridedMemoryView.fromTypedArray`. */
export function fromTypedArray<T>(array: TypedArray, options: { readonly shape?: Shape }, make: MakeArray<T>): T {
  checkOptions(options, fromTypedArrayOptionNames);
  const dtype = DType.fromTypedArray(array);
  const layout = StridedLayout.dense(options.shape ?? [array.length], dtype.itemsize);
  if (layout.volume !== array.length) {
    throw new RangeError(
      `Cannot view ${array.length} elements as shape (${layout.shape.join(", ")}): expected ${layout.volume}`,
    );
  }
  const { buffer: owner, byteOffset, byteLength } = array;
  if (!(owner instanceof ArrayBuffer)) {
    throw new TypeError("Cannot view an array in shared memory, which has no address. Copy the array first.");
  }
  return make(MemoryBuffer.fromArrayBuffer(owner, byteOffset, byteLength), 0, layout, dtype, false, null);
}

/** Copies an array's elements to a typed array. See `StridedMemoryView.toTypedArray`. */
export async function toTypedArray(array: ArrayParts): Promise<TypedArray> {
  const copy = new (array.dtype.require("typedArray"))(newArrayBuffer(byteCount(array)));
  if (array.layout.volume > 0) {
    await readElements(array, new Uint8Array(copy.buffer, copy.byteOffset, copy.byteLength));
  }
  return copy;
}
