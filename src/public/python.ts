/**
 * Python in this process.
 *
 * @module
 */
export {
  Keywords,
  kwargs,
  type OpenPythonOptions,
  type PyObject,
  Python,
  PythonError,
  type PythonOptions,
} from "../python/mod.ts";
