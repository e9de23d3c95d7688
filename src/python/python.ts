/**
 * Python in the same process.
 *
 * @module
 */
import { cString } from "../ffi/mod.ts";
import type { CudaStream } from "../device/mod.ts";
import { checkOptions, type OptionNames, showAs } from "../layout/mod.ts";
import type { ImportOptions } from "../dlpack/mod.ts";
import type { Interpreter } from "./interpreter.ts";
import { fromPython, type PyObject, wrap } from "./object.ts";
import { openInterpreter, type PythonOptions } from "./start_interpreter.ts";
import { setWorkStream } from "./current_work_streams.ts";

/** Options of {@linkcode Python.open}. */
export interface OpenPythonOptions extends PythonOptions {
  /**
   * The stream on which device arrays that come from Python will be used. Default: that of the first view of device
   * memory among the arguments of the call that they come from. Libraries that use DLPack's exchange API work on it,
   * too, with arrays of its device: until it is closed, or Python is opened with another one. Without one they work on
   * the legacy default stream.
   */
  readonly stream?: CudaStream;
}

const openPythonOptionNames: OptionNames<OpenPythonOptions> = { library: true, home: true, stream: true };

/** Functions whose work is not over when they return. */
const goesOnLater = new Set(
  ["AsyncFunction", "GeneratorFunction", "AsyncGeneratorFunction"].map((of) => `[object ${of}]`),
);

function isPromise(value: unknown): boolean {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}

function notAtOnce(what: string): TypeError {
  return new TypeError(
    `Cannot hold Python's lock for ${what}: expected a function whose work is over when it returns. Wait for what it ` +
      "needs first, and take the lock for the calls of Python",
  );
}

/**
 * The Python interpreter of this process: calls functions of its libraries with JavaScript's arrays, and sees theirs.
 *
 * The interpreter's lock is held during calls only, so Python's threads run while JavaScript does something else. A
 * call blocks the event loop until it returns.
 *
 * @example
 * ```ts ignore
 * const np = Python.open().import("numpy");
 * np.sum(Float32Array.of(1, 2, 3)); // 6
 * using sorted = np.sort(Float32Array.of(3, 1, 2)); // a view of NumPy's memory
 * `${sorted}`; // "[1. 2. 3.]"
 * ```
 *
 * There is one interpreter in a process, for as long as the process lives: nothing ends it, because extension modules
 * do not survive that, and Python may still use arrays of JavaScript.
 */
export class Python {
  readonly #python: Interpreter;
  readonly #options: ImportOptions;

  private constructor(python: Interpreter, options: ImportOptions) {
    this.#python = python;
    this.#options = options;
  }

  /**
   * Starts the interpreter of this process, unless it is running already.
   *
   * Which one: that of `home`, else what `CAUSEWAY_PYTHON` names, else that of the active virtualenv (`VIRTUAL_ENV`) or
   * conda environment, else the first `python3` on PATH, else the system's. It says where its library is;
   * `library`, or the variable `CAUSEWAY_LIBPYTHON`, names another file of the same version.
   *
   * @throws {LibraryNotFoundError} if there is no libpython; the message says what to install
   * @throws {FfiError} if the process has another Python already, or the library is not of the interpreter's version
   */
  static open(options: OpenPythonOptions = {}): Python {
    checkOptions(options, openPythonOptionNames);
    const { stream } = options;
    const python = openInterpreter(options);
    if (stream === undefined) return new Python(python, {});
    const locked = (work: () => void) => python.locked(work);
    locked(() => setWorkStream(stream, locked));
    return new Python(python, { stream });
  }

  /** Path of libpython. */
  get library(): string {
    return this.#python.path;
  }

  /** Python's version: `3.12.3`. */
  get version(): string {
    return this.#python.version;
  }

  /** Python's built-in functions and types. */
  get builtins(): PyObject {
    return this.import("builtins");
  }

  /**
   * Imports a module: `py.import("torch.nn.functional")`.
   *
   * @throws {PythonError} if it is not there, or fails to load
   */
  import(module: string): PyObject {
    const python = this.#python;
    return python.locked(() =>
      wrap(python, python.check(python.api.run.PyImport_ImportModule(cString(module))), this.#options)
    );
  }

  /**
   * Runs statements in the module `__main__`.
   *
   * @throws {PythonError} if they raise an exception
   */
  run(code: string): void {
    const python = this.#python;
    python.locked(() => python.releaseAndPoll(python.execute(code, this.#main())));
  }

  /**
   * The value of an expression in the module `__main__`, converted as the result of a call is.
   *
   * @throws {PythonError} if it raises an exception
   */
  // deno-lint-ignore no-explicit-any -- only Python knows what comes back
  evaluate(expression: string): any {
    const python = this.#python;
    return python.locked(() => {
      const value = fromPython(python, python.evaluate(expression, this.#main()), this.#options);
      python.releaseAndPoll(); // what the expression has released
      return value;
    });
  }

  // law python/Python.locked: python/locked
  /**
   * Does work while this thread holds the interpreter's lock: each call of Python in it is shorter by what it takes to
   * take the lock, and no other thread of Python runs in between. Calls may be nested.
   *
   * Work that waits for something, which is why it is no async function, would keep Python's other threads waiting.
   *
   * @returns what the work returns
   * @throws {TypeError} if the work is an async function or a generator, which are not called, or returns a promise
   */
  locked<T>(work: () => T): T {
    if (goesOnLater.has(Object.prototype.toString.call(work))) throw notAtOnce("an async function or a generator");
    const result = this.#python.locked(work);
    if (isPromise(result)) throw notAtOnce("a function that returns a promise");
    return result;
  }

  #main(): bigint {
    const { PyModule_GetDict, PyImport_AddModule } = this.#python.api.run;
    return PyModule_GetDict(PyImport_AddModule(cString("__main__")));
  }

  static {
    showAs(Python, ({ version, library }) => `${version} (${library})`);
  }
}
