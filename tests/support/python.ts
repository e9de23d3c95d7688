/**
 * CPython in the process of a test: enough to run scripts, and to hand tensors over in both directions.
 *
 * An interpreter, its library and its packages must belong together, so an interpreter is asked (in a process of its own)
 * where the other two are.
 *
 * @module
 */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import process from "node:process";
import type { cpython } from "../../bindings/cpython.ts";
import { Py_input } from "../../bindings/cpython.ts";
import { DlpackTensor } from "../../src/exchange/dlpack.ts";
import { Python } from "../../src/exchange/mod.ts";
import { pythonLibrary } from "../../src/exchange/python/library.ts";
import { NativeArena } from "../../src/ffi/arena.ts";
import { openLibrary } from "../../src/ffi/library.ts";
import { cString, readCString, readString } from "../../src/ffi/text.ts";
import type { Functions } from "../../src/ffi/types.ts";

/** An interpreter with its library and its packages. */
export interface PythonInstallation {
  /** The program that was asked. */
  readonly executable: string;
  /** Path of libpython. */
  readonly library: string;
  /** `sys.path`. */
  readonly path: readonly string[];
  /** Version of each package that was asked for, by name; `a module` for one that is known by the name of its module. */
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
print(json.dumps({"executable": sys.executable, "library": library, "path": sys.path[1:], "packages": packages}))
`;

/**
 * The first interpreter that has a library and these packages: CAUSEWAY_PYTHON if it is set, else that of an active
 * virtualenv, else the system's, whose packages a distribution installs, else `python3`.
 *
 * @returns what is missing, and how to get it, if there is none
 */
export function findPython(...packages: string[]): PythonInstallation | string {
  const { CAUSEWAY_PYTHON, VIRTUAL_ENV } = process.env;
  const programs = CAUSEWAY_PYTHON ? [CAUSEWAY_PYTHON] : [
    ...(VIRTUAL_ENV ? [`${VIRTUAL_ENV}/bin/python3`] : []),
    "/usr/bin/python3",
    "python3",
  ];
  const problems: string[] = [];
  for (const program of programs) {
    const found = askPython(program, packages);
    if (typeof found === "string") problems.push(`${program} ${found}`);
    else return found;
  }
  const debian = [
    "libpython3.11 (3.12 on Ubuntu 24.04)",
    ...packages.map((name) => `python3-${name.replace(/>=.*/, "")}`),
  ];
  return `no Python to load: ${problems.join(", ")}; apt-get install ${debian.join(" ")}`;
}

/** As {@linkcode findPython}, and where that lacks a package the system's interpreter: a distribution may install it there. */
export function findPythonOrSystem(...packages: string[]): PythonInstallation | string {
  const found = findPython(...packages);
  if (typeof found !== "string") return found;
  const system = askPython("/usr/bin/python3", packages);
  return typeof system === "string" ? found : system;
}

/** An interpreter, if it has a library and these packages, such as `numpy` or `numpy>=2.1`; else what it lacks. */
function askPython(program: string, wanted: readonly string[]): PythonInstallation | string {
  const least = wanted.map((one) => one.split(">=") as [name: string, version?: string]); // split gives one at least
  const packages = least.map(([name]) => name);
  let installation: PythonInstallation;
  try {
    const output = execFileSync(program, ["-c", question, ...packages], { encoding: "utf8", stdio: "pipe" });
    installation = JSON.parse(output);
  } catch {
    return "is not there or does not run";
  }
  const absent = packages.filter((name) => installation.packages[name] === undefined);
  if (absent.length > 0) return `has no ${absent.join(" and no ")}`;
  for (const [name, version = "0"] of least) {
    const there = installation.packages[name] ?? "0";
    if (there.localeCompare(version, "en", { numeric: true }) < 0) return `has ${name} ${there}, not ${version}`;
  }
  return existsSync(installation.library) ? installation : `has no ${installation.library}`;
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

/** What the scripts of tests find defined: how to wrap a capsule, and how to run code and report its failure as text. */
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

/** The interpreter of this process. The lock is held during calls only, so that any thread may be the next to use it. */
export class TestPython {
  readonly #api: Functions<typeof cpython>;
  readonly #globals: bigint;

  private constructor(api: Functions<typeof cpython>, globals: bigint) {
    this.#api = api;
    this.#globals = globals;
  }

  /** Starts the interpreter, unless this process has it running already. */
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

  /** The value of an expression, by way of JSON. @throws {PythonError} */
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

  /** The tensor in the capsule that an expression gives, taken over as the protocol says. */
  take(expression: string): DlpackTensor {
    return this.#locked(() => {
      const { capsules } = this.#api;
      this.#attempt(expression, "evaluate");
      const capsule = this.#result();
      const isVersioned = readCString(capsules.PyCapsule_GetName(capsule)) === "dltensor_versioned";
      const ptr = capsules.PyCapsule_GetPointer(capsule, cString(isVersioned ? "dltensor_versioned" : "dltensor"));
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
