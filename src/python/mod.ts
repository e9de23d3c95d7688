/**
 * Python in the same process.
 *
 * @module
 */
import { provideArraySource } from "../view/from.ts";
import { provideForeignArrow } from "../cdata/import.ts";
import { pythonArrow } from "./arrow_capsules.ts";
import { pythonArrays } from "./object.ts";

provideArraySource(pythonArrays);
provideForeignArrow(pythonArrow);

export { PythonError } from "./error.ts";
export { Keywords, kwargs, type PyObject } from "./object.ts";
export { type OpenPythonOptions, Python } from "./python.ts";
export type { PythonOptions } from "./start_interpreter.ts";
