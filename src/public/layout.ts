/**
 * Array layouts and element types: pure arithmetic, which also runs in a browser.
 *
 * @module
 */
export {
  type CompatibleItemsizeOptions,
  type Complex,
  type DenseOrder,
  type DLPackDType,
  DType,
  type DTypeForm,
  type DTypeLike,
  type DTypeName,
  type DTypeNameOf,
  type DTypeNameOfArray,
  type ElementOf,
  type ElementValue,
  type FlattenOptions,
  MAX_NDIM,
  MAX_SPAN_IN_BYTES,
  type OneDTypeName,
  type RepackOptions,
  type Scalar,
  type ScalarName,
  type Shape,
  Slice,
  slice,
  type SliceItem,
  StridedLayout,
  type StridedLayoutOptions,
  type SubByteName,
  type TypedArray,
  type TypedArrayConstructor,
  type TypedArrayOf,
  type WritableOf,
} from "../layout/mod.ts";
