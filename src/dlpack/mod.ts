/**
 * DLPack and the array interfaces: arrays for other libraries of the same process, and theirs for us, without copies.
 *
 * The room works on the parts of an array (`ArrayParts`) and knows no view: an import is given what to make of the
 * parts it has found. An export is planned by a pure function (`plan_export.ts`), then copied if need be, ordered and
 * written (`export.ts`). What a consumer gets is the address of a `DLManagedTensorVersioned`: `ExportedStruct` in
 * `struct.ts` makes the struct, with a deleter in machine code, and `DlpackTensor` (`tensor.ts`) hands it over. Exactly
 * one consumer takes it. Imports (`import.ts`, `array_interface.ts`) believe nothing that a struct or a description
 * says before it is checked. Python's capsule around a struct is made by `Array.__dlpack__`, python/guest/array.py.
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
