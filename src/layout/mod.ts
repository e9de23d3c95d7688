/**
 * Where the elements of an array lie, and what they are.
 *
 * Pure arithmetic: the room imports nothing and touches no memory, so it also runs in a browser. A `StridedLayout` is a
 * shape, strides and an offset in elements, checked when it is made; what is done to it (slicing, permuting, reshaping,
 * packing) is computed by functions of a file each over plain arrays of numbers, and gives a new layout. A `DType` is what an
 * element is, in the conventions of DLPack, NumPy and Arrow, and reads and writes one element of a DataView.
 *
 * This door is a public subpath; `checks.ts` is the door for what only other rooms use.
 *
 * @module
 */
export { MAX_NDIM, MAX_SPAN_IN_BYTES, type Shape } from "./shape.ts";
export { Slice, slice } from "./slice.ts";
export type { SliceItem } from "./slicing.ts";
export type { DenseOrder } from "./stride_order.ts";
export type { FlattenOptions } from "./flatten.ts";
export type { CompatibleItemsizeOptions, RepackOptions } from "./repack.ts";
export type { StridedLayoutOptions } from "./span.ts";
export { StridedLayout } from "./strided_layout.ts";
export { type DLPackDType, DType, type DTypeForm, type ElementValue } from "./dtype.ts";
export type { Complex, Scalar } from "./element.ts";
export type { TypedArray, TypedArrayConstructor } from "./scalar_types.ts";
