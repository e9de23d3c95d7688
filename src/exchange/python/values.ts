/**
 * Values across the border. Numbers, texts, truth values and None are copied, arrays are seen where they are, and any
 * other object of Python stays in Python.
 *
 * All functions here need the interpreter's lock.
 *
 * @module
 */
import { Py_TPFLAGS } from "../../../bindings/cpython.ts";
import { Slice } from "../../layout/mod.ts";
import { arraySourceOf } from "../../view/protocols.ts";
import { StridedMemoryView } from "../../view/strided_memory_view.ts";
import type { ImportOptions } from "../dlpack.ts";
import { ExchangeError } from "../error.ts";
import { ArrowArray } from "../arrow_array.ts";
import { ArrowStreamExport } from "../arrow_stream_export.ts";
import { isArray, lend, takeArray } from "./arrays.ts";
import { lendArrow, lendStream } from "./arrow_lend.ts";
import { PythonError } from "./error.ts";
import type { Interpreter } from "./interpreter.ts";
import { handleOf, wrap } from "./object.ts";

/** Containers that a value lies in, outermost first. */
type Path = readonly object[];

/**
 * A new reference to what a JavaScript value is in Python.
 *
 * @throws {TypeError} for functions, symbols, containers within themselves, and instances of classes that are no arrays
 */
export function toPython(python: Interpreter, value: unknown, above: Path = []): bigint {
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
      return value === null ? python.share(none) : objectToPython(python, value, above);
  }
}

function objectToPython(python: Interpreter, value: object, above: Path): bigint {
  const handle = handleOf(value);
  if (handle !== undefined) return python.share(handle.object);
  if (above.includes(value)) throw new TypeError("Cannot pass a container to Python that lies in itself");
  const inside = [...above, value];
  if (Array.isArray(value)) return list(python, value, inside);
  if (value instanceof Map) return dict(python, [...value], inside);
  if (value instanceof Slice) return python.callHelper("slice", all(python, [value.start, value.stop, value.step]));
  if (value instanceof ArrowArray) return lendArrow(python, value);
  if (value instanceof ArrowStreamExport) return lendStream(python, value);
  if (value instanceof ArrayBuffer) return lend(python, StridedMemoryView.from(new Uint8Array(value)));
  if (value instanceof StridedMemoryView || ArrayBuffer.isView(value) || arraySourceOf(value) !== undefined) {
    return lend(python, StridedMemoryView.from(value));
  }
  if (isPlain(value)) return dict(python, Object.entries(value), inside);
  const what = typeof value === "function" ? "a function" : `an instance of ${value.constructor.name}`;
  throw new TypeError(
    `Cannot pass ${what} to Python: expected a value, an array, a list, a plain object, a Map, or an object of Python`,
  );
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** References to several values; none, if one of them cannot be passed. */
export function all(python: Interpreter, values: readonly unknown[], above: Path = []): bigint[] {
  const made: bigint[] = [];
  try {
    for (const value of values) made.push(toPython(python, value, above));
    return made;
  } catch (error) {
    made.forEach((object) => python.drop(object));
    throw error;
  }
}

function list(python: Interpreter, items: readonly unknown[], above: Path): bigint {
  const { PyList_New, PyList_SetItem } = python.api.lists;
  const objects = all(python, items, above);
  const made = PyList_New(BigInt(objects.length));
  objects.forEach((object, i) => PyList_SetItem(made, BigInt(i), object)); // takes the reference over
  return made;
}

/** A dict of pairs. */
export function dict(python: Interpreter, pairs: readonly (readonly [unknown, unknown])[], above: Path = []): bigint {
  const { PyDict_New, PyDict_SetItem } = python.api.dicts;
  const made = PyDict_New();
  try {
    for (const pair of pairs) {
      const objects = all(python, pair, above);
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

/**
 * What an object of Python is in JavaScript; takes the reference over.
 *
 * @param options where arrays of devices will be used
 */
export function fromPython(python: Interpreter, object: bigint, options: ImportOptions): unknown {
  let isKept = false;
  try {
    const simple = simpleValue(python, object);
    if (simple !== undefined) return simple.value;
    const array = isArray(python, object) ? takeIfPossible(python, object, options) : undefined;
    if (array !== undefined) return array;
    isKept = true;
    return wrap(python, object, options);
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
  const item = python.callHelper("method", [python.share(object), python.text("item")]);
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
  const pairs = python.callHelper("pairs", [python.share(object)]);
  try {
    return new Map(copyOut(python, pairs, options) as [unknown, unknown][]); // a list of pairs, says the helper
  } finally {
    python.drop(pairs);
  }
}
