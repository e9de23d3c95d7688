/**
 * The values of Python's objects in JavaScript: of numbers, strings, booleans and None, and of the containers that hold
 * them.
 *
 * All functions here need the interpreter's lock.
 *
 * @module
 */
import { Py_TPFLAGS } from "../../bindings/cpython.ts";
import type { Interpreter } from "./interpreter.ts";

/** The value of a number, a string, a boolean or None; undefined for all other objects. */
export function simpleValue(python: Interpreter, object: bigint): { readonly value: unknown } | undefined {
  const { none, true: yes, false: no } = python.singletons;
  if (object === none) return { value: null };
  if (object === yes || object === no) return { value: object === yes };
  const flags = python.typeFlags(object);
  if (flags & Py_TPFLAGS.LONG_SUBCLASS) return { value: python.readInteger(object) };
  if (flags & Py_TPFLAGS.UNICODE_SUBCLASS) return { value: python.readText(object) };
  if (python.isFloat(object)) return { value: python.api.numbers.PyFloat_AsDouble(object) };
  return isScalar(python, object) ? scalarValue(python, object) : undefined;
}

/** Whether an object is a scalar of NumPy, which has the interface of an array, but is not one. */
function isScalar(python: Interpreter, object: bigint): boolean {
  return python.typeHas(object, "__array_interface__") && python.typeHas(object, "item") &&
    !python.typeHas(object, "__dlpack__");
}

// law python/scalarValue: python/values, python/leaks
function scalarValue(python: Interpreter, object: bigint): { readonly value: unknown } | undefined {
  const item = python.callHelper("call_method", [python.retain(object), python.retain(python.name("item"))]);
  try {
    return isScalar(python, item) ? undefined : simpleValue(python, item); // the item of a longdouble is a longdouble
  } finally {
    python.release(item);
  }
}

// law python/copyOut: python/object, python/frame, python/leaks
/**
 * A copy of an object with all that it contains: lists and tuples as arrays, dicts as Maps, bytes as Uint8Array.
 *
 * @param object borrowed
 * @param other what becomes of an object that is none of these and has no simple value; it borrows the object
 */
export function copyOut(python: Interpreter, object: bigint, other: (object: bigint) => unknown): unknown {
  const { lists, tuples } = python.api;
  const items = (count: bigint, at: (i: bigint) => bigint) =>
    Array.from({ length: Number(count) }, (_, i) => copyOut(python, at(BigInt(i)), other));
  const flags = python.typeFlags(object);
  if (flags & Py_TPFLAGS.LIST_SUBCLASS) return items(lists.PyList_Size(object), (i) => lists.PyList_GetItem(object, i));
  if (flags & Py_TPFLAGS.TUPLE_SUBCLASS) {
    return items(tuples.PyTuple_Size(object), (i) => tuples.PyTuple_GetItem(object, i));
  }
  if (flags & Py_TPFLAGS.BYTES_SUBCLASS) return python.readBytes(object);
  if (!(flags & Py_TPFLAGS.DICT_SUBCLASS)) {
    const simple = simpleValue(python, object);
    return simple === undefined ? other(object) : simple.value;
  }
  const pairs = python.callHelper("pairs_of", [python.retain(object)]);
  try {
    return new Map(copyOut(python, pairs, other) as [unknown, unknown][]); // the helper returns a list of pairs
  } finally {
    python.release(pairs);
  }
}
