/**
 * Starts CPython in this process, once.
 *
 * @module
 */
import type { cpython } from "../../bindings/cpython.ts";
import {
  cString,
  FfiError,
  ffiPort,
  type Functions,
  libc,
  LibraryNotFoundError,
  NativeArena,
  type NativeLibrary,
  openLibrary,
  readCString,
} from "../ffi/mod.ts";
import { alsoPoll } from "../order/mod.ts";
import { checkDescriptorsLeft } from "../unix/mod.ts";
import { findInterpreters, type Installation } from "./find_interpreter.ts";
import { prepareProcessSource } from "./guest_source.ts";
import { Interpreter, isFreeThreaded } from "./interpreter.ts";
import { pythonLibrary } from "./find_library.ts";
import { oneAtATime } from "./start_lock.ts";
import { releaseLockAtThreadEnd } from "./thread_end.ts";

/** Options of {@linkcode Python.open}. */
export interface PythonOptions {
  /** Path of libpython. Default: the one that belongs to the interpreter. */
  readonly library?: string;
  /**
   * A virtualenv or another folder with `bin/python3`, or an interpreter itself. Default: see {@linkcode Python.open}.
   */
  readonly home?: string;
}

// law python/start: python/open, python/object, python/frame, python/leaks
/** Starts the interpreter, unless it is already running in this process. */
function start(
  { path, handle, functions: api }: NativeLibrary<typeof cpython>,
  installation: Installation | null,
): void {
  if (api.opening.Py_IsInitialized() !== 0) return;
  const text = readCString(api.opening.Py_GetVersion());
  const version = text.split(" ")[0] ?? "";
  if (installation !== null && !version.startsWith(`${installation.version}.`)) {
    throw new FfiError(
      `Cannot start Python ${version} of ${path} with the packages of ${installation.executable}, which is Python ` +
        `${installation.version}: an interpreter and its library must have the same version. Pass { home } with a ` +
        "virtualenv of the library's version, or the library that belongs to this one.",
    );
  }
  if (installation !== null) setProgram(api, installation.executable);
  // An embedded interpreter takes its text encoding from the C locale, which the runtimes never set, and does not look
  // at PYTHONUTF8 itself. Since Python 3.15 it is UTF-8 in any case.
  const mode = libc().loading.dlsym(handle, cString("Py_UTF8Mode"));
  if (mode !== 0n && ffiPort().env("PYTHONUTF8") !== "0") new Int32Array(ffiPort().memory(mode, 4))[0] = 1;
  const forgetLock = isFreeThreaded(text) ? demandLock(api, version) : null;
  api.opening.Py_InitializeEx(0); // 0: the runtime keeps handling signals
  forgetLock?.();
  api.run.PyRun_SimpleString(cString(prepareProcessSource));
  api.threads.PyEval_SaveThread();
}

/**
 * Makes a free-threaded Python, which can do without the interpreter's lock, start with it: what two threads do under
 * it here may not happen at the same time.
 *
 * @returns what takes the demand out of the environment again, for processes that Python starts
 * @throws {FfiError} if the environment demands the opposite
 */
function demandLock({ run }: Functions<typeof cpython>, version: string): () => void {
  const chosen = ffiPort().env("PYTHON_GIL") ?? "";
  if (chosen === "0") {
    throw new FfiError(
      `Cannot start Python ${version} with PYTHON_GIL=0: in the same process as JavaScript it needs the interpreter's ` +
        "lock. Unset PYTHON_GIL",
    );
  }
  libc().loading.setenv(cString("PYTHON_GIL"), cString("1"), 1);
  return () => {
    if (chosen === "") run.PyRun_SimpleString(cString("import os\ndel os.environ['PYTHON_GIL'], os"));
  };
}

// law python/setProgram: python/open
/** Sets the program path, from which Python locates its virtualenv, its library and its packages. */
function setProgram({ home }: Functions<typeof cpython>, executable: string): void {
  if (home.Py_SetProgramName === null) {
    throw new FfiError("Cannot start this Python: it has no Py_SetProgramName(), as versions up to 3.15 do");
  }
  // As wchar_t: Py_DecodeLocale takes all that is not ASCII for undecodable, in the C locale that the runtimes leave.
  const characters = Uint32Array.from([...executable, "\0"], (character) => character.codePointAt(0) ?? 0);
  using arena = new NativeArena();
  const { address, bytes } = arena.bytes(characters.byteLength);
  bytes.set(new Uint8Array(characters.buffer));
  home.Py_SetProgramName(address); // it makes a copy
}

let running: Interpreter | undefined;

/** The program that the running one belongs to, and the homes that name it. */
let program: string | undefined;
const homes = new Set<string>();

// law python/checkHome: python/open
/** @throws {FfiError} if a home is not that of the running interpreter */
function checkHome(home: string, { path }: Interpreter): void {
  if (homes.has(home)) return;
  const folderOf = (path: string | undefined) => path?.replace(/\/[^/]*$/, ""); // of `python` and `python3`
  if (![...findInterpreters(home)].some(({ executable }) => folderOf(executable) === folderOf(program))) {
    throw new FfiError(`Cannot open Python in ${home}: this process runs ${program ?? path}, and can run only one`);
  }
  homes.add(home);
}

/** How many descriptors an interpreter may need to start. One that cannot start ends the process. */
const descriptorsToStart = 8;

// law python/openInterpreter: order/worker_end, python/open
/** The interpreter of this process, started on the first call. */
export function openInterpreter(options: PythonOptions): Interpreter {
  const { library } = options;
  if (running === undefined) {
    checkDescriptorsLeft(descriptorsToStart, "open Python");
    const { opened, installation } = find(options);
    checkOnlyLibrary(opened);
    if (ffiPort().isWorker) releaseLockAtThreadEnd(opened.handle);
    oneAtATime("Python", () => start(opened, installation));
    running = new Interpreter(opened);
    program = installation?.executable;
    if (options.home !== undefined) homes.add(options.home);
    alsoPoll(pollPython);
  } else if (library !== undefined && openLibrary({ ...pythonLibrary, path: library }).path !== running.path) {
    throw new FfiError(`Cannot open ${library}: this process runs the Python of ${running.path}, and can run only one`);
  } else if (options.home !== undefined) checkHome(options.home, running);
  return running;
}

/** Unpins the arrays that Python's consumers have released since the last poll. */
function pollPython(): void {
  const python = running;
  if (python?.hasExports) python.locked(() => python.releaseAndPoll());
}

interface Found {
  readonly opened: NativeLibrary<typeof cpython>;
  /** null if no program belongs to the library: the interpreter then finds its packages itself. */
  readonly installation: Installation | null;
}

// law python/find: python/open, python/object, python/frame, python/leaks
/** The first interpreter whose library can be opened, and the library. */
function find({ library, home }: PythonOptions): Found {
  // Global: extension modules such as NumPy's resolve the interpreter's functions from the global symbols.
  const description = { ...pythonLibrary, global: true as const, ...(library === undefined ? {} : { path: library }) };
  let problem: LibraryNotFoundError | undefined;
  for (const installation of findInterpreters(home)) {
    try {
      return { opened: openLibrary({ ...description, sonames: installation.libraries }), installation };
    } catch (error) {
      if (!(error instanceof LibraryNotFoundError)) throw error;
      problem ??= error; // for the best interpreter: it says what to install
    }
  }
  if (problem !== undefined) throw problem;
  if (home !== undefined) {
    throw new FfiError(`Cannot open Python in ${home}: expected a folder with bin/python3, or an interpreter`);
  }
  const chosen = ffiPort().env("CAUSEWAY_PYTHON") ?? "";
  if (chosen !== "" && library === undefined) {
    throw new FfiError(
      `Cannot open the Python of CAUSEWAY_PYTHON, ${chosen}: expected an interpreter. Correct or unset it`,
    );
  }
  return { opened: openLibrary(description), installation: null };
}

/**
 * Extension modules call the functions of the libpython that comes first among the global symbols.
 *
 * @throws {FfiError} if another libpython comes first: its functions would be passed objects of this one
 */
function checkOnlyLibrary({ path, handle }: NativeLibrary<typeof cpython>): void {
  const { dlsym } = libc().loading;
  const symbol = cString("Py_IsInitialized");
  const first = dlsym(0n, symbol); // RTLD_DEFAULT
  if (first !== 0n && first !== dlsym(handle, symbol)) {
    throw new FfiError(
      `Cannot run the Python of ${path}: this process has loaded another libpython before, whose functions its ` +
        "extension modules would call. Load only one.",
    );
  }
}
