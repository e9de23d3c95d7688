/**
 * Array files in NumPy's formats: `.npy` and `.npz`, read into any memory, mapped, and written.
 *
 * @module
 */
export {
  type FileContents,
  NpyError,
  NpzArrays,
  openNpy,
  type OpenNpyOptions,
  type Progress,
  readNpy,
  type ReadNpyOptions,
  readNpz,
  type ReadNpzOptions,
  writeNpy,
  type WriteNpyOptions,
  writeNpz,
  type WriteNpzOptions,
} from "../files/mod.ts";
export { SystemError } from "../ffi/mod.ts";
