/**
 * Typed arrays as views, and views as typed arrays.
 *
 * @module
 */
import { type ArrayParts, byteCount, checkOpen, readElements } from "../copy/mod.ts";
import type { CudaStream } from "../device/mod.ts";
import {
  checkOptions,
  denseLayout,
  type DType,
  type Shape,
  type StridedLayout,
  type TypedArray,
} from "../layout/mod.ts";
import { addressWithin, MemoryBuffer, noAddress } from "../memory/mod.ts";
import { unwrittenArrayBuffer } from "../native/mod.ts";

/** Options of `StridedMemoryView.fromTypedArray`. */
interface TypedArrayOptions {
  readonly shape?: Shape;
}

const fromTypedArrayOptionNames = { shape: true } as const;

/** The layout of a typed array's elements. See `StridedMemoryView.fromTypedArray`. */
export function layoutOfArray(array: TypedArray, { itemsize }: DType, options: TypedArrayOptions): StridedLayout {
  checkOptions(options, fromTypedArrayOptionNames);
  const { length } = array;
  // With its ArrayBuffer's size, which is checked as well, this finds lengths that a subclass or a property overrides.
  if (length * itemsize !== array.byteLength) throw otherBytes(array);
  const layout = denseLayout(options.shape ?? [length], itemsize);
  if (layout.volume !== length) throw otherCount(array, layout);
  return layout;
}

function otherBytes({ length, byteLength }: TypedArray): TypeError {
  return new TypeError(`Cannot view ${length} elements of ${byteLength} bytes: the array's own length is overridden`);
}

/** Separate, so that V8 compiles the code that makes a view into one function. */
function otherCount(array: TypedArray, layout: StridedLayout): RangeError {
  return new RangeError(
    `Cannot view ${array.length} elements as shape (${layout.shape.join(", ")}): expected ${layout.volume}`,
  );
}

/** The memory of a typed array, which its buffer keeps alive. */
export function memoryOfArray({ buffer, byteOffset, byteLength }: TypedArray): MemoryBuffer {
  if (buffer instanceof ArrayBuffer) {
    return MemoryBuffer.fromOwner(addressWithin(buffer, byteOffset, byteLength), byteLength, null, buffer);
  }
  const ifShared = "Cannot view an array in shared memory, which has no address: copy it first, with slice()";
  throw noAddress("view", buffer, ifShared);
}

/** Copies an array's elements to a typed array. See `StridedMemoryView.toTypedArray`. */
export async function toTypedArray(array: ArrayParts, stream: CudaStream | undefined): Promise<TypedArray> {
  checkOpen(array);
  const copy = new (array.dtype.require("typedArray"))(unwrittenArrayBuffer(byteCount(array)));
  if (array.layout.volume > 0) {
    await readElements(array, new Uint8Array(copy.buffer, copy.byteOffset, copy.byteLength), stream);
  }
  return copy;
}
