/**
 * DLPack and the array interfaces: our arrays for other libraries in the same process, and theirs for us, without
 * copies.
 *
 * The room works on the parts of an array (`ArrayParts`) and knows no views: an import takes a function that makes an
 * array from the parts. An export is planned by a pure function (`plan_export.ts`), then copied if necessary, ordered
 * and written (`export.ts`). A consumer gets the address of a `DLManagedTensorVersioned`, or of the older
 * `DLManagedTensor`: `export.ts` takes a block from `tensorPool`, `TensorBlock.write` (`struct.ts`) fills it, with a
 * deleter in machine code, and `DlpackTensor` (`tensor.ts`) hands it over. Exactly one consumer takes it. Imports
 * (`import.ts`, `array_interface.ts`) trust nothing in a struct or a description until it is checked. Python's capsules
 * around a struct are made in `src/python`: by `Array.__dlpack__` (`guest/array.py`) and for NumPy's arrays by
 * `export_array.ts`. There Python fills structs of its own for arrays that it passes on or allocates (`guest/array.py`,
 * `guest/copies.py`, `guest/exchange_api.py`).
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
