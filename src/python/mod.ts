/**
 * CPython in this process: calls functions of its libraries, exports arrays to them and imports theirs, without a copy.
 *
 * It may know views, Arrow arrays and all that they are made of; only the command line knows it. How data goes:
 *
 * - `find_interpreter`, `find_library` and `start_interpreter` decide which Python it is, and start it once.
 *   `interpreter` is its C API for all other files: `texts` are its strings, and `exception` makes an error of what was
 *   raised. `thread_end` releases its lock when a Worker is terminated within a call.
 * - A call converts its arguments (`to_python`): values are copied, many floats at once (`float_lists`), a view becomes
 *   an array (`export_array`), an Arrow array or stream an object that has Arrow's protocols (`export_arrow`).
 * - What they are in Python is written in Python: `guest/*.py`, embedded in `guest_source`. Any library may ask them
 *   for their memory, at any time, on any thread of Python, where no JavaScript can run: DLPack's capsule is made by
 *   `Array.__dlpack__`, guest/array.py. Each export pins the memory; machine code counts its release, and the next poll
 *   unpins it: `release_memory` looks at the counters, so that Python is asked only if there is something. Where NumPy
 *   is loaded, an array of the host is made by NumPy of a tensor, and described by what `host_specs` keeps.
 * - What a result becomes its type tells (`kinds`), which is read from memory (`object_heads`): a value (`copy_out`, and
 *   `copied` for JSON), a view of the same memory (`import_array`), or a `PyObject` (`object`), which owns a reference (`handle`). `sequences`
 *   reads many items of a list at a time, also for loops (`iterate`). `arrow_capsules` imports Arrow's structs of a `PyObject`.
 * - `javascript_side` has the functions that Python may call, on JavaScript's thread only, and calls that nobody waits
 *   for; `raised` has exceptions that go through a function. `iterate_generator`, `with_manager`: loops and `with`.
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
export { Keywords, kwargs } from "./keywords.ts";
export type { PyObject, PythonValueOptions } from "./object.ts";
export { type AsyncCallOptions, type OpenPythonOptions, Python } from "./python.ts";
export type { PythonOptions } from "./start_interpreter.ts";
export type { Entered } from "./with_manager.ts";
