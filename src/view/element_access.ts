/**
 * Elements in host-accessible memory, read and written one by one or viewed as a typed array.
 *
 * Page-locked and managed memory has a home stream, for which each access waits first: reads see what that stream has
 * written. A loan to another stream orders that stream's work before the home stream's next work.
 *
 * @module
 */
import { type ArrayParts, byteCount, checkOpen } from "../copy/mod.ts";
import { isHostObserved, noteHostAccess } from "../driver/mod.ts";
import {
  bytesBefore,
  bytesFrom,
  type Complex,
  type DType,
  type ElementValue,
  type Scalar,
  type Shape,
  show,
  type TypedArray,
} from "../layout/mod.ts";
import { fitsArray, partOf, placeOf } from "../memory/mod.ts";
import { hostWaits, noteElementAccess } from "../order/mod.ts";

// law view/readElement: view/elements, view/elements_order
/** The element at an index. See `StridedMemoryView.get`. */
export function readElement(array: ArrayParts, index: readonly number[], call: string): ElementValue {
  const at = elementAt(array, index);
  checkOnHost(array, "read an element of device memory");
  hostWaits(array.buffer);
  noteElement(array, at, false, call);
  return array.dtype.read(memoryAt(array, at), at % 1);
}

// law view/writeElement: view/elements, view/elements_order
/** Sets the element at an index. See `StridedMemoryView.set`. */
export function writeElement(array: ArrayParts, value: ElementValue, index: readonly number[]): void {
  const at = elementAt(array, index);
  checkOnHost(array, "write an element of device memory");
  if (array.readonly) throw new TypeError("Cannot write an element of a read-only view: copy() it first");
  const own = typeof value === "object" && value !== null ? copied(array.dtype, value) : value;
  hostWaits(array.buffer);
  noteElement(array, at, true, "view.set()");
  array.dtype.write(memoryAt(array, at), at % 1, own);
}

/** A value of plain parts. Those of an object may be code, which could close the memory that is being written. */
function copied(dtype: DType, value: Complex | readonly Scalar[]): ElementValue {
  if (dtype.lanes === 1) {
    const { re, im } = value as Complex; // of anything else the codec below says what it is
    if (typeof re === "number" && typeof im === "number") return { re, im };
  }
  const element = new DataView(new ArrayBuffer(Math.ceil(dtype.itemsize)));
  dtype.write(element, 0, value);
  return dtype.read(element, 0);
}

/** The index of the only element. See `StridedMemoryView.item`. */
export function onlyIndex({ layout }: ArrayParts): readonly number[] {
  if (layout.volume === 1) return layout.shape.map(() => 0);
  throw new RangeError(
    `Cannot take the only element of shape (${layout.shape.join(", ")}): expected 1 element, got ${layout.volume}. ` +
      "get(...index) reads one of several",
  );
}

/** One level of JavaScript arrays for each axis. */
type NestedArray<Value> = (Value | NestedArray<Value>)[];

// law view/nestedArray: view/elements, view/elements_order
/** The elements in nested arrays. See `StridedMemoryView.toArray`. */
export function nestedArray(array: ArrayParts): NestedArray<ElementValue> {
  const { layout, dtype, offset } = array;
  const { shape, strides, itemsize } = layout;
  if (shape.length === 0) {
    throw new TypeError("Cannot make arrays of a view without axes: expected at least one. item() reads its element");
  }
  checkOnHost(array, "read device memory");
  checkCount(shape);
  hostWaits(array.buffer);
  noteElementAccess(array, false, "view.toArray()");
  const from = offset - bytesBefore(layout);
  const span = bytesBefore(layout) + bytesFrom(layout);
  const memory = fitsArray(span) ? partOf(array.buffer, from, span) : null;
  const read = (at: number) =>
    memory === null ? dtype.read(memoryAt(array, at), at % 1) : dtype.read(memory, at - from);
  const nested = (axis: number, start: number): NestedArray<ElementValue> => {
    const stride = strides[axis] ?? 0;
    const isLast = axis === shape.length - 1;
    return Array.from({ length: shape[axis] ?? 0 }, (_, place) => {
      const at = start + place * stride;
      return isLast ? read(offset + at * itemsize) : nested(axis + 1, at);
    });
  };
  return nested(0, layout.sliceOffset);
}

// law view/checkCount: public/untyped
/** Throws a RangeError if the elements, or the rows of an array without any, are more than an array can have. */
function checkCount(shape: Shape): void {
  let count = 1;
  for (const extent of shape) {
    count *= extent;
    if (count >= 2 ** 32) {
      throw new RangeError(
        `Cannot make arrays of shape ${show(shape)}: expected fewer than 2^32 elements. view.sliced() is a view of a ` +
          "part, which has a toArray(), too",
      );
    }
  }
}

// law view/asTypedArray: view/elements, view/elements_order
/** The memory as a typed array. See `StridedMemoryView.asTypedArray`. */
export function asTypedArray(array: ArrayParts): TypedArray {
  const { layout, dtype, buffer, offset } = array;
  const TypedArray = dtype.require("typedArray");
  checkOnHost(array, "view device memory as a typed array");
  if (!layout.isContiguousC) {
    throw new TypeError(
      `Cannot view shape (${layout.shape.join(", ")}) with strides (${layout.strides.join(", ")}) as a typed array ` +
        "without a copy: expected contiguous elements in C order. contiguous().asTypedArray() copies when needed",
    );
  }
  checkOpen(array);
  if (layout.volume === 0) return new TypedArray(0);
  const { BYTES_PER_ELEMENT: size } = TypedArray;
  const start = offset + layout.sliceOffsetInBytes;
  // Alignment in the buffer's bytes, which begin at the buffer's address.
  if (start % size !== 0 || buffer.ptr % BigInt(size) !== 0n) {
    throw new TypeError(
      `Cannot view byte ${start} of a buffer at address ${buffer.ptr} as a ${TypedArray.name} without a copy: expected ` +
        `multiples of ${size}. copy().asTypedArray() is aligned`,
    );
  }
  hostWaits(buffer);
  noteElementAccess(array, false, "view.asTypedArray()");
  const bytes = byteCount(array);
  const { memory, at } = placeOf(buffer, start, bytes);
  return new TypedArray(memory, at, bytes / size);
}

function elementAt({ layout, offset }: ArrayParts, index: readonly number[]): number {
  return offset + layout.offsetOf(...index) * layout.itemsize;
}

/** The bytes of the element at a byte of the buffer; of a packed one, which may begin inside a byte. */
function memoryAt({ buffer, dtype }: ArrayParts, at: number): DataView<ArrayBuffer> {
  const start = Math.floor(at);
  return partOf(buffer, start, Math.ceil(at + dtype.itemsize) - start);
}

/** @throws {TypeError} for memory that the host cannot access, with the ways to copy the elements to the host */
function checkOnHost({ buffer }: ArrayParts, doing: string): void {
  if (buffer.isHostAccessible) return;
  throw new TypeError(
    `Cannot ${doing} from the host: expected host memory. \`await view.toTypedArray()\` copies ` +
      'all elements, and view.to("host") copies the array',
  );
}

function noteElement({ buffer, dtype }: ArrayParts, at: number, writes: boolean, call: string): void {
  if (!isHostObserved()) return;
  const start = Math.floor(at);
  noteHostAccess(buffer.ptr + BigInt(start), Math.ceil(at + dtype.itemsize) - start, writes, call);
}
