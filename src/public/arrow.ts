/**
 * Arrow arrays, streams and schemas; apache-arrow.
 *
 * @module
 */
export {
  type ApacheArrow,
  type ApacheData,
  type ApacheField,
  type ApacheType,
  type ApacheVector,
  ArrowArray,
  type ArrowArrayParts,
  ArrowStream,
  ArrowStreamExport,
  type ArrowValue,
  exportArrowStream,
  type ExportStreamOptions,
  fromApacheArrow,
  toApacheArrow,
} from "../arrow/mod.ts";
export {
  ArrowDeviceArray,
  type ArrowDeviceSource,
  type ArrowField,
  arrowField,
  type ArrowFieldOptions,
  type ArrowMetadata,
  type ArrowOffsets,
  type ArrowPointers,
  type ArrowSource,
  type ArrowStreamPointer,
  type ArrowTimeUnit,
  type ArrowType,
  equalFields as equalArrowFields,
  formatOf as arrowFormat,
  type FromArrowOptions,
  parseArrowFormat,
  type ToArrowOptions,
} from "../cdata/mod.ts";
export { ExchangeError } from "../order/mod.ts";
