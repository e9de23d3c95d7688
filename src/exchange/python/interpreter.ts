/**
 * CPython in this process: its lock held during calls only, its errors thrown.
 *
 * @module
 */
import { type cpython, Py_input } from "../../../bindings/cpython.ts";
import { NativeArena, type Out } from "../../ffi/arena.ts";
import type { NativeLibrary } from "../../ffi/library.ts";
import { ffiPort } from "../../ffi/port.ts";
import { releaseThunks } from "../../ffi/release_thunk.ts";
import { cString, readCString, readString } from "../../ffi/text.ts";
import type { Functions } from "../../ffi/types.ts";
import { PythonError } from "./error.ts";
import { prelude } from "./prelude.ts";

/** Functions of the prelude. */
type Helper =
  | "describe"
  | "bind"
  | "bind_cuda"
  | "bind_memory"
  | "take_ordered"
  | "look"
  | "Array"
  | "Arrow"
  | "HostStream"
  | "DeviceStream"
  | "hand_over"
  | "is_plain"
  | "hand_out"
  | "take_in"
  | "offer_table"
  | "method"
  | "integer"
  | "pairs"
  | "slice"
  | "hex";

const encoder = new TextEncoder();

/** The interpreter of this process, and what every call of it needs. Addresses of objects are references that their holder owns. */
export class Interpreter {
  readonly api: Functions<typeof cpython>;
  /** Path of libpython. */
  readonly path: string;
  /** `dlopen`'s handle of it. */
  readonly library: bigint;
  /** `3.12.3`. */
  readonly version: string;
  /** None, True and False, which live for ever. */
  readonly singletons: { readonly none: bigint; readonly true: bigint; readonly false: bigint };
  /** Whether arrays of ours have been lent to Python. */
  hasLent = false;
  /** What is to be done before the lock is given up. */
  beforeUnlock: (() => void) | null = null;
  readonly #arena = new NativeArena();
  readonly #size: Out<"i64"> = this.#arena.out("i64");
  readonly #int: Out<"i32"> = this.#arena.out("i32");
  readonly #pointer: Out<"ptr"> = this.#arena.out("ptr");
  readonly #helpers = new Map<Helper, bigint>();
  readonly #namespace: bigint;
  readonly #float: bigint;
  /** References that JavaScript has let go of while it did not hold the lock. */
  #dropped: bigint[] = [];
  #depth = 0;

  /** Uses an interpreter that runs. */
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
      this.drop(this.execute(prelude, this.#namespace));
      const { DLManagedTensorVersioned, DLManagedTensor, ArrowSchema, ArrowArray } = releaseThunks().address;
      const code = [handle, DLManagedTensorVersioned, DLManagedTensor, ArrowSchema, ArrowArray];
      this.drop(this.callHelper("bind", code.map((address) => this.integer(address))));
    } finally {
      this.api.threads.PyGILState_Release(state);
    }
  }

  /** Does work that calls Python while this thread holds the interpreter's lock. */
  locked<T>(work: () => T): T {
    if (this.#depth > 0) return work();
    const { PyGILState_Ensure, PyGILState_Release } = this.api.threads;
    const state = PyGILState_Ensure();
    this.#depth++;
    try {
      if (this.#dropped.length > 0) this.release(...this.#dropped.splice(0));
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

  /** Gives up a reference now. Needs the lock. */
  drop(object: bigint): void {
    this.api.objects.Py_DecRef(object);
  }

  /** Gives up references, and then what is held for nobody: they may have been to capsules that were never used. */
  release(...objects: readonly bigint[]): void {
    for (const object of objects) this.drop(object);
    if (this.hasLent) this.drop(this.callHelper("look", []));
  }

  /** Gives up a reference when the lock is next held: for the garbage collector, which must not wait for it. */
  dropLater(object: bigint): void {
    this.#dropped.push(object);
  }

  /** Another reference to an object. */
  share(object: bigint): bigint {
    this.api.objects.Py_IncRef(object);
    return object;
  }

  /**
   * The result of a call that returns NULL where it fails.
   *
   * @throws {PythonError} if it has
   */
  check(result: bigint): bigint {
    if (result === 0n) throw this.#error();
    return result;
  }

  /**
   * The result of a call that returns -1 where it fails.
   *
   * @throws {PythonError} if it has
   */
  checkInt(result: number): number {
    if (result === -1) throw this.#error();
    return result;
  }

  /** Runs statements where the prelude's functions are; the result is None. */
  executePrelude(code: string): bigint {
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

  /** Calls a function of the prelude; takes the references to the arguments over. */
  callHelper(name: Helper, args: readonly bigint[]): bigint {
    return this.call(this.helper(name), args);
  }

  /** A function of the prelude, or a built-in one; borrowed. */
  helper(name: Helper): bigint {
    let found = this.#helpers.get(name);
    if (found === undefined) {
      found = this.evaluate(name, this.#namespace); // kept for ever
      this.#helpers.set(name, found);
    }
    return found;
  }

  /** Calls an object; takes the references to the arguments over, not the one to the object. */
  call(callable: bigint, args: readonly bigint[], keywords = 0n): bigint {
    const tuple = this.tuple(args);
    try {
      return this.check(this.api.calls.PyObject_Call(callable, tuple, keywords));
    } finally {
      this.drop(tuple);
      if (keywords !== 0n) this.drop(keywords);
    }
  }

  /** A tuple that takes the references to its items over. */
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
    return this.callHelper("integer", [this.text(`${sign}0x${(value < 0n ? -value : value).toString(16)}`)]);
  }

  /** A string. */
  text(value: string): bigint {
    if (!value.isWellFormed()) throw new TypeError("Cannot pass a string with half a surrogate pair to Python");
    const bytes = encoder.encode(`${value}\0`); // never empty: an empty array has no address
    return this.check(this.api.text.PyUnicode_FromStringAndSize(bytes, BigInt(bytes.length - 1)));
  }

  /** The value of an int object: a number if it is exact. */
  readInteger(object: bigint): number | bigint {
    const value = this.api.numbers.PyLong_AsLongLongAndOverflow(object, this.#int.$address);
    if (this.#int.value === 0) {
      const number = Number(value);
      return Number.isSafeInteger(number) ? number : value;
    }
    const digits = this.callHelper("hex", [this.share(object)]);
    const text = this.readText(digits);
    this.drop(digits);
    return text.startsWith("-") ? -BigInt(text.slice(1)) : BigInt(text);
  }

  /** The value of a str object. */
  readText(object: bigint): string {
    const start = this.check(this.api.text.PyUnicode_AsUTF8AndSize(object, this.#size.$address));
    return readString(start, Number(this.#size.value));
  }

  /** A copy of the bytes of a bytes object. */
  readBytes(object: bigint): Uint8Array<ArrayBuffer> {
    this.checkInt(this.api.text.PyBytes_AsStringAndSize(object, this.#pointer.$address, this.#size.$address));
    const length = Number(this.#size.value);
    return new Uint8Array(ffiPort().memory(this.#pointer.value, length)).slice();
  }

  /** Whether the type of an object has an attribute, as a method of its instances. */
  typeHas(object: bigint, name: string): boolean {
    const type = this.api.objects.PyObject_Type(object);
    const has = this.api.objects.PyObject_HasAttrString(type, cString(name)) === 1;
    this.drop(type);
    return has;
  }

  /** The bits of an object's type that tell the built-in types apart. */
  typeFlags(object: bigint): bigint {
    const type = this.api.objects.PyObject_Type(object);
    const flags = this.api.objects.PyType_GetFlags(type);
    this.drop(type);
    return flags;
  }

  /** Whether an object is a float. */
  isFloat(object: bigint): boolean {
    return this.checkInt(this.api.objects.PyObject_IsInstance(object, this.#float)) === 1;
  }

  /** What `str()` says of an object. */
  show(object: bigint): string {
    const text = this.check(this.api.objects.PyObject_Str(object));
    try {
      return this.readText(text);
    } finally {
      this.drop(text);
    }
  }

  #run(code: string, start: number, namespace: bigint): bigint {
    return this.check(this.api.run.PyRun_StringFlags(cString(code), start, namespace, namespace, 0n));
  }

  /** Takes the pending exception. */
  #error(): PythonError {
    const args = this.tuple([this.#takeException()]);
    const description = this.api.calls.PyObject_Call(this.helper("describe"), args, 0n);
    this.drop(args);
    if (description === 0n) {
      this.api.errors.PyErr_Clear();
      return new PythonError("Exception", "An exception whose description fails as well", "");
    }
    const [type = "", message = "", traceback = ""] = [0n, 1n, 2n].map((i) =>
      this.readText(this.api.tuples.PyTuple_GetItem(description, i))
    );
    this.drop(description);
    return new PythonError(type, message, traceback);
  }

  /** The exception that is set, with its traceback, which is no longer set then. */
  #takeException(): bigint {
    const { errors, objects } = this.api;
    if (errors.PyErr_GetRaisedException !== null) return errors.PyErr_GetRaisedException();
    using arena = new NativeArena();
    const [type, value, traceback] = [arena.out("ptr"), arena.out("ptr"), arena.out("ptr")];
    errors.PyErr_Fetch(type.$address, value.$address, traceback.$address);
    errors.PyErr_NormalizeException(type.$address, value.$address, traceback.$address);
    if (traceback.value !== 0n) {
      objects.PyObject_SetAttrString(value.value, cString("__traceback__"), traceback.value);
      this.drop(traceback.value);
    }
    this.drop(type.value);
    return value.value;
  }
}
