/**
 * Python objects in JavaScript.
 *
 * @module
 */
import { Py_TPFLAGS } from "../../bindings/cpython.ts";
import { arrowArraySource, type ArrowField, arrowStreamSource, capsuleSource } from "../cdata/mod.ts";
import { pointerOf } from "./take_capsule.ts";
import { openArray, openStream } from "./arrow_capsules.ts";
import { arraySource } from "../view/mod.ts";
import type { ImportOptions } from "../dlpack/mod.ts";
import { checkOptions, type OptionNames, packageCopy, thisCopy } from "../layout/mod.ts";
import { call, callByParts } from "./calls.ts";
import { PythonError } from "./error.ts";
import { errorOf, pendingError, takeException } from "./exception.ts";
import type { Interpreter } from "./interpreter.ts";
import { copyOut, simpleValue } from "./copy_out.ts";
import { behind, Handle, handleOf } from "./handle.ts";
import { importIfPossible, isArray, viewOf } from "./import_array.ts";
import { iterate } from "./iterate.ts";
import { iterateAsync } from "./iterate_generator.ts";
import { Kind, notSimple } from "./kinds.ts";
import { Status } from "./call_programs.ts";
import {
  deleteAttribute,
  deleteIndexed,
  has,
  hasAttribute,
  indexKey,
  isIndex,
  nameOf,
  setAttribute,
  setIndexed,
  setItem,
} from "./python_members.ts";
import { jsonOf, withObjects } from "./copied.ts";
import { toPython } from "./to_python.ts";

/**
 * A Python object: a module, a function, a class, an instance. Its attributes are properties that can be read, set and
 * deleted; it is called like a function and iterated like an array; `object[0]` is item 0, `length` is the result of
 * Python's `len()`. A name that is not an attribute of a mapping is one of its keys. `key in object` tests for an
 * attribute, and on a mapping also for a key. Results are converted: None, booleans, numbers and strings to
 * JavaScript's, arrays to views of the same memory, everything else to another `PyObject`. Members that are not
 * Python's begin with `$`, as no Python name does.
 *
 * It owns a reference until it is closed, with `using` or `$close()`, or collected. A method such as `array.sum` keeps
 * its object alive until it has been called, and not afterwards.
 */
// deno-lint-ignore no-explicit-any -- only Python knows what comes back
export interface PyObject extends Iterable<any>, AsyncIterable<any>, Disposable {
  /** Calls the object. Keyword arguments come last: `kwargs({ dim: 0 })`. */
  // deno-lint-ignore no-explicit-any -- only Python knows what comes back
  (...args: unknown[]): any;
  /** Calls the object and returns the result unconverted, even an array or a number, so its methods can be used. */
  $call(...args: unknown[]): PyObject;
  /** An attribute, unconverted, even if it is an array or a number. */
  $get(name: string): PyObject;
  /** The item for an index, a key, a slice, or several of them: Python's `object[a, b]`. */
  // deno-lint-ignore no-explicit-any -- only Python knows what comes back
  $item(...keys: unknown[]): any;
  /** Sets the item for an index, a key, a slice, or several of them: Python's `object[a, b] = value`. */
  $setItem(...keysAndValue: [key: unknown, ...keys: unknown[], value: unknown]): void;
  /**
   * A deep copy of the object: lists and tuples as arrays, dicts as Maps, sets as Sets, bytes as Uint8Array, datetimes
   * of the module datetime as Dates. With `{ objects: true }` dicts become plain objects.
   *
   * @throws {TypeError} if a dict that should become an object has a key that is not a string
   */
  $value(options?: PythonValueOptions): unknown;
  /** Releases the object. Closing twice is harmless. */
  $close(): void;
  /** The result of Python's `len()`, unless the object has an attribute `length`, or a mapping this key. */
  // deno-lint-ignore no-explicit-any -- only Python knows what comes back
  length: any;
  /** Python's attribute, not the one of JavaScript functions. */
  // deno-lint-ignore no-explicit-any -- only Python knows what comes back
  name: any;
  /** Python's attribute, not the one of JavaScript functions. */
  // deno-lint-ignore no-explicit-any -- only Python knows what comes back
  apply: any;
  /** Python's attribute, not the one of JavaScript functions. */
  // deno-lint-ignore no-explicit-any -- only Python knows what comes back
  bind: any;
  /** Python's attribute, not the one of JavaScript functions. */
  // deno-lint-ignore no-explicit-any -- only Python knows what comes back
  call: any;
  /** An attribute. */
  // deno-lint-ignore no-explicit-any -- only Python knows what comes back
  [attribute: string]: any;
}

/** Options of a `PyObject`'s `$value`. */
export interface PythonValueOptions {
  /** Converts dicts to plain objects; their keys must then be strings. Default: false, they become Maps. */
  readonly objects?: boolean;
}

const valueOptionNames: OptionNames<PythonValueOptions> = { objects: true };

// law python/fromPython: python/values, python/export_array
/**
 * Converts a Python object to a JavaScript value; adopts the reference.
 *
 * @param options where device arrays will be used
 */
export function fromPython(
  python: Interpreter,
  object: bigint,
  options: ImportOptions,
  kind: Kind = python.kindOf(object),
): unknown {
  let isAdopted = false;
  try {
    const value = valueOf(python, object, options, kind);
    if (value !== notSimple) return value;
    isAdopted = true;
    return wrap(python, object, options);
  } finally {
    if (!isAdopted) python.release(object);
  }
}

/** The value of a simple object, or the view of an array; else {@linkcode notSimple}. */
function valueOf(python: Interpreter, object: bigint, options: ImportOptions, kind: Kind): unknown {
  if (kind >= Kind.object) return notSimple;
  const simple = simpleValue(python, object, kind);
  if (simple !== notSimple) return simple;
  if (kind === Kind.javascript) return python.javascript.functionOf(object) ?? notSimple;
  const isOne = kind === Kind.numpyArray || kind === Kind.array || isArray(python, object);
  return isOne ? importIfPossible(python, object, options, kind) : notSimple;
}

// law python/askedByJavaScript: python/values, python/object, python/frame, python/leaks
/** Properties that JavaScript itself reads from any object, to find out what it is. */
const askedByJavaScript = new Set(["then", "toJSON", "constructor", "toString"]);

/** Whether it is a key of a mapping that JavaScript may be given: it would call the others. */
function isPlainKey(handle: Handle, name: string): boolean {
  return name === "constructor" && isKeyOfDict(handle, name);
}

/** Finds a key of a mapping that would be set, and could not be read. */
function checkReadable(handle: Handle, name: string): void {
  if (!askedByJavaScript.has(name) || name === "constructor" || hasAttribute(handle, name)) return;
  if (!handle.python.locked(() => handle.python.isKeyed(handle.object))) return;
  throw new TypeError(
    `Cannot set a dict's key as the property ${name}, which JavaScript asks every object for: expected ` +
      `$setItem("${name}", value); $item("${name}") reads it`,
  );
}

/** The value of such a property if Python has no attribute of that name. */
function answerToJavaScript(handle: Handle, name: string): unknown {
  if (name === "toString") return () => show(handle);
  if (name === "toJSON") return () => json(handle);
  return name === "then" ? thenOf(handle) : undefined;
}

/** The target of a proxy: a function, so that it can be called. A console inspects it. */
interface Target {
  (...args: unknown[]): unknown;
  [behind]?: Handle;
  [inspected]?: () => string;
}

const inspected = Symbol.for("nodejs.util.inspect.custom");

/** The handle of a target, stored there by `wrap`. */
function handleIn(target: Target): Handle {
  const handle = target[behind];
  if (handle === undefined) throw new TypeError("Cannot use a PyObject that was not made by wrap()"); // there is none
  return handle;
}

/** Attributes of Python objects with the name that JavaScript calls of whatever a promise is given. */
const thens = new WeakSet<object>();

// law python/checkNotAwaited: python/async
/**
 * Refuses a call that a promise makes, with its own two functions, of an attribute `then` that is Python's.
 *
 * @throws {TypeError} with which the promise is then rejected
 */
function checkNotAwaited(handle: Handle, args: readonly unknown[]): void {
  const { proxy } = handle;
  if (proxy === null || !thens.has(proxy) || !args.every(isFunctionOfPromise)) return;
  throw new TypeError(
    "Cannot give a promise a Python object with an attribute `then`, which JavaScript calls of whatever is awaited or " +
      "returned by an async function: give it inside an array, as [object]",
  );
}

/** Whether a value is a function that a promise has made for its own settlement: native, without a name. */
function isFunctionOfPromise(value: unknown): boolean {
  return typeof value === "function" && handleOf(value) === undefined && value.name === "" && value.length === 1 &&
    Function.prototype.toString.call(value).includes("[native code]");
}

// law python/traps: python/object, python/frame, python/leaks, python/values
/** The traps of every `PyObject`: one shared object, because creating closures for each takes longer than a call. */
const traps: ProxyHandler<Target> = {
  get(target, key) {
    const handle = handleIn(target);
    if (typeof key === "symbol") {
      return key === behind ? handle : key === packageCopy ? thisCopy : memberOf(handle, key);
    }
    if (key.charCodeAt(0) === 36) return memberOf(handle, key); // $
    if (isIndex(key)) return indexedValue(handle, key);
    if (askedByJavaScript.has(key) && !hasAttribute(handle, key)) {
      return isPlainKey(handle, key) ? attributeValue(handle, key) : answerToJavaScript(handle, key);
    }
    const value = attributeValue(handle, key);
    if (key === "then" && typeof value === "function") thens.add(value);
    return value;
  },
  has(target, key) {
    const handle = handleIn(target);
    if (members.has(key) || key === "toString") return true;
    return typeof key === "string" && has(handle, key);
  },
  set(target, key, value: unknown) {
    const name = nameOf(key, "set");
    const handle = handleIn(target);
    if (isIndex(name)) setIndexed(handle, name, value);
    else {
      checkReadable(handle, name);
      setAttribute(handle, name, value);
    }
    return true;
  },
  deleteProperty(target, key) {
    const name = nameOf(key, "delete");
    if (isIndex(name)) deleteIndexed(handleIn(target), name);
    else deleteAttribute(handleIn(target), name);
    return true;
  },
  // A mapping can be spread; of other objects JavaScript's own reflection functions see nothing.
  ownKeys: (target) => keysOfDict(handleIn(target)),
  getOwnPropertyDescriptor(target, key) {
    const handle = handleIn(target);
    if (typeof key !== "string" || !isKeyOfDict(handle, key)) return undefined;
    const value = isIndex(key) ? indexedValue(handle, key) : attributeValue(handle, key);
    return { value, writable: true, enumerable: true, configurable: true };
  },
  defineProperty: () => false,
  preventExtensions: () => false,
  setPrototypeOf: () => false,
  getPrototypeOf: () => null,
};

/** Makes a `PyObject`, which adopts the reference. */
export function wrap(python: Interpreter, object: bigint, options: ImportOptions): PyObject {
  return proxyOf(new Handle(python, object, options));
}

/** The `PyObject` of a handle that has none yet. */
function proxyOf(handle: Handle): PyObject {
  // Calls go to the target itself: an apply trap would cost 35 ns in Bun.
  const target: Target = (...args: unknown[]) => {
    if (args.length === 2 && typeof args[0] === "function") checkNotAwaited(handle, args);
    return call(handle, args, fromPython);
  };
  target[behind] = handle;
  target[inspected] = inspectTarget;
  const proxy = new Proxy(target, traps);
  handle.proxy = proxy;
  return proxy as unknown as PyObject; // the traps are its members
}

/** What a console shows; called on the target or on the proxy. */
function inspectTarget(this: Target): string {
  try {
    return inspect(handleIn(this));
  } catch (error) {
    return `PyObject (${error instanceof Error ? error.message.split("\n")[0] : String(error)})`; // a console must not fail
  }
}

/** The members of objects that are not Python's, each made for an object when it is first read. */
const members: ReadonlyMap<string | symbol, (handle: Handle) => (...args: never[]) => unknown> = new Map<
  string | symbol,
  (handle: Handle) => (...args: never[]) => unknown
>([
  ["$call", (handle) => (...args: readonly unknown[]) => callByParts(handle, args, wrap)],
  ["$get", (handle) => (name: string) => attributeUnconverted(handle, name)],
  ["$item", (handle) => (...keys: readonly unknown[]) => itemValue(handle, keys)],
  ["$setItem", (handle) => (...args: readonly unknown[]) => setItem(handle, args)],
  ["$value", (handle) => (asked?: PythonValueOptions) => {
    if (asked !== undefined) checkOptions(asked, valueOptionNames);
    const value = copyOf(handle);
    return asked?.objects === true ? withObjects(value) : value;
  }],
  ["$close", (handle) => () => handle.close()],
  [arraySource, (handle) => (where: ImportOptions) => viewOf(handle, where)],
  [arrowArraySource, (handle) => (requested: ArrowField | null) => openArray(handle, requested)],
  [arrowStreamSource, (handle) => (requested: ArrowField | null) => openStream(handle, requested)],
  [capsuleSource, (handle) => (name: string) => pointerOf(handle, name)],
  [Symbol.dispose, (handle) => () => handle.close()],
  [Symbol.iterator, (handle) => () => iterate(handle, fromPython)],
  [Symbol.asyncIterator, (handle) => () => asyncIterator(handle)],
  [Symbol.toPrimitive, (handle) => (hint: string) => hint === "number" ? toNumber(handle) : show(handle)],
]);

/** A member of an object that is not Python's; undefined if there is none of this name. */
function memberOf(handle: Handle, key: string | symbol): unknown {
  const known = handle.members?.get(key);
  if (known !== undefined) return known;
  const made = members.get(key)?.(handle);
  if (made !== undefined) (handle.members ??= new Map()).set(key, made);
  return made;
}

// law python/copyOf: python/json
/** A deep copy of the object. @throws {TypeError} if JavaScript's stack is too small for it */
function copyOf(handle: Handle): unknown {
  const { python, options, object } = handle;
  try {
    return python.locked(() => copyOut(python, object, (other) => fromPython(python, python.retain(other), options)));
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause;
    const shown = python.locked(() => python.show(object)); // whatever its repr() does
    throw new TypeError(`Cannot copy ${shown}: it contains itself, or is nested too deeply`, { cause });
  }
}

// law python/json: python/json
/**
 * What `JSON.stringify` writes for an object. It calls `toJSON` of nested objects itself.
 *
 * @throws {TypeError} if JSON cannot represent it
 */
function json(handle: Handle): unknown {
  const value = copyOf(handle);
  if (typeof value !== "function") return jsonOf(value);
  handleOf(value)?.close();
  throw new TypeError(
    `Cannot write ${show(handle)} as JSON: expected a value, a dict, a list, a tuple, a set, a datetime or an array ` +
      "of numbers. Convert it in Python, as with vars(object) or its tolist(); $value() shows what JavaScript gets",
  );
}

// law python/thenOf: python/async
/** What `await` calls; undefined if the object is not awaitable. A coroutine runs on the event loop of `py.async`. */
function thenOf(handle: Handle): Promise<unknown>["then"] | undefined {
  const { python, options } = handle;
  if (!python.locked(() => python.typeHas(handle.object, "__await__"))) return undefined;
  const calledAt = new Error(); // here, because `await` reads `then` where it stands but calls it later
  return (resolve, reject) =>
    python.locked(() =>
      python.javascript.begin(python.helper("wait_for"), [python.retain(handle.object)], 0n, { options, calledAt })
    ).then(resolve, reject);
}

/** Iterates over an object as `for await` does: over one that is not an async iterable, as `for` does. */
function asyncIterator(handle: Handle): AsyncGenerator<unknown, void, unknown> {
  const { python, options } = handle;
  if (python.locked(() => python.typeHas(handle.object, "__aiter__"))) return iterateAsync(handle, options);
  return (async function* () {
    yield* iterate(handle, fromPython);
  })();
}

// law python/inspect: python/object, python/frame, python/leaks
/** What a console shows. It must not fail for any object. */
function inspect(handle: Handle): string {
  const { python } = handle;
  return handle.isClosed ? "PyObject (closed)" : python.locked(() => `PyObject ${python.display(handle.object)}`);
}

function show(handle: Handle): string {
  const { python } = handle;
  return python.locked(() => python.str(handle.object));
}

// law python/attributeValue: python/native_calls, python/cached_attributes, python/object
/** The value of an attribute. An attribute that is cached and unchanged yields the same object as before. */
function attributeValue(handle: Handle, name: string): unknown {
  const { python } = handle;
  const native = python.nativeCalls;
  const known = python.texts.knownName(name);
  const owner = handle.reference;
  if (native === null || known === undefined || owner === 0n) {
    return attributeByParts(handle, name);
  }
  const cached = handle.cachedAttribute(name);
  const adopts = cached !== undefined && cached.reference === 0n;
  const status = python.runNatively(native, native.prepareAttribute(owner, known, cached?.expected ?? null, adopts));
  if (status === Status.same && cached !== undefined) {
    const object = adopts ? native.result : 0n;
    if (!cached.isClosed) {
      cached.reuse(object);
      return cached.proxy;
    }
    // A Python property called JavaScript, which closed it.
    if (object !== 0n) python.releaseLater(object);
    return attributeByParts(handle, name);
  }
  if (status < Status.object) return native.valueOf(status);
  try {
    return attributeOf(handle, name, status === Status.object ? native.result : otherwise(python, owner, name));
  } finally {
    python.leave();
  }
}

// law python/attributeOf: python/cached_attributes, python/object, python/leaks
/** The value of an attribute; adopts the reference. Needs the lock. */
function attributeOf(handle: Handle, name: string, object: bigint): unknown {
  const { python, options } = handle;
  let isAdopted = false;
  try {
    const kind = python.kindOf(object);
    const value = kind >= Kind.object ? notSimple : valueOf(python, object, options, kind);
    if (value !== notSimple) return value;
    const known = handle.sameAttribute(name, object, kind);
    isAdopted = true;
    if (known !== undefined) return known.proxy;
    const made = new Handle(python, object, options, { owner: handle, name });
    handle.cacheAttribute(name, made, kind);
    return proxyOf(made);
  } finally {
    if (!isAdopted) python.release(object);
  }
}

function attribute(handle: Handle, name: string): bigint {
  const { python } = handle;
  const { object } = handle;
  const found = python.api.objects.PyObject_GetAttr(object, python.name(name));
  return found === 0n ? otherwise(python, object, name) : found;
}

function attributeByParts(handle: Handle, name: string): unknown {
  const { python } = handle;
  python.enter();
  try {
    return attributeOf(handle, name, attribute(handle, name));
  } finally {
    python.leave();
  }
}

function attributeUnconverted(handle: Handle, name: string): PyObject {
  const { python, options } = handle;
  python.enter();
  try {
    return wrap(python, attribute(handle, name), options);
  } finally {
    python.leave();
  }
}

// law python/otherwise: python/conversions, python/leaks
/**
 * The value for a name that is not an attribute: the item of a mapping, or `length`.
 *
 * @throws {PythonError} if there is none: a KeyError for a mapping, else the attribute's error, which says how an item
 * is read if that may have been meant
 */
function otherwise(python: Interpreter, object: bigint, name: string): bigint {
  const { objects, errors } = python.api;
  if (errors.PyErr_Occurred() === 0n) throw pendingError(python);
  let exception = takeException(python); // before any further lookup, which would clear it
  if (!python.isExactly(exception, "AttributeError")) throw errorOf(python, exception);
  if (python.isKeyed(object)) {
    const item = objects.PyObject_GetItem(object, python.key(name));
    const other = item === 0n ? takeException(python) : 0n;
    python.release(exception);
    if (item !== 0n) return item;
    exception = other;
  }
  if (name !== "length" || !python.typeHas(object, "__len__")) {
    const error = errorOf(python, exception);
    if (error instanceof PythonError && hasNamedItems(python, object)) {
      error.message += `\nIf it is the key of an item, read that by $item(${JSON.stringify(name)}).`;
    }
    throw error;
  }
  python.release(exception);
  const size = objects.PyObject_Size(object);
  if (size < 0n) throw pendingError(python);
  return python.integer(size);
}

// law python/hasNamedItems: python/conversions
/** Whether names may be keys of an object that is no mapping, such as those of the columns of a table. */
function hasNamedItems(python: Interpreter, object: bigint): boolean {
  const { SEQUENCE, LIST_SUBCLASS, TUPLE_SUBCLASS, BYTES_SUBCLASS } = Py_TPFLAGS;
  const byIndex = SEQUENCE | LIST_SUBCLASS | TUPLE_SUBCLASS | BYTES_SUBCLASS;
  return !(python.typeFlags(object) & byIndex) && python.typeHas(object, "__getitem__");
}

function itemValue(handle: Handle, keys: readonly unknown[]): unknown {
  const { python, options } = handle;
  python.enter();
  try {
    return fromPython(python, item(handle, keys), options);
  } finally {
    python.leave();
  }
}

// law python/keysOfDict: python/object, python/leaks
/**
 * The keys of a mapping by which its items are properties; none of another object.
 *
 * @throws {TypeError} if an item is no property of its key: a copy of the object would lack it
 */
function keysOfDict(handle: Handle): string[] {
  const { python } = handle;
  if (!python.locked(() => python.isKeyed(handle.object))) return [];
  const keys = Array.from(iterate(handle, fromPython));
  const names = keys.map(String);
  const odd = keys.find((key, i) => {
    const name = names[i] ?? "";
    if (typeof key !== "string") return !isIndex(name);
    return hasAttribute(handle, name) || (askedByJavaScript.has(name) && name !== "constructor");
  });
  if (odd === undefined && new Set(names).size === names.length) return names;
  const why = odd === undefined ? "an int and a string are keys of the same name" : `${String(odd)} is not one of them`;
  throw new TypeError(
    `Cannot list a dict's keys as properties: ${why}. Copy it by $value() or $value({ objects: true })`,
  );
}

function isKeyOfDict(handle: Handle, name: string): boolean {
  const { python } = handle;
  return python.locked(() => python.isKeyed(handle.object)) && has(handle, name) && !hasAttribute(handle, name);
}

/** The item for a name that denotes one. */
function indexedValue(handle: Handle, name: string): unknown {
  const { python, options } = handle;
  python.enter();
  try {
    const { object } = handle;
    return fromPython(python, itemFor(python, object, indexKey(python, object, name)), options);
  } finally {
    python.leave();
  }
}

// law python/itemFor: python/object, python/frame, python/leaks
/** The item for a key, which it adopts. */
function itemFor(python: Interpreter, object: bigint, key: bigint): bigint {
  const found = python.api.objects.PyObject_GetItem(object, key);
  python.release(key);
  return python.check(found);
}

function item(handle: Handle, keys: readonly unknown[]): bigint {
  const { python } = handle;
  return handle.withObject((object) => {
    const objects = toPython(python, keys);
    const [only = 0n] = objects;
    return itemFor(python, object, objects.length === 1 ? only : python.tuple(objects));
  });
}

// law python/toNumber: python/values
/**
 * The result of `Number(object)`: that of Python's `float()`. JavaScript's operators request it too, for operands that
 * are not meant to be numbers, such as columns.
 */
function toNumber(handle: Handle): unknown {
  const { python, options } = handle;
  return python.locked(() => {
    if (!python.typeHas(handle.object, "__float__")) {
      throw new TypeError(
        `Cannot convert ${show(handle)} to a number: its type has no __float__. JavaScript's operators do not reach ` +
          'Python: call a method, such as a.__mul__(b) or a.__lt__(b), or python.import("operator").mul(a, b)',
      );
    }
    return fromPython(
      python,
      python.callHelper("call_method", [python.retain(handle.object), python.retain(python.name("__float__"))]),
      options,
    );
  });
}
