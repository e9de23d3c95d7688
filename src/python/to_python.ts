/**
 * JavaScript values in Python: numbers, strings, booleans, dates and null are copied, lists, dicts and sets are
 * created, arrays are exported in place, and functions become callable objects.
 *
 * All functions here need the interpreter's lock.
 *
 * @module
 */
import { isOfOtherCopy, isPlainObject, show, showGiven, Slice } from "../layout/mod.ts";
import { isArraySource, StridedMemoryView, wayOut } from "../view/mod.ts";
import { ExchangeError } from "../order/mod.ts";
import { ArrowArray, ArrowStreamExport, isVortexForm } from "../arrow/mod.ts";
import { exportArray } from "./export_array.ts";
import { emptyStream, exportArrow, exportStream, exportVortex } from "./export_arrow.ts";
import { exceptionBehind, PythonError } from "./error.ts";
import type { Interpreter } from "./interpreter.ts";
import { handleOf } from "./handle.ts";
import { Keywords } from "./keywords.ts";

// law python/toPython: python/values, python/object
/**
 * References to several values, for one call. If one of them cannot be passed, all are released and no stream is taken.
 */
export function toPython(python: Interpreter, values: readonly unknown[]): bigint[] {
  if (values.length === 1) {
    const only = simpleObject(python, values[0]); // as most calls have
    if (only !== 0n) return [only];
  }
  const made: bigint[] = [];
  let conversion: Conversion | null = null; // most calls need none
  try {
    for (let i = 0; i < values.length; i++) {
      const value = values[i];
      const simple = simpleObject(python, value);
      made.push(simple !== 0n ? simple : (conversion ??= new Conversion(python)).value(value));
    }
    conversion?.exportStreams();
    return made;
  } catch (error) {
    for (const object of made) python.release(object);
    if (!(error instanceof RangeError && isStackOverflow(error))) throw error;
    throw new TypeError("Cannot pass Python a container that is nested so deeply that no stack is left", {
      cause: error,
    });
  }
}

/** V8's and JavaScriptCore's error where no stack is left. */
function isStackOverflow({ message }: RangeError): boolean {
  return message.startsWith("Maximum call stack size exceeded");
}

// law python/simpleObject: python/values, python/leaks
/** A new reference to a value that is not a JavaScript object, or to a Python object; 0n for all others. */
function simpleObject(python: Interpreter, value: unknown): bigint {
  const { none, true: yes, false: no } = python.singletons;
  switch (typeof value) {
    case "undefined":
      return python.retain(none);
    case "boolean":
      return python.retain(value ? yes : no);
    case "number":
      return Number.isSafeInteger(value) && !Object.is(value, -0)
        ? python.smallInteger(value)
        : python.check(python.api.numbers.PyFloat_FromDouble(value));
    case "bigint":
      return python.integer(value);
    case "string":
      return python.text(value);
    case "symbol":
      throw new TypeError("Cannot pass a symbol to Python");
    case "function":
    case "object": {
      if (value === null) return python.retain(none);
      const handle = handleOf(value);
      return handle === undefined ? 0n : python.retain(handle.object);
    }
  }
}

const positions: bigint[] = [];

/** A list index as a bigint for C. Small ones are cached. */
function position(i: number): bigint {
  return i < 4096 ? positions[i] ??= BigInt(i) : BigInt(i);
}

/**
 * Converts values for one call. Streams, which can be taken only once, are exported after everything else is converted.
 */
class Conversion {
  readonly #python: Interpreter;
  /** The containers that enclose the current value, outermost first. */
  readonly #above: object[] = [];
  /** Streams, and the empty objects that will own them; borrowed. Few calls have any. */
  #streams: Map<ArrowStreamExport, bigint> | null = null;

  constructor(python: Interpreter) {
    this.#python = python;
  }

  // law python/Conversion.all: python/values, python/export_array
  /** References to several values; none if one of them cannot be passed. */
  all(values: readonly unknown[]): bigint[] {
    const made: bigint[] = [];
    try {
      for (const value of values) made.push(this.value(value));
      return made;
    } catch (error) {
      made.forEach((object) => this.#python.release(object));
      throw error;
    }
  }

  /** Exports the streams, which moves them to Python. */
  exportStreams(): void {
    if (this.#streams === null) return;
    for (const [stream, object] of this.#streams) exportStream(this.#python, object, stream);
  }

  /**
   * A new reference to a value in Python.
   *
   * @throws {TypeError} for symbols, containers within themselves, and instances of classes that are not arrays
   */
  value(value: unknown): bigint {
    const simple = simpleObject(this.#python, value);
    // All non-objects are simple.
    return simple !== 0n ? simple : this.#object(value as object);
  }

  // law python/Conversion.object: python/object, python/frame, python/leaks, public/two_copies
  #object(value: object): bigint {
    const python = this.#python;
    if (Array.isArray(value)) return this.#list(value);
    if (isOfOtherCopy(value)) throw ofOtherCopy(value);
    if (isFunction(value)) return python.javascript.exportFunction(value);
    if (value instanceof Map) return this.#dict(value);
    if (value instanceof Set) return this.#set(value);
    if (value instanceof Date) return datetimeOf(python, value);
    if (becomesDict(value)) return this.#plain(value);
    if (value instanceof PythonError) return this.#exception(value);
    if (value instanceof Slice) return python.callHelper("slice", this.all([value.start, value.stop, value.step]));
    if (value instanceof ArrowArray) return exportArrow(python, value);
    if (isVortexForm(value)) return exportVortex(python, value, (parts) => this.value(parts));
    if (value instanceof ArrowStreamExport) return this.#stream(value);
    if (value instanceof StridedMemoryView) return exportArray(python, value);
    if (value instanceof ArrayBuffer) return exportArray(python, StridedMemoryView.from(new Uint8Array(value)));
    if (ArrayBuffer.isView(value) || isArraySource(value)) {
      using view = StridedMemoryView.from(value); // the exported array keeps it alive
      return exportArray(python, view);
    }
    if (value instanceof Keywords) {
      const names = Object.keys(value.values).join(", ");
      throw new TypeError(
        `Cannot pass kwargs({ ${names} }) to Python here: expected it as the last argument of a call, and only once`,
      );
    }
    throw new TypeError(
      `Cannot pass ${showGiven(value)} to Python: expected a value, an array, a list, a plain ` +
        `object, a Map, a Set, a Date, a function, a PythonError, or a Python object${wayOut(value)}`,
    );
  }

  // law python/Conversion.enter: python/values, python/export_array
  #enter(container: object): void {
    if (this.#above.includes(container)) throw new TypeError("Cannot pass Python a container that contains itself");
    this.#above.push(container);
  }

  // law python/Conversion.leave: python/values
  #leave(): void {
    this.#above.pop();
  }

  // law python/Conversion.filled: python/values, python/object, python/frame, python/leaks
  /** A new container with what `fill` puts in, which is released if that is refused. */
  #filled(container: object, make: () => bigint, fill: (made: bigint) => void): bigint {
    this.#enter(container);
    const made = this.#python.check(make()); // there may be no memory for it
    try {
      fill(made);
    } catch (error) {
      this.#python.release(made);
      throw error;
    }
    this.#leave();
    return made;
  }

  #list(items: readonly unknown[]): bigint {
    const python = this.#python;
    const floats = python.floatLists.make(items);
    if (floats !== 0n) return floats;
    const { PyList_New, PyList_SetItem } = python.api.lists;
    const { length } = items; // a getter of an item may change it
    return this.#filled(items, () => PyList_New(BigInt(length)), (made) => {
      // adopts the references
      for (let i = 0; i < length; i++) PyList_SetItem(made, position(i), this.value(items[i]));
    });
  }

  // law python/Conversion.dict: python/object, python/frame, python/leaks, python/values
  #dict(pairs: ReadonlyMap<unknown, unknown>): bigint {
    const python = this.#python;
    const { PyDict_New, PyDict_SetItem, PyDict_Size } = python.api.dicts;
    return this.#filled(pairs, PyDict_New, (made) => {
      for (const pair of pairs) {
        const objects = this.all(pair);
        const [key = 0n, value = 0n] = objects;
        const code = PyDict_SetItem(made, key, value);
        for (const object of objects) python.release(object);
        python.checkInt(code);
      }
      if (PyDict_Size(made) === BigInt(pairs.size)) return;
      throw new TypeError(equalThere("Map", "keys"));
    });
  }

  // law python/Conversion.set: python/conversions, python/leaks, python/values
  #set(items: ReadonlySet<unknown>): bigint {
    this.#enter(items);
    const python = this.#python;
    const made = python.callHelper("set", [this.#list([...items])]);
    this.#leave();
    if (python.api.objects.PyObject_Size(made) === BigInt(items.size)) return made;
    python.release(made);
    throw new TypeError(equalThere("Set", "items"));
  }

  // law python/Conversion.plain: python/values, python/leaks
  #plain(container: Readonly<Record<string, unknown>>): bigint {
    const python = this.#python;
    const { PyDict_New, PyDict_SetItem } = python.api.dicts;
    return this.#filled(container, PyDict_New, (made) => {
      for (const name of Object.keys(container)) {
        const value = this.value(container[name]);
        const code = PyDict_SetItem(made, python.key(name), value); // a key is valid until the next one is made
        python.release(value);
        python.checkInt(code);
      }
    });
  }

  // law python/Conversion.exception: python/raised
  #exception(error: PythonError): bigint {
    const { address } = exceptionBehind(error);
    if (address !== 0n) return this.#python.retain(address);
    throw new TypeError(`Cannot pass the error "${error.message}" to Python: it has no exception, or it was released`);
  }

  // law python/Conversion.stream: python/object, python/frame, python/leaks
  #stream(stream: ArrowStreamExport): bigint {
    const streams = this.#streams ??= new Map();
    if (streams.has(stream)) {
      throw new ExchangeError("Cannot pass an Arrow stream to Python twice: it is read once");
    }
    if (stream.taken) stream.take(); // throws
    const object = emptyStream(this.#python, stream);
    streams.set(stream, object);
    return object;
  }
}

/** Why a Map or a Set is refused of which Python would drop some. */
function equalThere(what: string, parts: string): string {
  return `Cannot pass Python a ${what} with ${parts} that are equal there: 1, 1n and true are, and null and undefined`;
}

/** The first and last moments that the module datetime can represent, in milliseconds: it covers years 1 to 9999. */
const [firstMoment, lastMoment] = [-62_135_596_800_000, 253_402_300_799_999];

// law python/datetimeOf: python/conversions
/**
 * A datetime of the module datetime, in UTC.
 *
 * @throws {RangeError} if the Date is invalid, or outside the years 1 to 9999
 */
function datetimeOf(python: Interpreter, date: Date): bigint {
  const milliseconds = date.getTime();
  if (!(milliseconds >= firstMoment && milliseconds <= lastMoment)) {
    const given = Number.isNaN(milliseconds) ? "an invalid Date" : date.toISOString();
    throw new RangeError(`Cannot pass ${given} to Python: its datetime covers only the years 1 to 9999. Pass a number`);
  }
  return python.callHelper("datetime_of", [python.smallInteger(milliseconds)]);
}

function ofOtherCopy(value: object): TypeError {
  return new TypeError(`Cannot pass ${show(value)}. Get it from this one, or pass StridedMemoryView.from(view)`);
}

/** Whether an object becomes a dict with string keys: it is plain, and does not describe an array. */
export function becomesDict(value: object): value is Readonly<Record<string, unknown>> {
  return isPlainObject(value) && !isArraySource(value) && !isVortexForm(value);
}

/** Whether a value can be called. */
function isFunction(value: object): value is (...args: unknown[]) => unknown {
  return typeof value === "function";
}
