/**
 * Arrays: `StridedMemoryView` and the types of its options, of what its methods are given and of what they return.
 *
 * @module
 */
export {
  type ArrayCopyOptions,
  type ArrayPlaceOptions,
  type AsTypedArrayOptions,
  type CopyableArray,
  type CreateOptions,
  type ElementArray,
  type ExportedArray,
  type ForeignArray,
  type FromBufferOptions,
  Lease,
  type NestedValues,
  type Place,
  type ShapedArray,
  StridedMemoryView,
  type ToTypedArrayOptions,
  type ViewOptions,
} from "../view/mod.ts";
export type { ViewCopyOptions, ViewFillOptions } from "../copy/mod.ts";
export { CudaError } from "../driver/mod.ts";
export { ExchangeError } from "../order/mod.ts";
