/**
 * CPython in this process: calls functions of its libraries, exports arrays to them and imports theirs, without a copy.
 *
 * The room may know views, Arrow arrays and all that they are made of; of the other rooms, only the command line knows
 * it. How data goes through it:
 *
 * - `find_interpreter`, `find_library` and `start_interpreter` decide which Python it is, and start it once.
 *   `interpreter` is its C API for all other files. `thread_end` releases its lock when a Worker is terminated within a
 *   call.
 * - A call converts its arguments (`to_python`): values are copied, a view becomes an array (`export_array`), an Arrow
 *   array or stream an object that has Arrow's protocols (`export_arrow`).
 * - What they are in Python is written in Python: `guest/*.py`, embedded in `guest_source`. Any library may ask them
 *   for their memory, at any time, on any thread of Python, where no JavaScript can run: DLPack's capsule is made by
 *   `Array.__dlpack__`, guest/array.py. Each export pins the memory; machine code counts its release, and the next poll
 *   unpins it.
 * - A result is a value (`copy_out`), a view of the same memory (`import_array`), or a `PyObject` (`object`), which
 *   owns a reference (`handle`). `arrow_capsules` imports Arrow's structs of a `PyObject`.
 * - On a device, consumers are ordered by the driver itself. `dlpack_exchange_api` has C functions for both directions:
 *   `python_call_thunk` and `current_stream_thunk` are their machine code, and `current_work_streams` says on which
 *   stream consumers work.
 *
 * @module
 */
export { PythonError } from "./error.ts";
export { findInterpreters } from "./find_interpreter.ts";
export { pythonLibrary } from "./find_library.ts";
export { listPackagesSource } from "./guest_source.ts";
export { Keywords, kwargs, type PyObject } from "./object.ts";
export { type OpenPythonOptions, Python } from "./python.ts";
export type { PythonOptions } from "./start_interpreter.ts";
