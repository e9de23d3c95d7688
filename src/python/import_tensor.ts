/**
 * A tensor that was made for one import, as a view.
 *
 * @module
 */
import { callDeleter, type ImportOptions } from "../dlpack/mod.ts";
import { StridedMemoryView } from "../view/mod.ts";

// law python/importTensor: python/numpy_imports
/** Adopts the versioned tensor, also if it cannot be imported: it is then deleted. */
export function importTensor(managedTensorVersioned: bigint, options: ImportOptions): StridedMemoryView {
  try {
    return StridedMemoryView.fromDlpack({ managedTensorVersioned }, options);
  } catch (error) {
    callDeleter(managedTensorVersioned, true);
    throw error;
  }
}
