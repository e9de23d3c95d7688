/**
 * Where the elements of an array lie, and their type.
 *
 * Pure arithmetic: the room imports nothing and touches no memory, so it also runs in a browser. A `StridedLayout` is a
 * shape, strides and an offset in elements, checked when it is made; its operations (slicing, permuting, reshaping,
 * packing) are functions over plain arrays of numbers, one file each, and return a new layout. A `DType` is the type of
 * an element, in the conventions of DLPack, NumPy and Arrow, and reads and writes one element of a DataView.
 *
 * What the rooms above share is here, too, as they all may import this one: checks of options, and names and
 * descriptions of objects.
 *
 * @module
 */
export { type DLPackDType, DType, type DTypeForm, type ElementValue } from "./dtype.ts";
export type {
  DTypeLike,
  DTypeName,
  DTypeNameOf,
  DTypeNameOfArray,
  ElementOf,
  OneDTypeName,
  ScalarName,
  SubByteName,
  TypedArrayOf,
  WritableOf,
} from "./dtype_names.ts";
export type { Complex, Scalar } from "./element.ts";
export type { FlattenOptions } from "./flatten.ts";
export { cachedLayout, cacheLayout, denseLayout } from "./layout_cache.ts";
export { checkMade, checkName, giveName, nameOf, notMade, quoted, showAs, showBytes } from "./inspect.ts";
export { nearestOf } from "./nearest.ts";
export {
  checkBoolean,
  checkOptions,
  isNameIn,
  isPlainObject,
  namesNear,
  none,
  type OptionNames,
  unknownOption,
} from "./options.ts";
export type { CompatibleItemsizeOptions, RepackOptions } from "./repack.ts";
export { dlpackCode, type TypedArray, type TypedArrayConstructor } from "./scalar_types.ts";
export { MAX_NDIM, MAX_SPAN_IN_BYTES, type Shape } from "./shape.ts";
export { falseFor, formatShape, isOfOtherCopy, noSize, packageCopy, show, showGiven, thisCopy } from "./show.ts";
export { Slice, slice, type SliceItem } from "./slicing.ts";
export { bytesBefore, bytesFrom, type StridedLayoutOptions } from "./span.ts";
export type { DenseOrder } from "./stride_order.ts";
export { StridedLayout } from "./strided_layout.ts";
