/**
 * The values of Python objects in JavaScript: of numbers, strings, booleans and None, and of containers of them.
 *
 * All functions here need the interpreter's lock.
 *
 * @module
 */
import { Py_TPFLAGS } from "../../bindings/cpython.ts";
import type { Interpreter } from "./interpreter.ts";
import { maxItems } from "./item_programs.ts";
import { Kind, notSimple } from "./kinds.ts";
import type { SequenceKind } from "./sequences.ts";

// law python/simpleValue: python/kinds, python/leaks
/** The value of a number, a string, a boolean or None; {@linkcode notSimple} for all other objects. */
export function simpleValue(python: Interpreter, object: bigint, kind: Kind): unknown {
  switch (kind) {
    case Kind.float:
    case Kind.floatScalar:
      return python.readFloat(object);
    case Kind.int:
      return python.readInteger(object);
    case Kind.text:
      return python.readText(object);
    case Kind.none:
      return null;
    case Kind.bool:
      return object === python.singletons.true;
    case Kind.intScalar:
      return integerValue(python, object);
    case Kind.boolScalar:
      return python.api.objects.PyObject_IsTrue(object) === 1;
    case Kind.unknown:
    case Kind.derivedDict:
      if (python.isFloat(object)) return python.readFloat(object);
      return isScalar(python, object) ? scalarValue(python, object) : notSimple;
    default:
      return notSimple;
  }
}

function integerValue(python: Interpreter, object: bigint): number | bigint {
  const int = python.check(python.api.numbers.PyNumber_Index(object));
  try {
    return python.readInteger(int);
  } finally {
    python.release(int);
  }
}

/** Whether an object is a NumPy scalar. */
function isScalar(python: Interpreter, object: bigint): boolean {
  return python.isScalarType(BigInt(python.typeOf(object)));
}

// law python/scalarValue: python/kinds, python/leaks
function scalarValue(python: Interpreter, object: bigint): unknown {
  const type = python.textOf(BigInt(python.typeOf(object)), "__name__");
  if (type === "datetime64" || type === "timedelta64") return notSimple; // its item is a number in some units, and None
  const item = python.callHelper("call_method", [python.retain(object), python.retain(python.name("item"))]);
  try {
    // The item of a longdouble is a longdouble.
    return isScalar(python, item) ? notSimple : simpleValue(python, item, python.kindOf(item));
  } finally {
    python.release(item);
  }
}

// law python/copyOut: python/values
/**
 * A deep copy of an object: lists and tuples as arrays, dicts as Maps, sets as Sets, bytes as Uint8Array, datetimes of
 * the module datetime as Dates.
 *
 * @param object borrowed
 * @param other converts an object that is none of these and has no simple value; it borrows the object
 */
export function copyOut(python: Interpreter, object: bigint, other: (object: bigint) => unknown): unknown {
  const kind = python.kindOf(object);
  if (kind === Kind.list || kind === Kind.tuple) return copyItems(python, object, kind, other);
  if (kind === Kind.bytes) return python.texts.readBytes(object);
  if (kind === Kind.dict || kind === Kind.derivedDict) return copyDict(python, object, other);
  if (kind === Kind.set) return copySet(python, object, other);
  if (kind === Kind.datetime) return dateOf(python, object);
  if (kind === Kind.unknown) {
    const flags = python.typeFlags(object); // its class may be derived from one of these
    if (flags & Py_TPFLAGS.LIST_SUBCLASS) return copyItems(python, object, Kind.list, other);
    if (flags & Py_TPFLAGS.TUPLE_SUBCLASS) return copyItems(python, object, Kind.tuple, other);
    if (flags & Py_TPFLAGS.BYTES_SUBCLASS) return python.texts.readBytes(object);
    const type = BigInt(python.typeOf(object));
    if (python.isDatetimeType(type)) return dateOf(python, object);
    if (python.isSetType(type)) return copySet(python, object, other);
  }
  const simple = simpleValue(python, object, kind);
  return simple === notSimple ? other(object) : simple;
}

// law python/copyItems: python/sequences, python/leaks
/** The items of a list or a tuple. Python code that runs for one item may change the others. */
function copyItems(
  python: Interpreter,
  object: bigint,
  kind: SequenceKind,
  other: (object: bigint) => unknown,
): unknown[] {
  const { sequences } = python;
  const values: unknown[] = [];
  for (;;) {
    const size = sequences.sizeOf(object, kind);
    const before = values.length;
    if (before >= size) return values;
    sequences.readValues(object, kind, before, size, maxItems, values);
    if (values.length - before === maxItems || values.length >= size) continue;
    const item = sequences.itemAt(object, kind, values.length);
    try {
      values.push(copyOut(python, item, other));
    } finally {
      python.release(item);
    }
  }
}

function copyDict(python: Interpreter, object: bigint, other: (object: bigint) => unknown): Map<unknown, unknown> {
  const pairs = python.callHelper("pairs_of", [python.retain(object)]);
  try {
    return new Map(copyOut(python, pairs, other) as [unknown, unknown][]); // the helper returns a list of pairs
  } finally {
    python.release(pairs);
  }
}

// law python/copySet: python/conversions, python/leaks
function copySet(python: Interpreter, object: bigint, other: (object: bigint) => unknown): Set<unknown> {
  const items = python.callHelper("list", [python.retain(object)]);
  try {
    return new Set(copyItems(python, items, Kind.list, other));
  } finally {
    python.release(items);
  }
}

// law python/dateOf: python/conversions
/**
 * The moment that a datetime denotes, rounded down to the millisecond. Without a time zone it is local time, as
 * everywhere in Python. A missing datetime, as in pandas, becomes an invalid Date.
 */
function dateOf(python: Interpreter, object: bigint): Date {
  const milliseconds = python.callHelper("milliseconds_of", [python.retain(object)]);
  try {
    return new Date(milliseconds === python.singletons.none ? NaN : Number(python.readInteger(milliseconds)));
  } finally {
    python.release(milliseconds);
  }
}
