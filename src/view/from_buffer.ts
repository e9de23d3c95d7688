/**
 * Buffers as views.
 *
 * @module
 */
import { checkBounds, type MakeArray } from "../copy/mod.ts";
import {
  checkBoolean,
  checkOptions,
  denseLayout,
  DType,
  type DTypeLike,
  type OptionNames,
  type Shape,
  show,
  StridedLayout,
} from "../layout/mod.ts";
import { MemoryBuffer } from "../memory/mod.ts";

/** How {@linkcode StridedMemoryView.fromBuffer} views a buffer. */
export interface FromBufferOptions<T extends DTypeLike = DTypeLike> {
  /** Extents. */
  readonly shape: Shape;
  /** Strides in elements. Default: C order without gaps. */
  readonly strides?: readonly number[] | null;
  /** Element type, or its name. */
  readonly dtype: T;
  /** Byte offset in the buffer of offset 0 of the layout. Default 0. */
  readonly offset?: number;
  /** Whether writing through the view is refused. Default: whether the buffer is read-only. */
  readonly readonly?: boolean;
}

const fromBufferOptionNames: OptionNames<FromBufferOptions> = {
  shape: true,
  strides: true,
  dtype: true,
  offset: true,
  readonly: true,
};

// law view/fromBuffer: view/no_array
/** Views a buffer's bytes. See `StridedMemoryView.fromBuffer`. */
export function fromBuffer<T>(buffer: MemoryBuffer, options: FromBufferOptions, make: MakeArray<T>): T {
  if (!(buffer instanceof MemoryBuffer)) throw noBuffer(buffer);
  checkOptions(options, fromBufferOptionNames);
  checkBoolean("readonly", options.readonly);
  const dtype = DType.from(options.dtype);
  const { shape, strides = null, offset = 0, readonly = buffer.readonly } = options;
  if (buffer.readonly && !readonly) throw new TypeError("Cannot view read-only memory for writing: copy it first");
  const layout = strides === null
    ? denseLayout(shape, dtype.itemsize)
    : new StridedLayout(shape, strides, dtype.itemsize);
  checkBounds(buffer, offset, layout);
  return make(buffer, offset, layout, dtype, readonly, null);
}

/** For whatever an untyped program passes, or what `postMessage` leaves of a buffer. */
function noBuffer(value: unknown): TypeError {
  return new TypeError(
    `Cannot view ${
      show(value)
    } as a buffer: expected a MemoryBuffer. StridedMemoryView.fromTypedArray() views a typed ` +
      "array, and MemoryBuffer.fromArrayBuffer() and fromPointer() make buffers of existing memory",
  );
}
