/**
 * Values across the border. Numbers, texts, truth values and None are copied, arrays are seen where they are, and any
 * other object of Python stays in Python.
 *
 * All functions here need the interpreter's lock.
 *
 * @module
 */
import { Py_TPFLAGS } from "../../bindings/cpython.ts";
import { Slice } from "../layout/mod.ts";
import { arraySourceOf } from "../view/from.ts";
import { StridedMemoryView } from "../view/strided_memory_view.ts";
import type { ImportOptions } from "../dlpack/tensor.ts";
import { ExchangeError } from "../order/exchange_error.ts";
import { ArrowArray } from "../arrow/array.ts";
import { ArrowStreamExport } from "../arrow/stream_export.ts";
import { isArray, lend, takeArray } from "./export_array.ts";
import { emptyStream, fillStream, lendArrow } from "./export_arrow.ts";
import { PythonError } from "./error.ts";
import type { Interpreter } from "./interpreter.ts";
import { handleOf, type Origin, wrap } from "./object.ts";

/** References to several values, which go to Python together: none, and nothing consumed, if one of them cannot be passed. */
export function all(python: Interpreter, values: readonly unknown[]): bigint[] {
  const conversion = new Conversion(python);
  const made = conversion.all(values);
  conversion.complete();
  return made;
}

/** Values on their way to Python. What can be given away once only is given when all the others are there. */
class Conversion {
  readonly #python: Interpreter;
  /** Containers that the value lies in, outermost first. */
  readonly #above: object[] = [];
  /** Streams, and what they will be in Python; borrowed. Few calls have any. */
  #streams: Map<ArrowStreamExport, bigint> | null = null;

  constructor(python: Interpreter) {
    this.#python = python;
  }

  /** References to several values; none, if one of them cannot be passed. */
  all(values: readonly unknown[]): bigint[] {
    const made: bigint[] = [];
    try {
      for (const value of values) made.push(this.#value(value));
      return made;
    } catch (error) {
      made.forEach((object) => this.#python.drop(object));
      throw error;
    }
  }

  /** Gives away what can be given once. */
  complete(): void {
    if (this.#streams === null) return;
    for (const [stream, object] of this.#streams) fillStream(this.#python, object, stream);
  }

  /**
   * A new reference to what a JavaScript value is in Python.
   *
   * @throws {TypeError} for symbols, containers within themselves, functions and instances of classes that are no arrays
   */
  #value(value: unknown): bigint {
    const python = this.#python;
    const { none, true: yes, false: no } = python.singletons;
    switch (typeof value) {
      case "undefined":
        return python.share(none);
      case "boolean":
        return python.share(value ? yes : no);
      case "number":
        return Number.isSafeInteger(value) && !Object.is(value, -0)
          ? python.integer(BigInt(value))
          : python.api.numbers.PyFloat_FromDouble(value);
      case "bigint":
        return python.integer(value);
      case "string":
        return python.text(value);
      case "symbol":
        throw new TypeError("Cannot pass a symbol to Python");
      case "function":
      case "object":
        return value === null ? python.share(none) : this.#object(value);
    }
  }

  #object(value: object): bigint {
    const python = this.#python;
    const handle = handleOf(value);
    if (handle !== undefined) return python.share(handle.object);
    if (Array.isArray(value)) return this.#inside(value, () => this.#list(value));
    if (value instanceof Map) return this.#inside(value, () => this.#dict([...value]));
    if (value instanceof Slice) return python.callHelper("slice", this.all([value.start, value.stop, value.step]));
    if (value instanceof ArrowArray) return lendArrow(python, value);
    if (value instanceof ArrowStreamExport) return this.#stream(value);
    if (value instanceof StridedMemoryView) return lend(python, value);
    if (value instanceof ArrayBuffer) return lend(python, StridedMemoryView.from(new Uint8Array(value)));
    if (ArrayBuffer.isView(value) || arraySourceOf(value) !== undefined) {
      using view = StridedMemoryView.from(value); // Python keeps what is imported here
      return lend(python, view);
    }
    if (isPlain(value)) return this.#inside(value, () => this.#dict(Object.entries(value)));
    const what = typeof value === "function" ? "a function" : `an instance of ${value.constructor.name}`;
    throw new TypeError(
      `Cannot pass ${what} to Python: expected a value, an array, a list, a plain object, a Map, or an object of Python`,
    );
  }

  #inside(container: object, convert: () => bigint): bigint {
    if (this.#above.includes(container)) throw new TypeError("Cannot pass a container to Python that lies in itself");
    this.#above.push(container);
    try {
      return convert();
    } finally {
      this.#above.pop();
    }
  }

  #list(items: readonly unknown[]): bigint {
    const { PyList_New, PyList_SetItem } = this.#python.api.lists;
    const objects = this.all(items);
    const made = PyList_New(BigInt(objects.length));
    objects.forEach((object, i) => PyList_SetItem(made, BigInt(i), object)); // takes the reference over
    return made;
  }

  #dict(pairs: readonly (readonly [unknown, unknown])[]): bigint {
    const python = this.#python;
    const { PyDict_New, PyDict_SetItem } = python.api.dicts;
    const made = PyDict_New();
    try {
      for (const pair of pairs) {
        const objects = this.all(pair);
        const [key = 0n, value = 0n] = objects;
        const code = PyDict_SetItem(made, key, value);
        objects.forEach((object) => python.drop(object));
        python.checkInt(code);
      }
      return made;
    } catch (error) {
      python.drop(made);
      throw error;
    }
  }

  #stream(stream: ArrowStreamExport): bigint {
    const streams = this.#streams ??= new Map();
    if (streams.has(stream)) {
      throw new ExchangeError("Cannot pass an Arrow stream to Python twice: it is read once");
    }
    if (stream.taken) stream.take(); // which throws
    const object = emptyStream(this.#python, stream);
    streams.set(stream, object);
    return object;
  }
}

/** Whether a value goes to Python as a dict with names as keys. */
export function isPlain(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/**
 * What an object of Python is in JavaScript; takes the reference over.
 *
 * @param options where arrays of devices will be used
 * @param origin of what it is an attribute
 */
export function fromPython(python: Interpreter, object: bigint, options: ImportOptions, origin?: Origin): unknown {
  let isKept = false;
  try {
    const simple = simpleValue(python, object);
    if (simple !== undefined) return simple.value;
    const array = isArray(python, object) ? takeIfPossible(python, object, options) : undefined;
    if (array !== undefined) return array;
    isKept = true;
    return wrap(python, object, options, origin);
  } finally {
    if (!isKept) python.drop(object);
  }
}

/** An array as a view. What cannot be handed over, such as a tensor that needs a gradient, is an object like any other. */
function takeIfPossible(python: Interpreter, object: bigint, options: ImportOptions): StridedMemoryView | undefined {
  try {
    return takeArray(python, object, options);
  } catch (error) {
    if (error instanceof PythonError || error instanceof ExchangeError) return undefined;
    throw error;
  }
}

/** The value of an object that JavaScript has a copy for; undefined for all others. */
function simpleValue(python: Interpreter, object: bigint): { readonly value: unknown } | undefined {
  const { none, true: yes, false: no } = python.singletons;
  if (object === none) return { value: null };
  if (object === yes || object === no) return { value: object === yes };
  const flags = python.typeFlags(object);
  if (flags & Py_TPFLAGS.LONG_SUBCLASS) return { value: python.readInteger(object) };
  if (flags & Py_TPFLAGS.UNICODE_SUBCLASS) return { value: python.readText(object) };
  if (python.isFloat(object)) return { value: python.api.numbers.PyFloat_AsDouble(object) };
  return isScalar(python, object) ? scalarValue(python, object) : undefined;
}

/** Whether an object is a scalar of NumPy, which has the interface of an array, but is none. */
function isScalar(python: Interpreter, object: bigint): boolean {
  return python.typeHas(object, "__array_interface__") && python.typeHas(object, "item") &&
    !python.typeHas(object, "__dlpack__");
}

function scalarValue(python: Interpreter, object: bigint): { readonly value: unknown } | undefined {
  const item = python.callHelper("call_method", [python.share(object), python.share(python.name("item"))]);
  try {
    return isScalar(python, item) ? undefined : simpleValue(python, item); // a longdouble is its own item
  } finally {
    python.drop(item);
  }
}

/**
 * A copy of an object with all that is in it: lists and tuples as arrays, dicts as Maps, bytes as Uint8Array.
 *
 * @param object borrowed
 */
export function copyOut(python: Interpreter, object: bigint, options: ImportOptions): unknown {
  const { lists, tuples } = python.api;
  const items = (count: bigint, at: (i: bigint) => bigint) =>
    Array.from({ length: Number(count) }, (_, i) => copyOut(python, at(BigInt(i)), options));
  const flags = python.typeFlags(object);
  if (flags & Py_TPFLAGS.LIST_SUBCLASS) return items(lists.PyList_Size(object), (i) => lists.PyList_GetItem(object, i));
  if (flags & Py_TPFLAGS.TUPLE_SUBCLASS) {
    return items(tuples.PyTuple_Size(object), (i) => tuples.PyTuple_GetItem(object, i));
  }
  if (flags & Py_TPFLAGS.BYTES_SUBCLASS) return python.readBytes(object);
  if (!(flags & Py_TPFLAGS.DICT_SUBCLASS)) return fromPython(python, python.share(object), options);
  const pairs = python.callHelper("pairs_of", [python.share(object)]);
  try {
    return new Map(copyOut(python, pairs, options) as [unknown, unknown][]); // a list of pairs, says the helper
  } finally {
    python.drop(pairs);
  }
}
