/**
 * CPython in a test's process: enough to run scripts, and to hand tensors over in both directions.
 *
 * An interpreter, its library and its packages must belong together, so an interpreter is queried (in a separate
 * process) for the other two.
 *
 * @module
 */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import process from "node:process";
import type { cpython } from "../../bindings/cpython.ts";
import { Py_input } from "../../bindings/cpython.ts";
import { DlpackTensor } from "../../src/dlpack/tensor.ts";
import { Python } from "../../mod.ts";
import { pythonLibrary } from "../../src/python/find_library.ts";
import { NativeArena } from "../../src/ffi/arena.ts";
import { openLibrary } from "../../src/ffi/library.ts";
import { cString, readCString, readString } from "../../src/ffi/c_string.ts";
import type { Functions } from "../../src/ffi/types.ts";

/** An interpreter with its library and its packages. */
export interface PythonInstallation {
  /** The program that was queried. */
  readonly executable: string;
  /** `3.12.3`. */
  readonly version: string;
  /** Whether it was built to do without the interpreter's lock. */
  readonly isFreeThreaded: boolean;
  /** Path of libpython. */
  readonly library: string;
  /** `sys.path`. */
  readonly path: readonly string[];
  /** Version of each package that was queried, by name; `a module` for one found by the name of its module. */
  readonly packages: Readonly<Record<string, string>>;
}

const question = `
import importlib.metadata, importlib.util, json, os, sys, sysconfig
packages = {}
for name in sys.argv[1:]:
    try: packages[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        try: there = importlib.util.find_spec(name)
        except ModuleNotFoundError: there = None # of a parent
        if there is not None: packages[name] = "a module"
get = sysconfig.get_config_var
library = os.path.join(get("LIBDIR") or "", get("INSTSONAME") or "")
version = sys.version.split()[0]
print(json.dumps({"executable": sys.executable, "version": version, "library": library, "path": sys.path[1:],
    "isFreeThreaded": bool(get("Py_GIL_DISABLED")), "packages": packages}))
`;

/** Packages that tests use in their own process. It can load one Python only: the one that has most of them. */
const wanted: readonly string[] = [
  "numpy",
  "ml_dtypes",
  "pyarrow",
  "nanoarrow",
  "pandas",
  "polars",
  "duckdb",
  "torch",
  "cupy",
  "numba",
  "jax",
  "tvm_ffi",
  "cuda-core",
  "cuda-bindings",
  "unicorn",
  "vortex-data",
];

/** An interpreter and which of `wanted` it has, or why it cannot be loaded. */
type Candidate = PythonInstallation | string;

let chosen: Candidate | undefined;

/**
 * The Python of this process, if it has these packages: the same one for every caller, because a process can load one
 * only. It is CAUSEWAY_PYTHON if that is set; else, of an active virtualenv's, the first on PATH and the system's, the
 * one that has most of the packages that tests want. Which one it is, and what it lacks, is printed.
 *
 * @param packages of those that tests want, such as `numpy` or `numpy>=2.1`
 * @returns what is missing, and how to get it, if it lacks any of them
 */
export function findPython(...packages: string[]): PythonInstallation | string {
  const unknown = packages.map(nameOf).find((name) => !wanted.includes(name));
  if (unknown !== undefined) throw new TypeError(`Cannot choose a Python with ${unknown}: add it to what tests want`);
  if (chosen === undefined) {
    chosen = choosePython(programs().map((program) => askOnce(program, wanted)));
    console.log(describe(chosen));
  }
  return withPackages(chosen, packages);
}

/**
 * Where answers are cached for the other files of a run, and for the processes that they start: a query takes 0.1 s.
 */
const answers = "CAUSEWAY_TEST_PYTHONS";

/** An interpreter's answer; it is queried once per run. */
function askOnce(program: string, packages: readonly string[]): Candidate {
  const known: Record<string, Candidate> = JSON.parse(process.env[answers] ?? "{}"); // written below
  const question = [process.env["PATH"], program, ...packages].join("\n");
  const answer = known[question] ?? askPython(program, packages);
  process.env[answers] = JSON.stringify({ ...known, [question]: answer });
  return answer;
}

/**
 * An interpreter for a separate process, which may differ from this process's: the first that has a library and these
 * packages. A distribution may provide for the system's Python packages too large for a virtualenv.
 */
export function findPythonOrSystem(...packages: string[]): PythonInstallation | string {
  const names = packages.map(nameOf);
  const found = [...programs(), "/usr/bin/python3"].map((program) => withPackages(askOnce(program, names), packages));
  return found.find((one) => typeof one !== "string") ?? found[0] ?? "no Python";
}

/** The candidate with most packages; the first of several. If none can be loaded, why. */
export function choosePython(candidates: readonly Candidate[]): Candidate {
  let best: PythonInstallation | null = null;
  const count = ({ packages }: PythonInstallation) => Object.keys(packages).length;
  for (const one of candidates) {
    if (typeof one !== "string" && (best === null || count(one) > count(best))) best = one;
  }
  return best ?? `no Python to load: ${candidates.join(", ")}; apt-get install libpython3.11 (3.12 on Ubuntu 24.04)`;
}

/** Interpreters that may be chosen, best first. */
function programs(): readonly string[] {
  const { CAUSEWAY_PYTHON, VIRTUAL_ENV } = process.env;
  if (CAUSEWAY_PYTHON) return [CAUSEWAY_PYTHON];
  return [...(VIRTUAL_ENV ? [`${VIRTUAL_ENV}/bin/python3`] : []), "python3", "/usr/bin/python3"];
}

function nameOf(wanted: string): string {
  return wanted.replace(/>=.*/, "");
}

function describe(python: Candidate): string {
  if (typeof python === "string") return python;
  const { executable, version, packages } = python;
  const there = Object.entries(packages).map(([name, version]) => version === "a module" ? name : `${name} ${version}`);
  const absent = wanted.filter((name) => packages[name] === undefined);
  return `Python ${version}, ${executable}: ${there.join(", ") || "no packages"}; without ${
    absent.join(", ") || "none"
  }`;
}

/** An interpreter, if it has these packages; else what it lacks. */
function withPackages(python: Candidate, packages: readonly string[]): PythonInstallation | string {
  if (typeof python === "string") return python;
  const { executable, packages: there } = python;
  const absent = packages.map(nameOf).filter((name) => there[name] === undefined);
  if (absent.length > 0) {
    return `${executable} has no ${absent.join(" and no ")}: install it there, or set CAUSEWAY_PYTHON`;
  }
  for (const one of packages) {
    const [name = "", least = "0"] = one.split(">=");
    const version = there[name] ?? "0";
    if (version.localeCompare(least, "en", { numeric: true }) < 0) {
      return `${executable} has ${name} ${version}, not ${least}: set CAUSEWAY_PYTHON to one that has`;
    }
  }
  return python;
}

/** Queries an interpreter for some packages; or says that it does not run, or has no library. */
function askPython(program: string, packages: readonly string[]): Candidate {
  try {
    const output = execFileSync(program, ["-c", question, ...packages], { encoding: "utf8", stdio: "pipe" });
    const installation: PythonInstallation = JSON.parse(output);
    return existsSync(installation.library) ? installation : `${program} has no ${installation.library}`;
  } catch {
    return `${program} is not there or does not run`;
  }
}

/** A Python exception, with its traceback as the message. */
export class PythonError extends Error {
  override readonly name: string = "PythonError";
}

/** Names of capsules. A capsule keeps the address of its name, so they are never freed. */
const names = new NativeArena();
const capsuleNames = {
  legacy: names.cString("dltensor"),
  legacyUsed: names.cString("used_dltensor"),
  versioned: names.cString("dltensor_versioned"),
  versionedUsed: names.cString("used_dltensor_versioned"),
};

/** Definitions for the tests' scripts: how to wrap a capsule, and how to run code and report its failure as text. */
const prelude = `
import json, sys, traceback
class Producer:
    def __init__(self, capsule): self.capsule = capsule
    def __dlpack_device__(self): return (1, 0)
    def __dlpack__(self, **options): return self.capsule
class Probe:
    def __dlpack_device__(self): return (1, 0)
    def __dlpack__(self, **options):
        self.options = options
        raise InterruptedError
def accepts_versions(from_dlpack):
    probe = Probe()
    try: from_dlpack(probe)
    except InterruptedError: return "max_version" in probe.options
def attempt(code, evaluate):
    global result
    try:
        if evaluate: result = eval(code, globals())
        else: exec(code, globals())
        return ""
    except BaseException: return traceback.format_exc()
`;

/** The interpreter of this process. The GIL is held during calls only, so that any thread may be the next to use it. */
export class TestPython {
  readonly #api: Functions<typeof cpython>;
  readonly #globals: bigint;

  private constructor(api: Functions<typeof cpython>, globals: bigint) {
    this.#api = api;
    this.#globals = globals;
  }

  /** Starts the interpreter, unless it is already running in this process. */
  static open({ executable }: PythonInstallation): TestPython {
    const { library } = Python.open({ home: executable });
    const { functions: api } = openLibrary({ ...pythonLibrary, path: library });
    const state = api.threads.PyGILState_Ensure();
    try {
      const globals = api.run.PyModule_GetDict(api.run.PyImport_AddModule(cString("__main__")));
      if (api.run.PyRun_SimpleString(cString(prelude)) !== 0) throw new PythonError("the prelude has failed");
      return new TestPython(api, globals);
    } finally {
      api.threads.PyGILState_Release(state);
    }
  }

  /** Runs statements. @throws {PythonError} */
  run(code: string): void {
    this.#locked(() => this.#attempt(code, "run"));
  }

  /** The value of an expression, via JSON. @throws {PythonError} */
  evaluate(expression: string): unknown {
    return this.#locked(() => {
      this.#attempt(`json.dumps(${expression})`, "evaluate");
      return JSON.parse(this.#text(this.#result()));
    });
  }

  /** Wraps a tensor for Python, in a variable of this name. Python's consumer must then take it. */
  give(name: string, tensor: DlpackTensor): void {
    this.#locked(() => {
      const { capsules, dicts, objects } = this.#api;
      const capsuleName = tensor.version === null ? capsuleNames.legacy : capsuleNames.versioned;
      const capsule = capsules.PyCapsule_New(tensor.take(), capsuleName, 0n);
      dicts.PyDict_SetItemString(this.#globals, cString("capsule"), capsule);
      objects.Py_DecRef(capsule);
      this.#attempt(`${name} = Producer(capsule); del capsule`, "run");
    });
  }

  /** The tensor in the capsule that an expression returns, taken over as the protocol requires. */
  take(expression: string): DlpackTensor {
    return this.#locked(() => {
      const { capsules } = this.#api;
      this.#attempt(expression, "evaluate");
      const capsule = this.#result();
      const isVersioned = readCString(capsules.PyCapsule_GetName(capsule)) === "dltensor_versioned";
      const ptr = capsules.PyCapsule_GetPointer(capsule, isVersioned ? capsuleNames.versioned : capsuleNames.legacy);
      capsules.PyCapsule_SetName(capsule, isVersioned ? capsuleNames.versionedUsed : capsuleNames.legacyUsed);
      this.#attempt("del result", "run");
      return new DlpackTensor(ptr, isVersioned ? [1, 0] : null, { isReleased: () => false });
    });
  }

  #locked<T>(work: () => T): T {
    const { PyGILState_Ensure, PyGILState_Release } = this.#api.threads;
    const state = PyGILState_Ensure();
    try {
      return work();
    } finally {
      PyGILState_Release(state);
    }
  }

  /** Runs code through the prelude's `attempt`, which reports exceptions as text. */
  #attempt(code: string, how: "run" | "evaluate"): void {
    const call = `attempt(${JSON.stringify(code)}, ${how === "evaluate" ? "True" : "False"})`;
    const { objects, run } = this.#api;
    const report = run.PyRun_StringFlags(cString(call), Py_input.Py_eval_input, this.#globals, this.#globals, 0n);
    if (report === 0n) throw new PythonError(`cannot run ${code}`);
    const text = this.#text(report);
    objects.Py_DecRef(report);
    if (text !== "") throw new PythonError(text);
  }

  /** The prelude's variable `result`; borrowed. */
  #result(): bigint {
    return this.#api.dicts.PyDict_GetItemString(this.#globals, cString("result"));
  }

  #text(string: bigint): string {
    using arena = new NativeArena();
    const size = arena.out("i64");
    const start = this.#api.text.PyUnicode_AsUTF8AndSize(string, size.$address);
    return readString(start, Number(size.value));
  }
}
