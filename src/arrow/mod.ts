/**
 * Arrow arrays and streams in JavaScript, and their conversion to and from apache-arrow.
 *
 * The room knows views and everything below them, `order/` and `cdata/`, but neither Python nor apache-arrow, whose
 * objects it accepts structurally (`apache_types.ts`). `ArrowArray` is a node of `cdata/` whose buffers are views: its
 * elements are read one by one (`element_reader.ts`), and its numbers are a view. `ArrowStream` imports arrays from a
 * producer one by one, `exportArrowStream` exports them. `cdata/` writes, checks and releases the structs.
 *
 * @module
 */
export { type ApacheData, type ApacheVector, fromApacheArrow, toApacheArrow } from "./apache.ts";
export type { ApacheArrow, ApacheField, ApacheType } from "./apache_types.ts";
export { ArrowArray, type ArrowArrayParts } from "./array.ts";
export type { ArrowValue } from "./element_reader.ts";
export { ArrowStream } from "./stream.ts";
export { ArrowStreamExport, exportArrowStream, type ExportStreamOptions } from "./stream_export.ts";
export { isVortexForm, type VortexForm, vortexForm, type VortexNodeForm } from "./vortex_form.ts";
