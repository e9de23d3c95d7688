/**
 * Exchange of arrays with other libraries, without copies and in the right order.
 *
 * @module
 */
import { provideArraySource, provideProtocols } from "../view/protocols.ts";
import {
  fromArrayInterface,
  fromCudaArrayInterface,
  hasInterface,
  toArrayInterface,
  toCudaArrayInterface,
} from "./array_interface.ts";
import { isArrowDeviceSource, isArrowSource } from "./arrow_device.ts";
import { viewFromArrow, viewToArrow } from "./arrow_view.ts";
import { dlpackDevice, isDlpackSource } from "./dlpack.ts";
import { toDlpack } from "./dlpack_export.ts";
import { fromDlpack } from "./dlpack_import.ts";
import { Lease } from "./lease.ts";

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

export type { ArrayInterface, CudaArrayInterface } from "./array_interface.ts";
export { type ApacheData, type ApacheVector, fromApacheArrow, toApacheArrow } from "./apache_arrow.ts";
export type { ApacheArrow, ApacheField, ApacheType } from "./apache_arrow_type.ts";
export { ArrowArray, type ArrowArrayParts } from "./arrow_array.ts";
export {
  ArrowDeviceArray,
  type ArrowDeviceSource,
  type ArrowHolder,
  type ArrowHolders,
  type ArrowPointers,
  type ArrowSource,
  type FromArrowOptions,
  type ToArrowOptions,
} from "./arrow_device.ts";
export { formatOf as arrowFormat, parseArrowFormat } from "./arrow_format.ts";
export { ArrowStream, type ArrowStreamPointer } from "./arrow_stream.ts";
export { ArrowStreamExport, exportArrowStream, type ExportStreamOptions } from "./arrow_stream_export.ts";
export type { ArrowValue } from "./arrow_reader.ts";
export {
  type ArrowField,
  arrowField,
  type ArrowFieldOptions,
  type ArrowMetadata,
  type ArrowOffsets,
  type ArrowTimeUnit,
  type ArrowType,
  equalFields as equalArrowFields,
} from "./arrow_type.ts";

export {
  type DlpackPointer,
  type DlpackSource,
  DlpackTensor,
  type ImportOptions,
  type ToDlpackOptions,
} from "./dlpack.ts";
export { ExchangeError } from "./error.ts";
export { type LiveExport, liveExports } from "./live_exports.ts";
export * from "./python/mod.ts";
export { Lease };
