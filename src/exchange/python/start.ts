/**
 * Starting CPython in this process, once.
 *
 * @module
 */
import type { cpython } from "../../../bindings/cpython.ts";
import { NativeArena } from "../../ffi/arena.ts";
import { FfiError } from "../../ffi/errors.ts";
import { libc } from "../../ffi/libc.ts";
import { type NativeLibrary, openLibrary } from "../../ffi/library.ts";
import { cString, readCString } from "../../ffi/text.ts";
import type { Functions } from "../../ffi/types.ts";
import { findInterpreter, type Installation } from "./find.ts";
import { Interpreter } from "./interpreter.ts";
import { pythonLibrary } from "./library.ts";

/** Options of {@linkcode Python.open}. */
export interface PythonOptions {
  /** Path of libpython. Default: the one that belongs to the interpreter. */
  readonly library?: string;
  /** A virtualenv or another folder with `bin/python3`, or an interpreter itself. Default: see {@linkcode Python.open}. */
  readonly home?: string;
}

/** Starts the interpreter, unless this process has it running already. */
function start({ path, functions: api }: NativeLibrary<typeof cpython>, installation: Installation | null): void {
  if (api.opening.Py_IsInitialized() !== 0) return;
  const version = readCString(api.opening.Py_GetVersion()).split(" ")[0] ?? "";
  if (installation !== null && !version.startsWith(`${installation.version}.`)) {
    throw new FfiError(
      `Cannot start Python ${version} of ${path} with the packages of ${installation.executable}, which is Python ` +
        `${installation.version}: an interpreter and its library must be of one version. Pass { home } with a virtualenv ` +
        "of the library's version, or the library that belongs to this one.",
    );
  }
  if (installation !== null) setProgram(api, installation.executable);
  const { setenv, unsetenv, getenv } = libc().loading;
  // An embedded interpreter takes the encoding of texts from the C locale, which the runtimes never set.
  const isSaid = getenv(cString("PYTHONUTF8")) !== 0n;
  if (!isSaid) setenv(cString("PYTHONUTF8"), cString("1"), 0);
  api.opening.Py_InitializeEx(0); // 0: signals stay with the runtime
  if (!isSaid) unsetenv(cString("PYTHONUTF8"));
  // Nothing finalises this interpreter, so nothing would write out what a pipe's buffer holds at the end.
  api.run.PyRun_SimpleString(
    cString("import sys\nif sys.stdout: sys.stdout.reconfigure(line_buffering=True)\ndel sys"),
  );
  api.threads.PyEval_SaveThread();
}

/** Says which program this is: Python looks for its virtualenv, its library and its packages from there. */
function setProgram({ home }: Functions<typeof cpython>, executable: string): void {
  if (home.Py_SetProgramName === null) throw new FfiError("Cannot start this Python: it is newer than 3.14");
  using arena = new NativeArena();
  const program = home.Py_DecodeLocale(arena.cString(executable), 0n);
  home.Py_SetProgramName(program); // it keeps the address, which is therefore never freed
}

let running: Interpreter | undefined;

/** The interpreter of this process, started at the first call. */
export function openInterpreter({ library, home }: PythonOptions): Interpreter {
  if (running !== undefined) {
    if (library === undefined || openLibrary({ ...pythonLibrary, path: library }).path === running.path) return running;
    throw new FfiError(`Cannot open ${library}: this process runs the Python of ${running.path}, and can run one only`);
  }
  const installation = findInterpreter(home);
  if (home !== undefined && installation === null) {
    throw new FfiError(`Cannot open Python in ${home}: expected a folder with bin/python3, or an interpreter`);
  }
  const sonames = installation?.libraries ?? pythonLibrary.sonames;
  const path = library === undefined ? {} : { path: library };
  // Global: extension modules such as NumPy's find the interpreter among the symbols that everybody sees.
  const opened = openLibrary({ ...pythonLibrary, sonames, ...path, global: true });
  checkAlone(opened);
  start(opened, installation);
  running = new Interpreter(opened);
  return running;
}

/**
 * Extension modules find the interpreter by its symbols, wherever they come first in the process.
 *
 * @throws {FfiError} if another libpython comes first: its functions would be given this one's objects
 */
function checkAlone({ path, handle }: NativeLibrary<typeof cpython>): void {
  const { dlsym } = libc().loading;
  const symbol = cString("Py_IsInitialized");
  const first = dlsym(0n, symbol); // RTLD_DEFAULT
  if (first !== 0n && first !== dlsym(handle, symbol)) {
    throw new FfiError(
      `Cannot run the Python of ${path}: this process has loaded another libpython before, whose symbols its extension ` +
        "modules would find. Load one only.",
    );
  }
}
