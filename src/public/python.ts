/**
 * Python in this process.
 *
 * @module
 */
export {
  type AsyncCallOptions,
  type Entered,
  Keywords,
  kwargs,
  type OpenPythonOptions,
  type PyObject,
  Python,
  PythonError,
  type PythonOptions,
  type PythonValueOptions,
} from "../python/mod.ts";
export { FfiError, LibraryNotFoundError, type LoadAttempt, SystemError } from "../ffi/mod.ts";
