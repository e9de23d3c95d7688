/**
 * Python in the same process.
 *
 * @module
 */
import { provideArraySource } from "../../view/protocols.ts";
import { provideForeignArrow } from "../arrow_import.ts";
import { provideLook } from "../live_exports.ts";
import { pythonArrow } from "./arrow.ts";
import { pythonArrays } from "./object.ts";
import { lookInPython } from "./start.ts";

provideArraySource(pythonArrays);
provideForeignArrow(pythonArrow);
provideLook(lookInPython);

export { PythonError } from "./error.ts";
export { Keywords, kwargs, type PyObject } from "./object.ts";
export { type OpenPythonOptions, Python } from "./python.ts";
export type { PythonOptions } from "./start.ts";
