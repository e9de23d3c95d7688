/**
 * CPython's C API for the rest of the room: the lock, references, calls, exceptions, and values to and from Python.
 *
 * @module
 */
import { type cpython, Py_input } from "../../bindings/cpython.ts";
import {
  cString,
  ffiPort,
  type Functions,
  NativeArena,
  type NativeLibrary,
  type Out,
  readCString,
  readString,
} from "../ffi/mod.ts";
import { releaseThunks } from "../native/mod.ts";
import { PythonError } from "./error.ts";
import { guestSource } from "./guest_source.ts";

/** Functions and types of the files in `guest`, and built-in ones. */
type Helper =
  | "describe_exception"
  | "bind"
  | "bind_cuda"
  | "bind_memory"
  | "take_orders"
  | "poll_exports"
  | "Array"
  | "export_array"
  | "Arrow"
  | "Vortex"
  | "HostStream"
  | "DeviceStream"
  | "request_capsule"
  | "is_plain"
  | "check_elements"
  | "memoryview"
  | "tensor_from_object"
  | "object_from_tensor"
  | "offer_exchange_api"
  | "call_method"
  | "integer_of"
  | "pairs_of"
  | "slice"
  | "hex"
  | "builtins"
  | "sys"
  | "next_call"
  | "call_framed"
  | "call_framed_by_name"
  | "builtin_function"
  | "bound_method"
  | "module_type";

/** How many names of attributes are cached as strings of Python. */
const mostNames = 1024;

const encoder = new TextEncoder();
const utf16 = cString("utf-16-le");
const surrogatePass = cString("surrogatepass");

/**
 * The interpreter of this process, and what every call of it needs. An object is its address. Code that gets one owns a
 * reference, unless it is said to be borrowed.
 */
export class Interpreter {
  readonly api: Functions<typeof cpython>;
  /** Path of libpython. */
  readonly path: string;
  /** `dlopen`'s handle of it. */
  readonly library: bigint;
  /** `3.12.3`. */
  readonly version: string;
  /** None, True and False, which live as long as the process. */
  readonly singletons: { readonly none: bigint; readonly true: bigint; readonly false: bigint };
  /** Whether anything was exported to Python. */
  hasExports = false;
  /** Called before the lock is released. */
  beforeUnlock: (() => void) | null = null;
  readonly #arena = new NativeArena();
  readonly #size: Out<"i64"> = this.#arena.out("i64");
  readonly #int: Out<"i32"> = this.#arena.out("i32");
  readonly #pointer: Out<"ptr"> = this.#arena.out("ptr");
  readonly #helpers = new Map<Helper, bigint>();
  readonly #names = new Map<string, bigint>();
  /** What {@linkcode Interpreter.callFramed} needs; borrowed from the helpers. */
  #frames: { readonly nextCall: bigint; readonly byPosition: bigint; readonly byName: bigint } | null = null;
  readonly #namespace: bigint;
  readonly #float: bigint;
  /** References to release when the lock is next held. */
  #toRelease: bigint[] = [];
  #depth = 0;

  /** Uses an interpreter that was started. */
  constructor({ path, handle, functions }: NativeLibrary<typeof cpython>) {
    this.api = functions;
    this.path = path;
    this.library = handle;
    this.version = readCString(functions.opening.Py_GetVersion()).split(" ")[0] ?? "";
    const state = this.api.threads.PyGILState_Ensure();
    try {
      const { dicts, numbers, run } = this.api;
      this.#namespace = dicts.PyDict_New();
      const builtins = run.PyImport_ImportModule(cString("builtins"));
      dicts.PyDict_SetItemString(this.#namespace, cString("__builtins__"), builtins);
      const none = this.evaluate("None", this.#namespace);
      this.#float = this.evaluate("float", this.#namespace);
      this.singletons = { none, true: numbers.PyBool_FromLong(1n), false: numbers.PyBool_FromLong(0n) };
      this.release(this.execute(guestSource, this.#namespace));
      const { DLManagedTensorVersioned, DLManagedTensor, ArrowSchema, ArrowArray } = releaseThunks().address;
      const code = [handle, DLManagedTensorVersioned, DLManagedTensor, ArrowSchema, ArrowArray];
      this.release(this.callHelper("bind", code.map((address) => this.integer(address))));
    } finally {
      this.api.threads.PyGILState_Release(state);
    }
  }

  // law python/Interpreter.locked: python/values, python/export_array
  /** Does work that calls Python while this thread holds the interpreter's lock. */
  locked<T>(work: () => T): T {
    if (this.#depth > 0) return work();
    const { PyGILState_Ensure, PyGILState_Release } = this.api.threads;
    const state = PyGILState_Ensure();
    this.#depth++;
    try {
      if (this.#toRelease.length > 0) this.releaseAndPoll(...this.#toRelease.splice(0));
      return work();
    } finally {
      try {
        this.beforeUnlock?.();
      } finally {
        this.#depth--;
        PyGILState_Release(state);
      }
    }
  }

  /** Releases a reference now. Needs the lock. */
  release(object: bigint): void {
    this.api.objects.Py_DecRef(object);
  }

  // law python/Interpreter.releaseAndPoll: python/values, python/export_array
  /** Releases references, then polls exports: what was released may have held capsules that were not used. */
  releaseAndPoll(...objects: readonly bigint[]): void {
    for (const object of objects) this.release(object);
    if (this.hasExports) this.release(this.callHelper("poll_exports", []));
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
   * The result of a call that returns NULL if it fails.
   *
   * @throws {PythonError} if it has failed
   */
  check(result: bigint): bigint {
    if (result === 0n) throw this.#error();
    return result;
  }

  /**
   * The result of a call that returns -1 if it fails.
   *
   * @throws {PythonError} if it has failed
   */
  checkInt(result: number): number {
    if (result === -1) throw this.#error();
    return result;
  }

  /** Runs statements in the namespace of the helpers; the result is None. */
  executeGuest(code: string): bigint {
    return this.execute(code, this.#namespace);
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
    return this.#helpers.getOrInsertComputed(name, () => this.evaluate(name, this.#namespace)); // kept for ever
  }

  // law python/Interpreter.call: python/object, python/frame, python/leaks
  /** Calls an object; adopts the references to the arguments, not the one to the object. */
  call(callable: bigint, args: readonly bigint[], keywords = 0n): bigint {
    const tuple = this.tuple(args);
    try {
      return this.check(this.api.calls.PyObject_Call(callable, tuple, keywords));
    } finally {
      this.release(tuple);
      if (keywords !== 0n) this.release(keywords);
    }
  }

  // law python/Interpreter.callFramed: python/object, python/frame, python/leaks
  /**
   * As {@linkcode Interpreter.call}, from a frame of the module `__main__`, for functions that inspect their caller's
   * frame. The frame costs 100 ns, half of the shortest call.
   *
   * @param keywords a dict, or 0n
   */
  callFramed(callable: bigint, args: readonly bigint[], keywords: bigint): bigint {
    const { PyList_Append } = this.api.lists;
    const { nextCall, byPosition, byName } = this.#frames ??= {
      nextCall: this.helper("next_call"),
      byPosition: this.helper("call_framed"),
      byName: this.helper("call_framed_by_name"),
    };
    const tuple = this.tuple(args);
    if (keywords !== 0n) PyList_Append(nextCall, keywords);
    PyList_Append(nextCall, tuple);
    PyList_Append(nextCall, callable);
    try {
      return this.check(this.api.calls.PyObject_CallNoArgs(keywords === 0n ? byPosition : byName));
    } finally {
      this.release(tuple);
      if (keywords !== 0n) this.release(keywords);
    }
  }

  /** A tuple; adopts the references to its items. */
  tuple(items: readonly bigint[]): bigint {
    const { PyTuple_New, PyTuple_SetItem } = this.api.tuples;
    const tuple = PyTuple_New(BigInt(items.length));
    items.forEach((item, i) => PyTuple_SetItem(tuple, BigInt(i), item));
    return tuple;
  }

  /** An integer of any size. */
  integer(value: bigint): bigint {
    if (BigInt.asIntN(64, value) === value) return this.api.numbers.PyLong_FromLongLong(value);
    if (BigInt.asUintN(64, value) === value) return this.api.numbers.PyLong_FromUnsignedLongLong(value);
    const sign = value < 0n ? "-" : "";
    return this.callHelper("integer_of", [this.text(`${sign}0x${(value < 0n ? -value : value).toString(16)}`)]);
  }

  // law python/Interpreter.text: python/object, python/frame, python/leaks
  /** A string. A lone surrogate, which JavaScript's strings may have, stays one in Python. */
  text(value: string): bigint {
    const { PyUnicode_FromStringAndSize, PyUnicode_DecodeUTF16 } = this.api.text;
    if (value.isWellFormed()) {
      const bytes = encoder.encode(`${value}\0`); // never empty: an empty array has no address
      return this.check(PyUnicode_FromStringAndSize(bytes, BigInt(bytes.length - 1)));
    }
    const units = new DataView(new ArrayBuffer(2 * value.length));
    for (let i = 0; i < value.length; i++) units.setUint16(2 * i, value.charCodeAt(i), true);
    this.#int.value = -1; // little-endian, and U+FEFF is a character like any other
    const bytes = new Uint8Array(units.buffer);
    return this.check(PyUnicode_DecodeUTF16(bytes, BigInt(bytes.length), surrogatePass, this.#int.$address));
  }

  // law python/Interpreter.name: python/object, python/frame, python/leaks
  /** The name of an attribute as a string; borrowed, until the next call. */
  name(value: string): bigint {
    let name = this.#names.get(value);
    if (name !== undefined) return name;
    if (this.#names.size === mostNames) {
      for (const kept of this.#names.values()) this.release(kept);
      this.#names.clear();
    }
    name = this.text(value);
    this.#names.set(value, name);
    return name;
  }

  // law python/Interpreter.readInteger: python/object, python/frame, python/leaks
  /** The value of an int: a number if that is exact, else a bigint. */
  readInteger(object: bigint): number | bigint {
    const value = this.api.numbers.PyLong_AsLongLongAndOverflow(object, this.#int.$address);
    if (this.#int.value === 0) {
      const number = Number(value);
      return Number.isSafeInteger(number) ? number : value;
    }
    const digits = this.callHelper("hex", [this.retain(object)]);
    const text = this.readText(digits);
    this.release(digits);
    return text.startsWith("-") ? -BigInt(text.slice(1)) : BigInt(text);
  }

  // law python/Interpreter.readText: python/object, python/frame, python/leaks
  /** The value of a str. Python writes a file name that is not UTF-8 with lone surrogates. */
  readText(object: bigint): string {
    const { PyUnicode_AsUTF8AndSize, PyUnicode_AsEncodedString } = this.api.text;
    const start = PyUnicode_AsUTF8AndSize(object, this.#size.$address);
    if (start !== 0n) return readString(start, Number(this.#size.value));
    this.api.errors.PyErr_Clear();
    const encoded = this.check(PyUnicode_AsEncodedString(object, utf16, surrogatePass));
    const units = new DataView(this.readBytes(encoded).buffer);
    this.release(encoded);
    let text = "";
    for (let at = 0; at < units.byteLength; at += 2) text += String.fromCharCode(units.getUint16(at, true));
    return text;
  }

  /** A copy of the bytes of a bytes object. */
  readBytes(object: bigint): Uint8Array<ArrayBuffer> {
    this.checkInt(this.api.text.PyBytes_AsStringAndSize(object, this.#pointer.$address, this.#size.$address));
    const length = Number(this.#size.value);
    return new Uint8Array(ffiPort().memory(this.#pointer.value, length)).slice();
  }

  // law python/Interpreter.typeHas: python/object, python/frame, python/leaks
  /** Whether the type of an object has an attribute, as a method of its instances. */
  typeHas(object: bigint, name: string): boolean {
    const type = this.api.objects.PyObject_Type(object);
    const has = this.api.objects.PyObject_HasAttrString(type, cString(name)) === 1;
    this.release(type);
    return has;
  }

  // law python/Interpreter.hasProtocol: python/arrow_capsules
  /** Whether an object has a method of a protocol: its type has it, and the object itself does not hide it. */
  hasProtocol(object: bigint, name: string): boolean {
    return this.typeHas(object, name) && this.api.objects.PyObject_HasAttrString(object, cString(name)) === 1;
  }

  // law python/Interpreter.typeFlags: python/object, python/frame, python/leaks
  /** The bits of an object's type that tell the built-in types apart. */
  typeFlags(object: bigint): bigint {
    const type = this.api.objects.PyObject_Type(object);
    const flags = this.api.objects.PyType_GetFlags(type);
    this.release(type);
    return flags;
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

  // law python/Interpreter.show: python/object, python/frame, python/leaks
  /** An object in the text of an error: its `str()`, or why that fails. */
  show(object: bigint): string {
    try {
      return this.str(object);
    } catch (error) {
      if (!(error instanceof PythonError)) throw error;
      return `<an object whose str() fails: ${error.message}>`;
    }
  }

  // law python/Interpreter.isExactly: python/object, python/frame, python/leaks
  /** Whether an object is an instance of a type, and not of a subtype. */
  isExactly(object: bigint, type: Helper): boolean {
    const itsType = this.api.objects.PyObject_Type(object);
    this.release(itsType);
    return itsType === this.helper(type);
  }

  #run(code: string, start: number, namespace: bigint): bigint {
    return this.check(this.api.run.PyRun_StringFlags(cString(code), start, namespace, namespace, 0n));
  }

  // law python/Interpreter.error: python/object, python/frame, python/leaks
  /** Takes the pending exception, and clears it. */
  #error(): PythonError {
    if (this.api.errors.PyErr_Occurred() === 0n) {
      return new PythonError("SystemError", "SystemError: a call failed without an exception", "");
    }
    const args = this.tuple([this.#takeException()]);
    const description = this.api.calls.PyObject_Call(this.helper("describe_exception"), args, 0n);
    this.release(args);
    if (description === 0n) {
      this.api.errors.PyErr_Clear();
      return new PythonError("Exception", "An exception whose description fails as well", "");
    }
    const [type = "", message = "", traceback = ""] = [0n, 1n, 2n].map((i) =>
      this.readText(this.api.tuples.PyTuple_GetItem(description, i))
    );
    this.release(description);
    return new PythonError(type, message, traceback);
  }

  // law python/Interpreter.takeException: python/object, python/frame, python/leaks
  /** Takes the pending exception with its traceback, and clears it; a new reference. */
  #takeException(): bigint {
    const { errors, objects } = this.api;
    if (errors.PyErr_GetRaisedException !== null) return errors.PyErr_GetRaisedException();
    using arena = new NativeArena();
    const [type, value, traceback] = [arena.out("ptr"), arena.out("ptr"), arena.out("ptr")];
    errors.PyErr_Fetch(type.$address, value.$address, traceback.$address);
    errors.PyErr_NormalizeException(type.$address, value.$address, traceback.$address);
    if (traceback.value !== 0n) {
      objects.PyObject_SetAttrString(value.value, cString("__traceback__"), traceback.value);
      this.release(traceback.value);
    }
    this.release(type.value);
    return value.value;
  }
}
