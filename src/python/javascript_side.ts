/**
 * JavaScript as seen by Python: functions passed to it and errors that they threw, kept as long as Python has an object
 * for them; and calls on which JavaScript does not block. The Python side is guest/javascript_functions.py, which
 * determines which thread may enter JavaScript when.
 *
 * @module
 */
import { Py_TPFLAGS } from "../../bindings/cpython.ts";
import { EFD } from "../../bindings/libc.ts";
import { attempt, ffiPort, libc, NativeArena, type NativeCallback, SystemError } from "../ffi/mod.ts";
import { mapExecutable, type ReadableWatch, watchReadable } from "../native/mod.ts";
import type { ImportOptions } from "../dlpack/mod.ts";
import { exceptionBehind, PythonError } from "./error.ts";
import { errorOf } from "./exception.ts";
import { exitCode } from "./exit_thunk.ts";
import { Handle, handleOf } from "./handle.ts";
import type { Interpreter } from "./interpreter.ts";
import { kwargs } from "./keywords.ts";
import { fromPython } from "./object.ts";
import { toPython } from "./to_python.ts";

/** A function that was passed to Python. */
type ExportedFunction = (...args: unknown[]) => unknown;

/** Results of entering JavaScript; see guest/javascript_functions.py. */
const outcomes = { failed: 0, returned: 1, raised: 2 } as const;

/** What is kept for a call that has begun. */
interface Begun {
  /** Where device arrays in the result will be used. */
  readonly options: ImportOptions;
  /** Made at the program's call site: its stack is formatted if the call fails. */
  readonly calledAt: Error;
}

/** A pending call, and the functions that settle its promise. */
interface Waiting extends Begun {
  readonly resolve: (value: unknown) => void;
  readonly reject: (reason: unknown) => void;
}

/** The last key under which a function or an error is kept for Python: keys are unique numbers. */
let lastKey = 0;

/** The handle of a value that is a `PyObject`. */
function handleIn(value: unknown): Handle | undefined {
  try {
    return isObject(value) ? handleOf(value) : undefined;
  } catch { // anything can be thrown, also a proxy that throws
    return undefined;
  }
}

function isObject(value: unknown): value is object {
  return Object(value) === value;
}

/** JavaScript for Python, on one thread. All its functions need the interpreter's lock, except where documented. */
export class JavaScriptSide {
  /**
   * First: odd while JavaScript is inside a call of Python. Second: how many keys are no longer needed. Third: set once
   * the program's modules are given up. Fourth: set by who rings, until JavaScript comes.
   */
  readonly numbers: Int32Array<ArrayBuffer>;
  readonly #python: Interpreter;
  /** How Python enters JavaScript, once it has a function. */
  #callback: NativeCallback | null = null;
  readonly #bell: number;
  readonly #watch: ReadableWatch;
  /** Receives the count of the eventfd. */
  readonly #count: bigint = new NativeArena().bytes(8).address;
  readonly #keys = new WeakMap<ExportedFunction, number>();
  readonly #functions = new Map<number, ExportedFunction>();
  readonly #thrown = new Map<number, unknown>();
  readonly #waiting = new Map<number, Waiting>();
  #lastCall = 0;

  /** @throws {SystemError} if no descriptors are left @throws {FfiError} if no threads are left */
  constructor(python: Interpreter) {
    this.#python = python;
    const numbers = python.readInteger(python.helper("javascript_numbers"));
    this.numbers = new Int32Array(ffiPort().memory(BigInt(numbers), 16)); // lives as long as the interpreter
    this.#bell = attempt(() => libc().files.eventfd(0, EFD.CLOEXEC));
    if (this.#bell < 0) {
      const hint = "Are there too many open files?";
      throw new SystemError("let Python call JavaScript", "eventfd", -this.#bell, hint);
    }
    try {
      this.#watch = watchReadable([this.#bell], () => this.#rung());
    } catch (error) {
      libc().files.close(this.#bell);
      throw error;
    }
    this.#watch.keepAlive(false);
    this.#watch.start();
    const { isWorker } = ffiPort();
    const says = isWorker || ffiPort().atUnload(() => this.numbers[2] = 1);
    const { none, true: yes, false: no } = python.singletons;
    const endings = says ? this.#endings() : python.retain(none);
    const bound = [python.smallInteger(this.#bell), endings, python.retain(isWorker ? yes : no)];
    python.release(python.callHelper("bind_javascript", bound));
    python.hasExports = true; // polls find out which functions Python has released
  }

  /** For Python: the C calls that end the watch with this thread or its modules, each a function and its argument. */
  #endings(): bigint {
    const python = this.#python;
    const calls = this.#watch.endings();
    return python.tuple(calls.map((call) => python.tuple(call.map((word) => python.integer(word)))));
  }

  // law python/JavaScriptSide.exportFunction: python/functions
  /** A new reference to the Python object for a function. */
  exportFunction(fn: ExportedFunction): bigint {
    const python = this.#python;
    this.#callback ??= this.#makeEntrance();
    let key = this.#keys.get(fn);
    if (key === undefined) this.#keys.set(fn, key = ++lastKey);
    this.#functions.set(key, fn);
    return python.callHelper("function_of", [
      python.smallInteger(key),
      python.text(String(fn.name)),
      python.smallInteger(parametersOf(fn)),
      python.retain(isAsync(fn) ? python.singletons.true : python.singletons.false),
    ]);
  }

  /** Made when it is needed: Deno does not free one that is open when its Worker ends, nor two descriptors with it. */
  #makeEntrance(): NativeCallback {
    const python = this.#python;
    const callback = ffiPort().callback(
      { args: ["i64", "ptr", "ptr", "ptr"], returns: "i32" },
      (key, args, keywords, box) => this.#entered(Number(key), args, keywords, box),
    );
    python.release(python.callHelper("bind_entrance", [python.integer(callback.address)]));
    return callback;
  }

  /** The function behind an object made by `exportFunction`; undefined if another thread passed it. */
  functionOf(object: bigint): ExportedFunction | undefined {
    const key = this.#keyOf(object);
    const fn = this.#functions.get(key);
    return fn !== undefined && this.#keys.get(fn) === key ? fn : undefined;
  }

  /** The value that a function threw, given the exception that it became. */
  thrownFor(exception: bigint): unknown {
    return this.#thrown.get(this.#keyOf(exception));
  }

  /** The value that a function threw, by its key. */
  thrownWith(key: number): unknown {
    return this.#thrown.get(key);
  }

  /** Whether Python has released anything since the last poll. Needs no lock. */
  get hasDead(): boolean {
    return this.numbers[1] !== 0;
  }

  // law python/JavaScriptSide.poll: python/functions
  /** Drops functions and errors that Python has released. */
  poll(): void {
    if (!this.hasDead) return;
    const python = this.#python;
    const keys = python.callHelper("take_dead", []);
    try {
      for (let i = 0n; i < python.api.lists.PyList_Size(keys); i++) {
        const key = Number(python.readInteger(python.api.lists.PyList_GetItem(keys, i)));
        this.#functions.delete(key);
        this.#thrown.delete(key);
      }
    } finally {
      python.release(keys);
    }
  }

  /** How many functions and errors are kept for Python. */
  get keptForPython(): number {
    return this.#functions.size + this.#thrown.size;
  }

  #keyOf(object: bigint): number {
    const python = this.#python;
    const key = python.attribute(object, "key");
    try {
      return Number(python.readInteger(key));
    } finally {
      python.release(key);
    }
  }

  /** Called by Python, on this thread. No exception may unwind into Python's frames. */
  #entered(key: number, args: bigint, keywords: bigint, box: bigint): number {
    const python = this.#python;
    try {
      return python.calledBack(() => {
        const put = (value: bigint) => python.api.lists.PyList_SetItem(box, 0n, value); // adopts the reference
        try {
          put(this.#made(atOnce(this.#function(key)(...this.#arguments(args, keywords)))));
          return outcomes.returned;
        } catch (error) {
          put(this.#exceptionOrRaised(error));
          return outcomes.raised;
        }
      });
    } catch {
      python.api.errors.PyErr_Clear();
      return outcomes.failed; // not even an exception could be allocated
    }
  }

  #function(key: number): ExportedFunction {
    const fn = this.#functions.get(key);
    if (fn === undefined) throw new TypeError("Cannot call a function that another thread passed to Python");
    return fn;
  }

  /** A result as a Python object. */
  #made(result: unknown): bigint {
    const [object = 0n] = toPython(this.#python, [result]);
    return object;
  }

  // law python/JavaScriptSide.arguments: python/functions
  /** Arguments from Python: keyword arguments, if any, are the last one. */
  #arguments(args: bigint, keywords: bigint): unknown[] {
    const python = this.#python;
    const { tuples, dicts } = python.api;
    const values: unknown[] = [];
    for (let i = 0n; i < tuples.PyTuple_Size(args); i++) {
      values.push(fromPython(python, python.retain(tuples.PyTuple_GetItem(args, i)), {}));
    }
    if (dicts.PyDict_Size(keywords) > 0n) values.push(kwargs(this.#named(keywords)));
    return values;
  }

  #named(keywords: bigint): Record<string, unknown> {
    const python = this.#python;
    const pairs = python.callHelper("pairs_of", [python.retain(keywords)]);
    const { lists, tuples } = python.api;
    try {
      return Object.fromEntries(Array.from({ length: Number(lists.PyList_Size(pairs)) }, (_, i) => {
        const pair = lists.PyList_GetItem(pairs, BigInt(i));
        const value = fromPython(python, python.retain(tuples.PyTuple_GetItem(pair, 1n)), {});
        return [python.readText(tuples.PyTuple_GetItem(pair, 0n)), value];
      }));
    } finally {
      python.release(pairs);
    }
  }

  // law python/JavaScriptSide.exceptionFor: python/functions, python/raised
  /** A new reference to the Python exception for a thrown value: itself, its original exception, or a new one. */
  exceptionFor(error: unknown): bigint {
    const python = this.#python;
    const address = error instanceof PythonError ? exceptionBehind(error).address : this.#exceptionIn(error);
    if (address !== 0n) return python.retain(address);
    const key = ++lastKey;
    const made = python.callHelper("error_of", [python.text(described(error)), python.smallInteger(key)]);
    this.#thrown.set(key, error); // not before: without an exception nobody would say when it is no longer needed
    return made;
  }

  /** The address of a Python exception that was thrown as it is; 0n for everything else. */
  #exceptionIn(thrown: unknown): bigint {
    const handle = handleIn(thrown);
    if (handle === undefined || handle.reference === 0n) return 0n;
    return this.#python.typeFlags(handle.reference) & Py_TPFLAGS.BASE_EXC_SUBCLASS ? handle.reference : 0n;
  }

  // law python/JavaScriptSide.exceptionOrRaised: python/signals
  /** As {@linkcode JavaScriptSide.exceptionFor}, or what a signal's handler has raised meanwhile. */
  #exceptionOrRaised(error: unknown): bigint {
    try {
      return this.exceptionFor(error);
    } catch (raised) {
      return this.exceptionFor(raised);
    }
  }

  // law python/JavaScriptSide.begin: python/async
  /**
   * Begins a call.
   *
   * @param callable borrowed
   * @param objects its arguments; adopted
   * @param named a dict, or 0n; adopted
   * @throws the reason of a signal that is already aborted
   */
  begin(
    callable: bigint,
    objects: readonly bigint[],
    named: bigint,
    { options, calledAt, signal }: Begun & { readonly signal?: AbortSignal | undefined },
  ): Promise<unknown> {
    const python = this.#python;
    const number = ++this.#lastCall;
    if (number === 1) this.#bindExit();
    const job = python.callHelper("begin_call", [
      python.smallInteger(number),
      python.retain(callable),
      python.tuple(objects),
      named === 0n ? python.retain(python.singletons.none) : named,
    ]);
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const settled = () => {
      signal?.removeEventListener("abort", cancel);
      if (this.#waiting.delete(number)) python.release(job);
      this.#watch.keepAlive(this.#waiting.size > 0);
    };
    const cancel = () => {
      try {
        python.locked(() => {
          try {
            python.release(method(python, job, "cancel"));
          } finally {
            settled();
          }
        });
      } finally {
        reject(signal?.reason);
      }
    };
    this.#waiting.set(number, {
      resolve: (value) => (settled(), resolve(value)),
      reject: (reason) => (settled(), reject(reason)),
      options,
      calledAt,
    });
    this.#watch.keepAlive(true);
    signal?.addEventListener("abort", cancel);
    return promise;
  }

  // law python/JavaScriptSide.bindExit: python/exit
  /**
   * Lets the process end at once if it exits while calls are made. The end of a library, such as OpenBLAS's, would wait
   * for threads that work for them: Deno, which runs it, stood still.
   */
  #bindExit(): void {
    const { arch } = ffiPort().platform;
    const [code] = (arch === "other" ? null : mapExecutable([exitCode[arch]()])) ?? []; // Python does without it, too
    const python = this.#python;
    if (code !== undefined) python.release(python.callHelper("bind_exit", [python.integer(code)]));
  }

  /** Runs when Python signals the eventfd. The lock is not held. */
  #rung(): void {
    try {
      this.#python.locked(() => this.#takeAll());
    } finally {
      this.#watch.start(); // whatever has failed: the next calls would never be answered
    }
  }

  // law python/JavaScriptSide.takeAll: python/signals
  /** Takes what Python has for JavaScript, by functions written in C: no signal's handler raises within them. */
  #takeAll(): void {
    const python = this.#python;
    const helpers = ["requests", "take_request", "finished", "take_finished"] as const;
    const [requests = 0n, request = 0n, finished = 0n, end = 0n] = helpers.map((name) => python.helper(name));
    libc().files.eventfd_read(this.#bell, this.#count);
    this.numbers[3] = 0;
    const { PyObject_Size } = python.api.objects;
    for (let left = PyObject_Size(requests); left > 0n; left--) {
      const taken = new Handle(python, python.call(request, []));
      queueMicrotask(() => void this.#answer(taken));
    }
    for (let left = PyObject_Size(finished); left > 0n; left--) this.#finish(python.call(end, []));
    python.poll();
    python.release(python.callHelper("run_handlers", [])); // now: the next call would fail with what they raise
  }

  /** @param end of a call: a tuple of its number, whether it returned, and the value returned or raised; adopted */
  #finish(end: bigint): void {
    const python = this.#python;
    const { PyTuple_GetItem } = python.api.tuples;
    const waiting = this.#waiting.get(Number(python.readInteger(PyTuple_GetItem(end, 0n))));
    const hasReturned = PyTuple_GetItem(end, 1n) === python.singletons.true;
    const value = python.retain(PyTuple_GetItem(end, 2n));
    python.release(end);
    if (waiting === undefined) return python.release(value); // cancelled
    try {
      if (hasReturned) return waiting.resolve(fromPython(python, value, waiting.options));
      const error = errorOf(python, value, waiting.calledAt);
      waiting.reject(error);
      if (error instanceof PythonError) exceptionBehind(error).dropTraces?.(); // now that its call is gone
    } catch (error) {
      waiting.reject(error);
    }
  }

  // law python/JavaScriptSide.answer: python/functions, python/signals
  /** Calls a function on behalf of another thread, and awaits its promise if it returns one. Without the lock. */
  async #answer(request: Handle): Promise<void> {
    const python = this.#python;
    let outcome: number = outcomes.raised;
    let make: (() => bigint) | null = null;
    try {
      const call = python.locked(() => this.#claimed(request));
      if (call !== null) {
        const [fn, given] = call;
        const made = fn(...given);
        const result = handleIn(made) === undefined ? await made : made; // not what Python can await
        outcome = outcomes.returned;
        make = () => this.#made(result);
      }
    } catch (error) {
      make = () => this.exceptionFor(error);
    }
    if (make === null) request.close(); // not above: a request whose close fails is closed, and not to be answered
    else this.#tell(request, outcome, make);
  }

  /** What to call for a request, and with what; null if its thread has given it up. */
  #claimed({ object }: Handle): readonly [ExportedFunction, unknown[]] | null {
    const python = this.#python;
    const { true: yes, false: no } = python.singletons;
    const isOurs = method(python, object, "claim", python.retain(no));
    python.release(isOurs);
    if (isOurs !== yes) return null;
    const [args = 0n, keywords = 0n] = ["arguments", "keywords"].map((name) => python.attribute(object, name));
    try {
      return [this.#function(this.#keyOf(object)), this.#arguments(args, keywords)];
    } finally {
      python.release(args);
      python.release(keywords);
    }
  }

  // law python/JavaScriptSide.tell: python/signals, python/functions
  /**
   * Answers a request, by functions written in C, and closes it. What a signal's handler has raised before that is the
   * answer.
   */
  #tell(request: Handle, outcome: number, make: () => bigint): void {
    const python = this.#python;
    try {
      python.enter();
    } catch (error) { // of what was left to be done under the lock: that is less, next time
      return this.#tell(request, outcomes.raised, () => this.exceptionFor(error));
    }
    const { object } = request;
    try {
      let value: bigint;
      try {
        value = make();
      } catch (error) {
        [outcome, value] = [outcomes.raised, this.#exceptionOrRaised(error)];
      }
      for (const one of [value, python.smallInteger(outcome)]) python.release(method(python, object, "put", one));
      python.release(method(python, object, "tell"));
      const wake = python.attribute(object, "when_answered");
      if (wake !== python.singletons.none) python.release(python.call(wake, []));
      python.release(wake);
    } finally {
      python.leave();
      request.close();
    }
  }
}

/** Calls a method. @param given adopted */
function method(python: Interpreter, object: bigint, name: string, ...given: bigint[]): bigint {
  const bound = python.attribute(object, name);
  try {
    return python.call(bound, given);
  } finally {
    python.release(bound);
  }
}

/** How many parameters a function has, for `inspect.signature()`. Its length can be set to anything; 0 says nothing. */
function parametersOf({ length }: ExportedFunction): number {
  return Number.isInteger(length) && length > 0 && length < 256 ? length : 0;
}

/** Whether a function is declared async, also if it was bound or comes from another realm. */
function isAsync(fn: ExportedFunction): boolean {
  return Reflect.get(fn, Symbol.toStringTag) === "AsyncFunction";
}

/**
 * The result of a function that Python called while JavaScript is inside a call of Python.
 *
 * @throws {TypeError} for a promise, which cannot settle meanwhile
 */
function atOnce(result: unknown): unknown {
  if (!(result instanceof Promise)) return result;
  result.catch(() => {}); // the error below is reported instead
  throw new TypeError(
    "Cannot wait for a promise while JavaScript waits for Python: expected a function that is not async. Call " +
      "Python with py.async, which can wait for promises",
  );
}

/** A thrown value as text. */
function described(error: unknown): string {
  try {
    return String(error);
  } catch {
    return "something that cannot be shown";
  }
}
