/**
 * Arrow's C structs: arrays and schemas exchanged with other libraries in the same process, without copies.
 *
 * The room works on plain nodes (`ArrowNode`: field, length, buffers, children) and knows neither `ArrowArray` nor
 * views. `exportArrow` writes a tree of structs into one block of C memory; the release callbacks are machine code that
 * counts. `exportNumbers` does the same for arrays of numbers, by a template. `importArrow` checks a foreign tree
 * against its schema, lets its caller make the result from the node, and takes the structs last. On devices an event
 * signals that the data is ready.
 *
 * @module
 */
export { type ArrowNode, deviceOf, knownNulls } from "./array_node.ts";
export { bitOf, countNulls, countSet, empty, hostBytes, isNullAt } from "./bits.ts";
export { bitsOf, hasOffsets, hasViews } from "./buffers.ts";
export {
  ArrowDeviceArray,
  type ArrowDeviceSource,
  type ArrowPointers,
  type ArrowSource,
  type ArrowStreamPointer,
  fromArrowOptionNames,
  type FromArrowOptions,
  isArrowDeviceSource,
  isArrowSource,
  releaseArray,
  releaseSchema,
  type ToArrowOptions,
} from "./device_array.ts";
export { exportArrow } from "./export.ts";
export { StructBlock } from "./exported_tree.ts";
export { arrowField, type ArrowFieldOptions, differenceOf, equalFields, equalTypes, isField } from "./field.ts";
export {
  arrowArraySource,
  arrowStreamSource,
  type CapsulePointer,
  capsuleSource,
  type ForeignArrow,
  isForeignCapsule,
  type OpenedArrow,
  openForeignStream,
} from "./foreign.ts";
export { formatOf, parseArrowFormat } from "./format.ts";
export { importArrow, takeArray, tooLate } from "./import.ts";
export { importNumbers, numbersOf, numbersToArrow, validityOf, valuesOf } from "./numbers.ts";
export { exportSchema, readSchema } from "./schema.ts";
export {
  type ArrowField,
  type ArrowMetadata,
  type ArrowOffsets,
  type ArrowTimeUnit,
  type ArrowType,
  childrenOf,
  indexOfName,
  showType,
} from "./type.ts";
export { checkNode } from "./validate.ts";
export { Walk } from "./walk.ts";
