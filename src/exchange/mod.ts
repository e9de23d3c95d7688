/**
 * Exchange of arrays with other libraries, without copies and in the right order.
 *
 * @module
 */
import { provideArraySource, provideProtocols } from "../view/from.ts";
import {
  fromArrayInterface,
  fromCudaArrayInterface,
  hasInterface,
  toArrayInterface,
  toCudaArrayInterface,
} from "../dlpack/array_interface.ts";
import { isArrowDeviceSource, isArrowSource } from "../cdata/device_array.ts";
import { viewFromArrow, viewToArrow } from "../cdata/numbers.ts";
import { dlpackDevice, isDlpackSource } from "../dlpack/tensor.ts";
import { toDlpack } from "../dlpack/export.ts";
import { fromDlpack } from "../dlpack/import.ts";
import { Lease } from "../view/lease.ts";

provideProtocols({
  borrow: (view, stream) => new Lease(view, stream),
  toDlpack,
  fromDlpack,
  dlpackDevice,
  toArrayInterface,
  toCudaArrayInterface,
  fromArrayInterface,
  fromCudaArrayInterface,
  toArrow: viewToArrow,
  fromArrow: viewFromArrow,
});
provideArraySource({ speaks: "__dlpack__", accepts: isDlpackSource, take: fromDlpack });
provideArraySource({
  speaks: "__cuda_array_interface__",
  accepts: (source) => hasInterface(source, "__cuda_array_interface__"),
  take: fromCudaArrayInterface,
});
provideArraySource({
  speaks: "__array_interface__",
  accepts: (source) => hasInterface(source, "__array_interface__"),
  take: fromArrayInterface,
});
provideArraySource({ speaks: "__arrow_c_device_array__", accepts: isArrowDeviceSource, take: viewFromArrow });
provideArraySource({ speaks: "__arrow_c_array__", accepts: isArrowSource, take: viewFromArrow });

export type { ArrayInterface, CudaArrayInterface } from "../dlpack/array_interface.ts";
export { type ApacheData, type ApacheVector, fromApacheArrow, toApacheArrow } from "../arrow/apache.ts";
export type { ApacheArrow, ApacheField, ApacheType } from "../arrow/apache_types.ts";
export { ArrowArray, type ArrowArrayParts } from "../arrow/array.ts";
export {
  ArrowDeviceArray,
  type ArrowDeviceSource,
  type ArrowPointers,
  type ArrowSource,
  type ExportState,
  type ExportStates,
  type FromArrowOptions,
  type ToArrowOptions,
} from "../cdata/device_array.ts";
export { formatOf as arrowFormat, parseArrowFormat } from "../cdata/format.ts";
export { ArrowStream, type ArrowStreamPointer } from "../arrow/stream.ts";
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
export { Lease };
