/**
 * Python in the same process.
 *
 * @module
 */
import { cString } from "../ffi/mod.ts";
import { CudaStream } from "../device/mod.ts";
import { checkMade, checkOptions, type OptionNames, show, showAs } from "../layout/mod.ts";
import type { ImportOptions } from "../dlpack/mod.ts";
import type { Interpreter } from "./interpreter.ts";
import { begin } from "./calls.ts";
import { handleOf } from "./handle.ts";
import { fromPython, type PyObject, wrap } from "./object.ts";
import { openInterpreter, type PythonOptions } from "./start_interpreter.ts";
import { setWorkStream } from "./current_work_streams.ts";
import { toPython } from "./to_python.ts";
import { enter, type Entered, withBody } from "./with_manager.ts";

/** Options of {@linkcode Python.open}. */
export interface OpenPythonOptions extends PythonOptions {
  /**
   * The stream on which device arrays that come from Python will be used. Default: the stream of the first view of
   * device memory among the arguments of the call that returned them. Libraries that use DLPack's exchange API also
   * work on it with arrays of its device, until it is closed or Python is opened with another stream. Without it they
   * work on the legacy default stream.
   */
  readonly stream?: CudaStream;
}

/** Options of {@linkcode Python.async}. */
export interface AsyncCallOptions {
  /**
   * Cancels the call: the promise rejects with the signal's reason at once. A call that has not begun is not made; a
   * coroutine gets a `CancelledError` where it waits; a function that is already running completes, and its outcome is
   * discarded.
   */
  readonly signal?: AbortSignal | undefined;
}

const asyncCallOptionNames: OptionNames<AsyncCallOptions> = { signal: true };

const openPythonOptionNames: OptionNames<OpenPythonOptions> = { library: true, home: true, stream: true };

/** Functions whose work continues after they return. */
const goesOnLater = new Set(
  ["AsyncFunction", "GeneratorFunction", "AsyncGeneratorFunction"].map((of) => `[object ${of}]`),
);

function isPromise(value: unknown): boolean {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}

function noText(what: string, value: unknown): TypeError {
  return new TypeError(`Expected ${what} as a string, got ${show(value)}`);
}

/** @throws {TypeError} if an option is not a path */
function checkPath(name: string, what: string, value: unknown): void {
  if (typeof value === "string") return;
  throw new TypeError(`Expected ${name} to be a string, ${what}, got ${show(value)}`);
}

function notAtOnce(what: string): TypeError {
  return new TypeError(
    `Cannot hold Python's lock for ${what}: expected a synchronous function. Await what it needs first, and hold the ` +
      "lock only for the calls to Python",
  );
}

/** The error for an object that is not callable; a coroutine is the result of a call. */
function notCallable(python: Interpreter, object: bigint): TypeError {
  return python.locked(() =>
    new TypeError(
      `Cannot call ${python.show(object)}: expected a Python function` +
        (python.typeHas(object, "__await__") ? ". Write py.async(f)(x), not py.async(f(x)), or await this object" : ""),
    )
  );
}

/**
 * The Python interpreter of this process: calls functions of its libraries with JavaScript arrays, and views theirs.
 *
 * The interpreter's lock is held only during calls, so Python's threads run while JavaScript does something else. A
 * call blocks the event loop until it returns; a call made by `async` does not.
 *
 * @example
 * ```ts ignore
 * const np = Python.open().import("numpy");
 * np.sum(Float32Array.of(1, 2, 3)); // 6
 * using sorted = np.sort(Float32Array.of(3, 1, 2)); // a view of NumPy's memory
 * `${sorted}`; // "[1. 2. 3.]"
 * ```
 *
 * A process has one interpreter, for as long as the process lives: it is never finalized, because extension modules do
 * not survive that, and Python may still use JavaScript arrays.
 */
export class Python {
  readonly #python: Interpreter;
  readonly #options: ImportOptions;

  private constructor(python: Interpreter, options: ImportOptions) {
    checkMade(options, "Python", "Python.open()");
    this.#python = python;
    this.#options = options;
  }

  /**
   * Starts the interpreter of this process, unless it is running already.
   *
   * The interpreter is that of `home`, else the one that `CAUSEWAY_PYTHON` names, else that of the active virtualenv
   * (`VIRTUAL_ENV`) or conda environment, else the first `python3` on PATH, else the system's. It reports where its
   * library is; `library`, or the variable `CAUSEWAY_LIBPYTHON`, names another file of the same version.
   *
   * @throws {TypeError} if an option has the wrong type
   * @throws {LibraryNotFoundError} if there is no libpython; the message says what to install
   * @throws {SystemError} EMFILE if there are too few descriptors left for it
   * @throws {FfiError} if the process already runs another Python, or the library's version is not the interpreter's
   */
  static open(options: OpenPythonOptions = {}): Python {
    checkOptions(options, openPythonOptionNames);
    const { stream, library, home } = options;
    if (library !== undefined) checkPath("library", "the path of libpython", library);
    if (home !== undefined) checkPath("home", "the path of a virtualenv or an interpreter", home);
    if (stream !== undefined && !(stream instanceof CudaStream)) {
      throw new TypeError(`Expected stream to be a CudaStream, got ${show(stream)}`);
    }
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
   * @throws {PythonError} if it does not exist, or fails to load
   */
  import(module: string): PyObject {
    if (typeof module !== "string") throw noText("a module's name", module);
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
    if (typeof code !== "string") throw noText("Python statements", code);
    const python = this.#python;
    python.locked(() => python.releaseAndPoll(python.execute(code, this.#main())));
  }

  /**
   * The value of an expression in the module `__main__`, converted like the result of a call.
   *
   * @throws {PythonError} if it raises an exception
   */
  // deno-lint-ignore no-explicit-any -- only Python knows what comes back
  evaluate(expression: string): any {
    if (typeof expression !== "string") throw noText("a Python expression", expression);
    const python = this.#python;
    return python.locked(() => {
      const value = fromPython(python, python.evaluate(expression, this.#main()), this.#options);
      python.releaseAndPoll(); // the expression may have released something
      return value;
    });
  }

  // law python/Python.locked: python/locked
  /**
   * Runs work while this thread holds the interpreter's lock: each Python call in it saves the cost of taking the lock,
   * and no other Python thread runs in between. Calls may be nested.
   *
   * The work must not be an async function: while it waited, it would block Python's other threads. The compiler
   * refuses one; a generic function that passes its work on declares it as here.
   *
   * @returns what the work returns
   * @throws {TypeError} if the work is an async function or a generator, which is not called, or returns a promise
   */
  locked<T>(work: () => T extends PromiseLike<unknown> ? never : T): T {
    if (goesOnLater.has(Object.prototype.toString.call(work))) throw notAtOnce("an async function or a generator");
    const result = this.#python.locked(work);
    if (isPromise(result)) throw notAtOnce("a function that returns a promise");
    return result;
  }

  /**
   * Returns a function that calls a Python object on a Python thread, and returns a promise of the result. The event
   * loop keeps running meanwhile: unhindered while the call is in C or waits; while it runs Python code, JavaScript
   * waits up to five milliseconds for the lock whenever it calls Python itself.
   *
   * Coroutine functions, and callables that return an awaitable, run on an asyncio event loop, all on one thread. At
   * most 32 other calls run at the same time. Arrays among the arguments are kept alive until the call completes;
   * writes to them meanwhile may become visible to either side at any time.
   *
   * @example
   * ```ts ignore
   * const sleep = python.async(python.import("time").sleep, { signal: AbortSignal.timeout(1000) });
   * await sleep(0.1);
   * ```
   *
   * @throws {TypeError} if the object is not a Python object, or is not callable
   */
  // deno-lint-ignore no-explicit-any -- only Python knows what comes back
  async(callable: PyObject, options: AsyncCallOptions = {}): (...args: unknown[]) => Promise<any> {
    checkOptions(options, asyncCallOptionNames);
    const { signal } = options;
    if (signal !== undefined && !(signal instanceof AbortSignal)) {
      throw new TypeError(`Expected signal to be an AbortSignal, got ${show(signal)}`);
    }
    const handle = typeof callable === "function" ? handleOf(callable) : undefined;
    if (handle === undefined) {
      throw new TypeError(
        `Cannot call a value that is not a Python object: expected a function, such as time.sleep, got ${
          show(callable)
        }`,
      );
    }
    const { python, reference } = handle; // 0n: a method, which is looked up again when it is called
    if (reference !== 0n && python.api.objects.PyCallable_Check(reference) === 0) throw notCallable(python, reference);
    return async (...args) => await begin(handle, args, signal, new Error());
  }

  /** A tuple: an array would become a list. */
  tuple(...items: readonly unknown[]): PyObject {
    return this.#make((python) => python.tuple(toPython(python, items)));
  }

  /** A copy of bytes as a `bytes` object: a typed array would become an array. */
  bytes(bytes: ArrayBuffer | ArrayBufferView): PyObject {
    const copy = ArrayBuffer.isView(bytes)
      ? new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength).slice()
      : new Uint8Array(bytes.slice());
    return this.#make((python) =>
      python.check(python.api.text.PyBytes_FromStringAndSize(copy.length === 0 ? null : copy, BigInt(copy.length)))
    );
  }

  /** A float, even if the number is an integer, which would become an int. */
  float(value: number): PyObject {
    return this.#make((python) => python.check(python.api.numbers.PyFloat_FromDouble(value)));
  }

  /**
   * Enters a context manager until the end of the block: `using entered = py.with(manager)`; `entered.value` is what
   * `__enter__` returns. Its `__exit__` is never passed an exception, because `using` does not reveal one.
   *
   * @throws {PythonError} if it is not a context manager, or cannot be entered
   */
  with(manager: PyObject): Entered;
  /**
   * Runs work within a context manager, like Python's `with`: `py.with(lock, () => ...)`. An exception that the work
   * throws goes through the manager's `__exit__`, which may suppress it. The interpreter's lock is held meanwhile.
   *
   * @returns what the work returns; undefined if the manager suppressed its exception
   * @throws {TypeError} if the work returns a promise
   */
  // deno-lint-ignore no-explicit-any -- only Python knows what the manager gives
  with<T>(manager: PyObject, work: (value: any) => T extends PromiseLike<unknown> ? never : T): T | undefined;
  // deno-lint-ignore no-explicit-any -- as above
  with<T>(manager: PyObject, work?: (value: any) => T): Entered | T | undefined {
    return work === undefined ? enter(manager, this.#options) : withBody(manager, work);
  }

  #make(make: (python: Interpreter) => bigint): PyObject {
    const python = this.#python;
    return python.locked(() => wrap(python, make(python), this.#options));
  }

  #main(): bigint {
    const { PyModule_GetDict, PyImport_AddModule } = this.#python.api.run;
    return PyModule_GetDict(PyImport_AddModule(cString("__main__")));
  }

  static {
    showAs(Python, ({ version, library }) => `${version} (${library})`);
  }
}
