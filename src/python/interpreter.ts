/**
 * CPython's C API for the rest of the room: the lock, references, calls, exceptions, and value conversion.
 *
 * @module
 */
import { type cpython, Py_input, Py_TPFLAGS } from "../../bindings/cpython.ts";
import { cString, type Functions, libc, NativeArena, type NativeLibrary, type Out, readCString } from "../ffi/mod.ts";
import { releaseThunks } from "../native/mod.ts";
import { exceptionBehind, PythonError } from "./error.ts";
import { pendingError } from "./exception.ts";
import { FloatLists } from "./float_lists.ts";
import { guestSource } from "./guest_source.ts";
import { ItemReader } from "./item_reader.ts";
import { JavaScriptSide } from "./javascript_side.ts";
import { Kind, Kinds } from "./kinds.ts";
import { type PyObject, wrap } from "./object.ts";
import { Status } from "./call_programs.ts";
import { NativeCalls, type NativeProgram, type NativePrograms, nativePrograms } from "./native_calls.ts";
import { ObjectHeads } from "./object_heads.ts";
import { ReleaseMemory } from "./release_memory.ts";
import { Raised } from "./retained_exception.ts";
import { Sequences } from "./sequences.ts";
import { Texts } from "./texts.ts";

/** Not imported: see `ffi/endian.ts`. */
const littleEndian = true;

/** Functions and types from the files in `guest`, and built-in ones. */
type Helper =
  | "brief_exception"
  | "brief_and_drop_traces"
  | "drop_traces_if_lone"
  | "learn_lone_count"
  | "format_traceback"
  | "format_frames"
  | "bind"
  | "bind_cuda"
  | "bind_memory"
  | "take_orders"
  | "poll_exports"
  | "counter_slab_bytes"
  | "counter_numbers"
  | "counter_addresses"
  | "Array"
  | "export_array"
  | "export_tensor"
  | "spec_of"
  | "Arrow"
  | "Vortex"
  | "HostStream"
  | "DeviceStream"
  | "request_capsule"
  | "newest_version"
  | "by_version"
  | "is_plain"
  | "check_elements"
  | "split_interface"
  | "memoryview"
  | "tensor_from_object"
  | "object_from_tensor"
  | "offer_exchange_api"
  | "call_method"
  | "set_item"
  | "delete_item"
  | "integer_of"
  | "pairs_of"
  | "slice"
  | "list"
  | "set"
  | "tuple"
  | "bytes"
  | "float"
  | "int"
  | "is_datetime_type"
  | "is_set_type"
  | "is_keyed"
  | "datetime_of"
  | "milliseconds_of"
  | "JavaScriptError"
  | "AttributeError"
  | "JavaScriptFunction"
  | "bind_entrance"
  | "bind_exit"
  | "bind_javascript"
  | "end_given_up"
  | "javascript_numbers"
  | "function_of"
  | "error_of"
  | "take_dead"
  | "requests"
  | "take_request"
  | "finished"
  | "take_finished"
  | "run_handlers"
  | "begin_call"
  | "next_of"
  | "wait_for"
  | "step_of"
  | "run_with"
  | "exit_of"
  | "call_special"
  | "generator_type"
  | "close_iterator"
  | "lists_of_doubles"
  | "range"
  | "hex"
  | "builtins"
  | "sys"
  | "function_cell"
  | "arguments_cell"
  | "keywords_cell"
  | "call_framed"
  | "call_framed_with_one"
  | "call_framed_by_name";

/** When the program's modules began to be loaded, in microseconds: it tells them from others on the same thread. */
const modulesBegan = Math.round(performance.timeOrigin * 1000);

/** How many arguments can be passed to a function without a tuple. */
const maxArguments = 64;

/** The argument count that a call is passed, with the flag that the word before the arguments may be overwritten. */
const countsOf = Array.from({ length: maxArguments + 1 }, (_, i) => BigInt(i) | 1n << 63n);

/** How much of an object's text an error message shows, and a console. */
const longestShown = 100;
const longestDisplay = 10_000;

/** Whether a version, as Py_GetVersion() gives it, is of a build that can do without the interpreter's lock. */
export function isFreeThreaded(version: string): boolean {
  return version.includes("free-threading build");
}

/** Cells for a call, and the functions that make it from their own frame. */
type Frames = Readonly<Record<"function" | "arguments" | "keywords" | "byPosition" | "byOne" | "byName", bigint>>;

/** Memory for the arguments of a call. */
interface ArgumentArea {
  readonly words: DataView<ArrayBuffer>;
  readonly at: bigint;
  /** The same for calls by machine code; undefined before the first such call. */
  native: NativeCalls | undefined;
}

/**
 * The interpreter of this process, and what every call of it needs. An object is represented by its address. Code that
 * receives one owns a reference, unless it is documented as borrowed.
 */
export class Interpreter {
  readonly api: Functions<typeof cpython>;
  /** Path of libpython. */
  readonly path: string;
  /** `dlopen`'s handle of it. */
  readonly #library: bigint;
  /** `3.12.3`. */
  readonly version: string;
  /** Whether it is free-threaded: an object that another thread releases stays until its own runs Python code. */
  readonly #releasesLate: boolean;
  /** None, True and False, which live as long as the process. */
  readonly singletons: { readonly none: bigint; readonly true: bigint; readonly false: bigint };
  /** Whether anything was exported to Python. */
  hasExports = false;
  /** Counts entries into Python, and callbacks from it: values read in an earlier turn may have changed since. */
  turn = 0;
  /** Ends the turn, where JavaScript may have waited. */
  readonly endTurn: () => void = () => {
    this.turn++;
  };
  /** Called before the lock is released. */
  beforeUnlock: (() => void) | null = null;
  readonly #arena = new NativeArena();
  readonly #int: Out<"i32"> = this.#arena.out("i32");
  readonly #helpers = new Map<Helper, bigint>();
  readonly #helperTypes = new Map<Helper, number>();
  /** Its strings. */
  readonly texts: Texts = new Texts(this);
  readonly #heads: ObjectHeads;
  readonly #kinds: Kinds;
  #releases: ReleaseMemory | null = null;
  #sequences: Sequences | null = null;
  /** Undefined before the first use. */
  #itemReader: ItemReader | null | undefined;
  #floatLists: FloatLists | null = null;
  /** The arguments of a call. The word before them is the callee's. */
  #area: ArgumentArea;
  /** Memory for the arguments of nested calls, outermost first. */
  readonly #argumentAreas: ArgumentArea[] = [];
  /** Nesting depth of JavaScript functions called by Python. */
  #callbacks = 0;
  /** The exceptions behind errors, while Python is inside a JavaScript function. */
  raised: Raised | null = null;
  #javascript: JavaScriptSide | null = null;
  /** The first number is odd while JavaScript is inside a call of Python; null until Python can call JavaScript. */
  #inside: Int32Array<ArrayBuffer> | null = null;
  #frames: Frames | null = null;
  /** Calls by machine code; null if unavailable. */
  #programs: NativePrograms | null | undefined;
  readonly #namespace: bigint;
  readonly #float: bigint;
  /** References to release when the lock is next held. */
  #toRelease: bigint[] = [];
  #depth = 0;
  #state = 0;

  /** Uses an interpreter that is already running. */
  constructor({ path, handle, functions }: NativeLibrary<typeof cpython>) {
    this.api = functions;
    this.path = path;
    this.#library = handle;
    const version = readCString(functions.opening.Py_GetVersion());
    this.version = version.split(" ")[0] ?? "";
    this.#releasesLate = isFreeThreaded(version);
    this.#area = this.#argumentArea();
    const state = this.api.threads.PyGILState_Ensure();
    try {
      const { dicts, numbers, run } = this.api;
      this.#namespace = dicts.PyDict_New();
      const builtins = run.PyImport_ImportModule(cString("builtins"));
      dicts.PyDict_SetItemString(this.#namespace, cString("__builtins__"), builtins);
      const none = this.evaluate("None", this.#namespace);
      this.#float = this.evaluate("float", this.#namespace);
      this.singletons = { none, true: numbers.PyBool_FromLong(1n), false: numbers.PyBool_FromLong(0n) };
      const type = (expression: string) => this.evaluate(expression, this.#namespace);
      const [nothing, truth, float] = ["type(None)", "bool", "float"].map(type);
      this.#heads = new ObjectHeads([
        [none, nothing ?? 0n],
        [this.singletons.true, truth ?? 0n],
        [type("1.5"), float ?? 0n],
      ]);
      this.release(this.executeGuest(guestSource));
      this.release(this.callHelper("end_given_up", [this.smallInteger(modulesBegan)]));
      this.#kinds = new Kinds(this, type);
      this.#learnLoneCount(type("Exception()"));
      const { DLManagedTensorVersioned, DLManagedTensor, ArrowSchema, ArrowArray } = releaseThunks().address;
      const code = [handle, DLManagedTensorVersioned, DLManagedTensor, ArrowSchema, ArrowArray];
      this.release(this.callHelper("bind", code.map((address) => this.integer(address))));
    } finally {
      this.api.threads.PyGILState_Release(state);
    }
  }

  /** Adopts the reference, which is the only one. */
  #learnLoneCount(exception: bigint): void {
    this.release(this.callWithOne(this.helper("learn_lone_count"), exception));
    this.release(exception);
  }

  /** Runs work that calls Python while this thread holds the interpreter's lock. */
  locked<T>(work: () => T): T {
    this.enter();
    try {
      return work();
    } finally {
      this.leave();
    }
  }

  // law python/Interpreter.enter: python/values, python/export_array
  /** Takes the interpreter's lock, unless this thread holds it. Each call must be matched by one of `leave`. */
  enter(): void {
    this.turn++;
    if (this.#depth > 0) {
      this.#depth++;
      return;
    }
    this.#state = this.api.threads.PyGILState_Ensure(); // first: a stack without room for the call throws
    this.#depth = 1;
    if (this.#inside !== null) this.#inside[0] = (this.#inside[0] ?? 0) + 1;
    if (this.#toRelease.length === 0) return;
    try {
      const due = this.#toRelease;
      this.#toRelease = [];
      for (const object of due) this.release(object);
      this.poll();
    } catch (error) {
      this.leave();
      throw error;
    }
  }

  // law python/Interpreter.leave: python/values, python/export_array, python/functions
  /** Releases the lock when the outermost `enter` on this thread is left. */
  leave(): void {
    if (this.#depth > 1) {
      this.#depth--;
      return;
    }
    try {
      if (this.beforeUnlock !== null) {
        this.#forgetError();
        this.beforeUnlock();
      }
    } finally {
      this.#forgetError();
      this.api.threads.PyGILState_Release(this.#state);
      this.#depth = 0; // not before: without room for the call the lock is still held
      if (this.#inside !== null) this.#inside[0] = (this.#inside[0] ?? 0) + 1;
    }
  }

  /** Forgets an error that a RangeError of JavaScript's stack has kept a call from taking: the next would fail. */
  #forgetError(): void {
    const { errors } = this.api;
    if (errors.PyErr_Occurred() !== 0n) errors.PyErr_Clear();
  }

  // law python/Interpreter.calledBack: python/functions
  /**
   * Runs a JavaScript function that Python has called, on this thread, which holds the lock. The enclosing call of
   * Python still uses its arguments, so calls made by the function use separate memory for theirs.
   */
  calledBack<T>(work: () => T): T {
    const [area, raised] = [this.#area, this.raised];
    const own = new Raised();
    area.native?.keepLock(); // for work that is left to do before it is released
    this.#area = this.#argumentAreas[this.#callbacks++] ??= this.#argumentArea();
    this.raised = own;
    this.turn++;
    this.#depth++; // the lock is held and stays held
    try {
      return work();
    } finally {
      this.raised = raised;
      try {
        own.close();
      } finally {
        this.#depth--;
        this.#callbacks--;
        this.#area = area;
      }
    }
  }

  /** Whether Python is inside a JavaScript function. */
  get isCalledBack(): boolean {
    return this.#callbacks > 0;
  }

  #argumentArea(): ArgumentArea {
    const { address, bytes } = this.#arena.bytes(8 * (maxArguments + 1));
    const words = new DataView(bytes.buffer, bytes.byteOffset + 8, 8 * maxArguments);
    return { words, at: address + 8n, native: undefined };
  }

  // law python/Interpreter.nativeCalls: python/refused_memory
  /** Where calls by machine code are prepared; null if unavailable, or if other work is due under the lock. */
  get nativeCalls(): NativeCalls | null {
    if (this.#toRelease.length > 0 || (this.beforeUnlock !== null && this.#depth === 0)) return null;
    const area = this.#area;
    if (area.native !== undefined) return area.native;
    if (this.#programs === undefined) this.#programs = this.locked(() => nativePrograms(this, this.typeAt)); // or null
    return this.#programs === null ? null : area.native = new NativeCalls(this, this.#programs);
  }

  // law python/Interpreter.runNatively: python/native_calls, python/sequences
  /** Runs a program. @returns its outcome; from `Status.object` on the caller must call `leave` */
  runNatively(native: NativeCalls, { locking, locked }: NativeProgram): Status {
    this.turn++;
    if (this.#depth > 0) {
      const status = native.run(locked);
      if (status >= Status.object) this.#depth++;
      return status;
    }
    const status = this.#runLocking(native, locking);
    if (status >= Status.object) {
      this.#state = native.state;
    } else if (native.hasKeptLock) {
      this.#state = native.state;
      this.leave();
    } else {
      this.#depth = 0;
      if (this.#inside !== null) this.#inside[0] = (this.#inside[0] ?? 0) + 1;
    }
    return status;
  }

  /**
   * Runs a program that takes the lock, which counts as held from here on. Without room on the stack for it, or for
   * this function, nothing has happened: the lock would count as held, and calls that are made without it crash.
   */
  #runLocking(native: NativeCalls, locking: NativeProgram["locking"]): Status {
    this.#depth = 1;
    if (this.#inside !== null) this.#inside[0] = (this.#inside[0] ?? 0) + 1;
    try {
      return native.run(locking);
    } catch (error) {
      this.#depth = 0;
      if (this.#inside !== null) this.#inside[0] = (this.#inside[0] ?? 0) + 1;
      throw error;
    }
  }

  /** Makes a `PyObject`, which adopts the reference. */
  wrap(object: bigint): PyObject {
    return wrap(this, object, {});
  }

  /** JavaScript functions that Python holds, and calls that do not block. The first use needs the lock. */
  get javascript(): JavaScriptSide {
    if (this.#javascript !== null) return this.#javascript;
    const made = this.#javascript = new JavaScriptSide(this);
    this.#inside = made.numbers;
    this.#inside[0] = 1; // the lock is held
    return made;
  }

  /** Releases a reference now. Needs the lock. */
  release(object: bigint): void {
    this.api.objects.Py_DecRef(object);
  }

  /** Releases references, then polls exports: the released objects may have held unused capsules. */
  releaseAndPoll(...objects: readonly bigint[]): void {
    for (const object of objects) this.release(object);
    this.poll();
  }

  // law python/Interpreter.poll: python/values, python/export_array
  /** Reclaims what Python's consumers have released. */
  poll(): void {
    if (!this.hasExports) return;
    this.#javascript?.poll();
    this.#releases ??= new ReleaseMemory(this);
    const hasChanged = this.#releases.hasChanged() || this.#releasesLate;
    if (hasChanged) this.release(this.callHelper("poll_exports", []));
  }

  // law python/Interpreter.pollWithoutLock: python/host_exports, python/functions
  /** As {@linkcode Interpreter.poll}, without the lock: takes it only if there may be something to reclaim. */
  pollWithoutLock(): void {
    if (!this.hasExports) return;
    const isQuiet = this.#javascript?.hasDead !== true && this.#releases?.mayHaveChanged() === false;
    if (!isQuiet) this.locked(() => this.poll());
  }

  /** Releases a reference when the lock is next held: for finalizers, which must not wait for it. */
  releaseLater(object: bigint): void {
    this.#toRelease.push(object);
  }

  /** Makes another reference to an object. */
  retain(object: bigint): bigint {
    this.api.objects.Py_IncRef(object);
    return object;
  }

  /**
   * The result of a call that returns NULL on failure.
   *
   * @throws {PythonError} if it failed
   */
  check(result: bigint): bigint {
    if (result === 0n) throw pendingError(this);
    return result;
  }

  /**
   * The result of a call that returns -1 on failure.
   *
   * @throws {PythonError} if it failed
   */
  checkInt(result: number): number {
    if (result === -1) throw pendingError(this);
    return result;
  }

  /** Runs statements in the helpers' namespace; the result is None. Their file name distinguishes their frames. */
  executeGuest(code: string): bigint {
    const run = this.evaluate("lambda code: exec(compile(code, '<causeway>', 'exec'), globals())", this.#namespace);
    try {
      return this.call(run, [this.text(code)]);
    } finally {
      this.release(run);
    }
  }

  /** The address of a C function, or 0n if this version of Python does not have it. */
  functionAt(name: string): bigint {
    return libc().loading.dlsym(this.#library, cString(name));
  }

  /** Runs statements; the result is None. */
  execute(code: string, namespace: bigint): bigint {
    return this.#run(code, Py_input.Py_file_input, namespace);
  }

  /** The value of an expression. */
  evaluate(code: string, namespace: bigint): bigint {
    return this.#run(code, Py_input.Py_eval_input, namespace);
  }

  /** Calls a helper; adopts the references to the arguments. */
  callHelper(name: Helper, args: readonly bigint[]): bigint {
    return this.call(this.helper(name), args);
  }

  /** A helper; borrowed. */
  helper(name: Helper): bigint {
    return this.#helpers.get(name) ?? this.#findHelper(name);
  }

  #findHelper(name: Helper): bigint {
    const helper = this.evaluate(name, this.#namespace); // kept forever
    this.#helpers.set(name, helper);
    return helper;
  }

  /**
   * Calls an object; adopts the references to the arguments, not the one to the object.
   *
   * @throws {PythonError} if it raises an exception
   */
  call(callable: bigint, args: readonly bigint[], keywords = 0n): bigint {
    return this.check(this.tryCall(callable, args, keywords));
  }

  // law python/Interpreter.call: python/object, python/frame, python/leaks
  /** As {@linkcode Interpreter.call}. @returns 0n if it raised an exception, which is then pending */
  tryCall(callable: bigint, args: readonly bigint[], keywords = 0n): bigint {
    if (args.length > maxArguments) return this.#callByTuple(callable, args, keywords);
    const { words, at } = this.#area;
    for (let i = 0; i < args.length; i++) words.setBigUint64(8 * i, args[i] ?? 0n, littleEndian);
    const count = countsOf[args.length] ?? 0n;
    const result = this.api.calls.PyObject_VectorcallDict(callable, at, count, keywords);
    this.#releaseAll(args, keywords);
    return result;
  }

  /**
   * Calls a method with one keyword argument, without creating a bound method or a dict.
   *
   * @param argument borrowed
   * @param names a tuple with the argument's name; borrowed
   * @returns 0n if it raised an exception, which is then pending
   */
  callMethod(object: bigint, method: string, argument: bigint, names: bigint): bigint {
    const { words, at } = this.#area;
    words.setBigUint64(0, object, littleEndian);
    words.setBigUint64(8, argument, littleEndian);
    const { PyObject_VectorcallMethod } = this.api.calls;
    return PyObject_VectorcallMethod(this.name(method), at, countsOf[1] ?? 0n, names);
  }

  /** Calls an object with one argument, which is borrowed. @returns 0n if it raised an exception, which is pending */
  callWithOne(callable: bigint, argument: bigint): bigint {
    const { words, at } = this.#area;
    words.setBigUint64(0, argument, littleEndian);
    return this.api.calls.PyObject_VectorcallDict(callable, at, countsOf[1] ?? 0n, 0n);
  }

  // law python/Interpreter.callByTuple: python/leaks
  #callByTuple(callable: bigint, args: readonly bigint[], keywords: bigint): bigint {
    const tuple = this.tuple(args);
    const result = this.api.calls.PyObject_Call(callable, tuple, keywords);
    this.#releaseAll([tuple], keywords);
    return result;
  }

  /** Releases the arguments, including keyword arguments if any. Exceptions raised by that are not the call's. */
  #releaseAll(args: readonly bigint[], keywords: bigint): void {
    const { Py_DecRef } = this.api.objects;
    for (let i = 0; i < args.length; i++) Py_DecRef(args[i] ?? 0n);
    if (keywords !== 0n) Py_DecRef(keywords);
  }

  /** What a call from a frame needs; borrowed from the helpers. The first use needs the lock. */
  get frames(): Frames {
    return this.#frames ??= {
      function: this.helper("function_cell"),
      arguments: this.helper("arguments_cell"),
      keywords: this.helper("keywords_cell"),
      byPosition: this.helper("call_framed"),
      byOne: this.helper("call_framed_with_one"),
      byName: this.helper("call_framed_by_name"),
    };
  }

  // law python/Interpreter.callFramed: python/object, python/frame, python/leaks
  /**
   * As {@linkcode Interpreter.tryCall}, from a frame of the module `__main__`, for functions that inspect their
   * caller's frame. The frame costs 100 ns, half of the shortest call.
   *
   * @param keywords a dict, or 0n
   * @returns 0n if it raised an exception, which is then pending
   */
  tryCallFramed(callable: bigint, args: readonly bigint[], keywords: bigint): bigint {
    const { PyCell_Set } = this.api.cells;
    const frames = this.frames;
    const isOne = args.length === 1 && keywords === 0n;
    const given = isOne ? args[0] ?? 0n : this.tuple(args);
    const isNamed = keywords !== 0n;
    if (isNamed) PyCell_Set(frames.keywords, keywords);
    PyCell_Set(frames.arguments, given);
    PyCell_Set(frames.function, callable);
    this.release(given); // the cells hold references now
    if (isNamed) this.release(keywords);
    const result = this.api.calls.PyObject_CallNoArgs(
      isNamed ? frames.byName : isOne ? frames.byOne : frames.byPosition,
    );
    PyCell_Set(frames.function, 0n);
    PyCell_Set(frames.arguments, 0n);
    if (isNamed) PyCell_Set(frames.keywords, 0n);
    return result;
  }

  /** A tuple; adopts the references to its items. */
  tuple(items: readonly bigint[]): bigint {
    const { PyTuple_New, PyTuple_SetItem } = this.api.tuples;
    const tuple = PyTuple_New(BigInt(items.length));
    if (tuple === 0n) {
      for (const item of items) this.release(item);
      this.check(tuple);
    }
    for (let i = 0; i < items.length; i++) PyTuple_SetItem(tuple, BigInt(i), items[i] ?? 0n);
    return tuple;
  }

  /** A tuple of integers that numbers represent exactly. */
  numbers(values: readonly number[]): bigint {
    return this.tuple(values.map((value) => this.smallInteger(value)));
  }

  /** An integer that a number represents exactly. */
  smallInteger(value: number): bigint {
    return this.check(this.api.numbers.PyLong_FromDouble(value));
  }

  /** An integer of any size. */
  integer(value: bigint): bigint {
    const { PyLong_FromLongLong, PyLong_FromUnsignedLongLong } = this.api.numbers;
    if (BigInt.asIntN(64, value) === value) return this.check(PyLong_FromLongLong(value));
    if (BigInt.asUintN(64, value) === value) return this.check(PyLong_FromUnsignedLongLong(value));
    const sign = value < 0n ? "-" : "";
    return this.callHelper("integer_of", [this.text(`${sign}0x${(value < 0n ? -value : value).toString(16)}`)]);
  }

  /** A string. A lone surrogate, which JavaScript strings may contain, stays one in Python. */
  text(value: string): bigint {
    return this.texts.make(value);
  }

  /** An attribute name as a string; borrowed until the next call. */
  name(value: string): bigint {
    return this.texts.name(value);
  }

  /** A dict key as a string; borrowed until the next call. */
  key(value: string): bigint {
    return this.texts.key(value);
  }

  // law python/Interpreter.readInteger: python/object, python/frame, python/leaks
  /** The value of an int: a number if exact, else a bigint. */
  readInteger(object: bigint): number | bigint {
    // Most are exact as a double, which avoids a bigint. -1 may be an error, and larger ints are rounded.
    const double = this.api.numbers.PyLong_AsDouble(object);
    if (double !== -1 && Number.isSafeInteger(double)) return double;
    if (double === -1) this.api.errors.PyErr_Clear();
    const value = this.api.numbers.PyLong_AsLongLongAndOverflow(object, this.#int.$address);
    if (this.#int.value === 0) {
      const number = Number(value);
      return Number.isSafeInteger(number) ? number : value;
    }
    const digits = this.callHelper("hex", [this.retain(object)]);
    try {
      const text = this.readText(digits);
      return text.startsWith("-") ? -BigInt(text.slice(1)) : BigInt(text);
    } catch { // without its cause, whose message may have all the digits
      throw new RangeError(
        "Cannot convert an int of Python: this runtime has no bigint of so many digits. $call() and $get() return it " +
          "as an object",
      );
    } finally {
      this.release(digits);
    }
  }

  /** The value of a str. Python writes a file name that is not UTF-8 with lone surrogates. */
  readText(object: bigint): string {
    return this.texts.read(object);
  }

  /** Whether instances of a type are datetimes of the module datetime. */
  isDatetimeType(type: bigint): boolean {
    return this.#isTrue(this.callHelper("is_datetime_type", [this.retain(type)]));
  }

  /** Whether instances of a type are sets. */
  isSetType(type: bigint): boolean {
    return this.#isTrue(this.callHelper("is_set_type", [this.retain(type)]));
  }

  // law python/isKeyed: python/conversions
  /** Whether an object is a mapping with no attributes beyond those of its class. */
  isKeyed(object: bigint): boolean {
    const kind = this.kindOf(object);
    if (kind === Kind.dict) return true;
    if (kind === Kind.list || kind === Kind.tuple) return false;
    if (kind !== Kind.derivedDict && !(this.typeFlags(object) & Py_TPFLAGS.MAPPING)) return false;
    return this.#isTrue(this.callHelper("is_keyed", [this.retain(BigInt(this.typeOf(object)))]));
  }

  /** The value of an object that is True or False; adopts the reference. */
  #isTrue(object: bigint): boolean {
    this.release(object);
    return object === this.singletons.true;
  }

  /**
   * A new reference to the value of an attribute.
   *
   * @throws {PythonError} if there is none
   */
  attribute(object: bigint, name: string): bigint {
    return this.check(this.api.objects.PyObject_GetAttr(object, this.name(name)));
  }

  /** The value of an attribute that is a str. */
  textOf(object: bigint, name: string): string {
    const text = this.attribute(object, name);
    try {
      return this.readText(text);
    } finally {
      this.release(text);
    }
  }

  /** Locates the items of lists and tuples. */
  get sequences(): Sequences {
    return this.#sequences ??= new Sequences(this);
  }

  /** Reads many items at once; null where machine code is unavailable. The first use needs the lock. */
  get itemReader(): ItemReader | null {
    return this.#itemReader === undefined ? this.#itemReader = ItemReader.make(this) : this.#itemReader;
  }

  /** Makes lists of floats. */
  get floatLists(): FloatLists {
    return this.#floatLists ??= new FloatLists(this);
  }

  /** Offset of the type in an object, in bytes. */
  get typeAt(): number {
    return this.#heads.typeAt;
  }

  /** The address of an object's type. */
  typeOf(object: bigint): number {
    return this.#heads.typeOf(object);
  }

  /** What an object is to JavaScript, as far as its type determines it. */
  kindOf(object: bigint): Kind {
    return this.#kinds.of(this.#heads.typeOf(object));
  }

  /** Whether a type seen on an object is retained forever, so that its address is never reused. */
  retainsType(type: number): boolean {
    return this.#kinds.retains(type);
  }

  /** Whether a type is that of a NumPy scalar, which has the array interface but is not an array. */
  isScalarType(type: bigint): boolean {
    return this.hasMember(type, "__array_interface__") && this.hasMember(type, "item") &&
      !this.hasMember(type, "__dlpack__");
  }

  /** Whether a type is an array type: it implements one of the array protocols. */
  isArrayType(type: bigint): boolean {
    return this.hasMember(type, "__dlpack__") || this.hasMember(type, "__cuda_array_interface__") ||
      this.hasMember(type, "__array_interface__");
  }

  /** Whether a type has an attribute, as a method of its instances. */
  hasMember(type: bigint, name: string): boolean {
    const { _PyType_Lookup, PyObject_HasAttr } = this.api.objects;
    // Avoids the exception that a miss would otherwise cost.
    return _PyType_Lookup === null
      ? PyObject_HasAttr(type, this.name(name)) === 1
      : _PyType_Lookup(type, this.name(name)) !== 0n;
  }

  /** Whether the type of an object has an attribute, as a method of its instances. */
  typeHas(object: bigint, name: string): boolean {
    return this.hasMember(BigInt(this.#heads.typeOf(object)), name);
  }

  // law python/Interpreter.hasProtocol: python/arrow_capsules
  /** Whether an object has a protocol's method: its type defines it, and the object itself does not hide it. */
  hasProtocol(object: bigint, name: string): boolean {
    return this.typeHas(object, name) && this.api.objects.PyObject_HasAttrString(object, cString(name)) === 1;
  }

  /** The type flags of an object, which distinguish the built-in types. */
  typeFlags(object: bigint): bigint {
    return this.api.objects.PyType_GetFlags(BigInt(this.#heads.typeOf(object)));
  }

  /**
   * The value of a float.
   *
   * @throws {PythonError} if the object only pretends to be one
   */
  readFloat(object: bigint): number {
    const value = this.api.numbers.PyFloat_AsDouble(object);
    if (value === -1 && this.api.errors.PyErr_Occurred() !== 0n) this.check(0n);
    return value;
  }

  /** Whether an object is a float. */
  isFloat(object: bigint): boolean {
    return this.checkInt(this.api.objects.PyObject_IsInstance(object, this.#float)) === 1;
  }

  /**
   * What `str()` returns for an object.
   *
   * @throws {PythonError} if it raises an exception
   */
  str(object: bigint): string {
    const text = this.check(this.api.objects.PyObject_Str(object));
    try {
      return this.readText(text);
    } finally {
      this.release(text);
    }
  }

  // law python/Interpreter.display: python/object, python/frame, python/leaks
  /** An object as a console shows it: its `str()`, which may be long, or why that fails. */
  display(object: bigint): string {
    try {
      const text = this.str(object);
      const more = text.length - longestDisplay;
      return more <= 0 ? text : `${text.slice(0, longestDisplay)}... ${more} more characters`;
    } catch (error) {
      if (!(error instanceof PythonError)) throw error;
      exceptionBehind(error).release?.();
      return `<an object whose str() fails: ${error.message}>`;
    }
  }

  /** An object as an error message shows it: as {@linkcode display}, or the beginning, and its type. */
  show(object: bigint): string {
    const text = this.display(object);
    const [line = ""] = text.split("\n", 1);
    if (line.length <= longestShown && line.length === text.length) return text;
    // By its str(), <class 'module.Name'>: a metaclass may raise from __name__, and this must not.
    const [, name = "a class"] = /(\w+)'>$/.exec(this.display(BigInt(this.typeOf(object)))) ?? [];
    return `an instance of ${name} (${line.slice(0, longestShown).trimEnd()}...)`;
  }

  /** Whether an object is an instance of a type, and not of a subtype. */
  isExactly(object: bigint, type: Helper): boolean {
    return this.#heads.typeOf(object) === this.#helperTypes.getOrInsertComputed(type, () => Number(this.helper(type)));
  }

  #run(code: string, start: number, namespace: bigint): bigint {
    return this.check(this.api.run.PyRun_StringFlags(cString(code), start, namespace, namespace, 0n));
  }
}
