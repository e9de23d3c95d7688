/**
 * Python in the same process.
 *
 * @module
 */
import { provideArraySource } from "../view/from.ts";
import { provideForeignArrow } from "../cdata/import.ts";
import { provideLook } from "../order/exports.ts";
import { pythonArrow } from "./arrow_capsules.ts";
import { pythonArrays } from "./object.ts";
import { lookInPython } from "./start_interpreter.ts";

provideArraySource(pythonArrays);
provideForeignArrow(pythonArrow);
provideLook(lookInPython);

export { PythonError } from "./error.ts";
export { Keywords, kwargs, type PyObject } from "./object.ts";
export { type OpenPythonOptions, Python } from "./python.ts";
export type { PythonOptions } from "./start_interpreter.ts";
