/**
 * Exchange of arrays with other libraries, without copies and in the right order.
 *
 * @module
 */
export type { ArrayInterface, CudaArrayInterface } from "../dlpack/array_interface.ts";
export { type ApacheData, type ApacheVector, fromApacheArrow, toApacheArrow } from "../arrow/apache.ts";
export type { ApacheArrow, ApacheField, ApacheType } from "../arrow/apache_types.ts";
export { ArrowArray, type ArrowArrayParts } from "../arrow/array.ts";
export {
  ArrowDeviceArray,
  type ArrowDeviceSource,
  type ArrowPointers,
  type ArrowSource,
  type ArrowStreamPointer,
  type ExportState,
  type ExportStates,
  type FromArrowOptions,
  type ToArrowOptions,
} from "../cdata/device_array.ts";
export { formatOf as arrowFormat, parseArrowFormat } from "../cdata/format.ts";
export { ArrowStream } from "../arrow/stream.ts";
export { ArrowStreamExport, exportArrowStream, type ExportStreamOptions } from "../arrow/stream_export.ts";
export type { ArrowValue } from "../arrow/element_reader.ts";
export {
  type ArrowField,
  arrowField,
  type ArrowFieldOptions,
  type ArrowMetadata,
  type ArrowOffsets,
  type ArrowTimeUnit,
  type ArrowType,
  equalFields as equalArrowFields,
} from "../cdata/type.ts";

export {
  type DlpackPointer,
  type DlpackSource,
  DlpackTensor,
  type ImportOptions,
  type ToDlpackOptions,
} from "../dlpack/tensor.ts";
export { ExchangeError } from "../order/exchange_error.ts";
export { liveExports } from "../order/reclaim.ts";
export type { LiveExport } from "../order/exports.ts";
export {
  Keywords,
  kwargs,
  type OpenPythonOptions,
  type PyObject,
  Python,
  PythonError,
  type PythonOptions,
} from "../python/mod.ts";
export { Lease } from "../view/lease.ts";
