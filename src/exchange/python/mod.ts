/**
 * Python in the same process.
 *
 * @module
 */
import { provideArraySource } from "../../view/protocols.ts";
import { pythonArrays } from "./object.ts";

provideArraySource(pythonArrays);

export { PythonError } from "./error.ts";
export { Keywords, kwargs, type PyObject } from "./object.ts";
export { type OpenPythonOptions, Python } from "./python.ts";
export type { PythonOptions } from "./start.ts";
