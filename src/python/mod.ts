/**
 * CPython in this process: calls functions of its libraries, exports arrays to them and imports theirs, without a copy.
 *
 * It knows views, Arrow arrays and what they are made of; only the command line and public files know it. Data flow:
 *
 * - `find_interpreter`, `find_library` and `start_interpreter` choose the Python, and start it once. `interpreter` is
 *   its C API for all other files: `texts` handles its strings, and `exception` converts exceptions to errors.
 *   `thread_end` releases its lock when a Worker is terminated within a call.
 * - A call converts its arguments (`to_python`): values are copied, many floats at once (`float_lists`), a view becomes
 *   an array (`export_array`), an Arrow array or stream an object with Arrow's protocols (`export_arrow`).
 * - Their Python side is written in Python: `guest/*.py`, embedded in `guest_source`. Any library may request their
 *   memory, at any time, on any Python thread, where no JavaScript can run: DLPack's capsule is made by
 *   `Array.__dlpack__`, guest/array.py, for NumPy by `export_array`. Each export pins the memory; machine code counts
 *   its release, and the next poll unpins it: `release_memory` reads the counters, so that Python is called only when
 *   there is something to unpin. Where NumPy is loaded, it makes host arrays from a tensor, as `host_specs` describes.
 * - The type of a result (`kinds`), read from memory (`object_heads`), determines what it becomes: a value (`copy_out`,
 *   and `copied` for JSON), a view of the same memory (`import_array`), or a `PyObject` (`object`, `python_members`),
 *   which owns a reference (`handle`) and can be called (`calls`). `sequences` reads many items of a list at a time,
 *   also for loops (`iterate`). `arrow_capsules` imports a `PyObject`'s Arrow structs.
 * - `javascript_side`: functions that Python may call, only on JavaScript's thread, and calls that do not block, until
 *   a Worker ends; `retained_exception`: what errors keep; `iterate_generator`, `with_manager`: loops, `with`.
 * - On a device, consumers are ordered by the driver itself. `dlpack_exchange_api` has C functions for both directions:
 *   `python_call_thunk` and `current_stream_thunk` are their machine code, and `current_work_streams` determines on
 *   which stream consumers work.
 *
 * @module
 */
export { PythonError } from "./error.ts";
export { findInterpreters, type InstalledPackages, listPackages } from "./find_interpreter.ts";
export { pythonLibrary } from "./find_library.ts";
export { Keywords, kwargs } from "./keywords.ts";
export type { PyObject, PythonValueOptions } from "./object.ts";
export { type AsyncCallOptions, type OpenPythonOptions, Python } from "./python.ts";
export type { PythonOptions } from "./start_interpreter.ts";
export type { Entered } from "./with_manager.ts";
