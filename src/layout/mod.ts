/**
 * Where the elements of an array lie, and what they are. Pure arithmetic: no imports, no memory, also for browsers.
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
