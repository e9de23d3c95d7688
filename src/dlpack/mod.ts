/**
 * DLPack and the array interfaces: arrays exchanged with other libraries of the same process, without copies.
 *
 * The room works on the parts of an array (`ArrayParts`) and knows no view: an import is given what to make of the
 * parts it has found. An export is planned (`planExport`, pure), then copied if need be, ordered and written:
 * `toDlpack`. The struct that a consumer gets, with its deleter in machine code, is an `ExportedStruct`; `DlpackTensor`
 * is what a capsule is in Python: exactly one consumer takes it. Imports believe nothing that a struct says before it
 * is checked.
 *
 * @module
 */
export {
  type ArrayInterface,
  type CudaArrayInterface,
  fromArrayInterface,
  fromCudaArrayInterface,
  hasInterface,
  toArrayInterface,
  toCudaArrayInterface,
} from "./array_interface.ts";
export { toDlpack } from "./export.ts";
export { fromDlpack } from "./import.ts";
export {
  callDeleter,
  dlpackDevice,
  type DlpackPointer,
  type DlpackSource,
  DlpackTensor,
  type ImportOptions,
  isDlpackSource,
  type ToDlpackOptions,
} from "./tensor.ts";
