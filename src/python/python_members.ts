/**
 * Members of Python objects, attributes and items: whether there is one, and setting and deleting it. `object.ts` reads
 * them.
 *
 * @module
 */
import type { Handle } from "./handle.ts";
import type { Interpreter } from "./interpreter.ts";
import { toPython } from "./to_python.ts";

// law python/index: python/values, python/object, python/frame, python/leaks
/** A name that denotes an item. */
const index = /^(0|-?[1-9]\d*)$/;

/** Whether a name denotes an item. The first character rules out most names. */
export function isIndex(name: string): boolean {
  const first = name.charCodeAt(0);
  return (first === 45 || (first >= 48 && first <= 57)) && index.test(name);
}

// law python/nameOf: python/object, python/frame, python/leaks
/**
 * The name of an attribute to set or delete.
 *
 * @throws {TypeError} for symbols, and for names that begin with $
 */
export function nameOf(key: string | symbol, doing: "set" | "delete"): string {
  if (typeof key === "symbol") throw new TypeError(`Cannot ${doing} ${String(key)} of a PyObject: expected a name`);
  if (!key.startsWith("$")) return key;
  throw new TypeError(
    `Cannot ${doing} ${key} of a PyObject: names that begin with $ are reserved. If Python has an attribute of this ` +
      `name, use builtins.${doing === "set" ? "setattr" : "delattr"}`,
  );
}

/** Whether an object has an attribute. */
export function hasAttribute(handle: Handle, name: string): boolean {
  const { python } = handle;
  python.enter();
  try {
    return python.api.objects.PyObject_HasAttr(handle.object, python.name(name)) === 1;
  } finally {
    python.leave();
  }
}

// law python/has: python/object, python/frame, python/leaks
/** Whether an object has an attribute, a mapping this key, or a sequence this item. */
export function has(handle: Handle, name: string): boolean {
  const { python } = handle;
  const { objects, errors } = python.api;
  python.enter();
  try {
    const { object } = handle;
    if (!isIndex(name) && hasAttribute(handle, name)) return true;
    if (name === "length" && python.typeHas(object, "__len__")) return true;
    const isMapping = python.typeHas(object, "keys"); // the same test as dict()
    if (!isMapping && !isIndex(name)) return false;
    const key = isIndex(name) ? indexKey(python, object, name) : python.text(name);
    let found: boolean;
    // __getitem__ of some mappings, such as defaultdict, inserts an item
    if (isMapping) found = objects.PySequence_Contains(object, key) === 1;
    else {
      const item = objects.PyObject_GetItem(object, key);
      found = item !== 0n;
      if (found) python.release(item);
    }
    errors.PyErr_Clear();
    python.release(key);
    return found;
  } finally {
    python.leave();
  }
}

/** Whether a name to set or delete is a key: of a mapping that has no attribute of this name. */
function isKey(python: Interpreter, object: bigint, name: string): boolean {
  const { PyMapping_Check, PyObject_HasAttr } = python.api.objects;
  if (PyMapping_Check(object) === 0) return false; // it has no items at all, as most objects
  return python.isKeyed(object) && PyObject_HasAttr(object, python.name(name)) !== 1;
}

// law python/setAttribute: python/object, python/frame, python/leaks
/** Sets an attribute, or a mapping's key that is not an attribute. */
export function setAttribute(handle: Handle, name: string, value: unknown): void {
  const { python } = handle;
  python.enter();
  try {
    const { object } = handle;
    // Nothing that a program has written is asked for a number or a text.
    if (typeof value !== "object" && typeof value !== "function") assign(python, object, name, made(python, value));
    else setToObject(handle, name, value);
  } finally {
    python.leave();
  }
}

function setToObject(handle: Handle, name: string, value: unknown): void {
  const { python } = handle;
  handle.withObject((object) => assign(python, object, name, made(python, value)));
}

function made(python: Interpreter, value: unknown): bigint {
  return toPython(python, [value])[0] ?? 0n;
}

/** Sets an attribute or a key to an object, which it adopts. */
function assign(python: Interpreter, object: bigint, name: string, value: bigint): void {
  const { PyObject_SetAttr, PyObject_SetItem } = python.api.objects;
  const code = isKey(python, object, name)
    ? PyObject_SetItem(object, python.key(name), value)
    : PyObject_SetAttr(object, python.name(name), value);
  python.release(value);
  python.checkInt(code);
}

/** Deletes what {@linkcode setAttribute} sets. */
export function deleteAttribute(handle: Handle, name: string): void {
  const { python } = handle;
  python.enter();
  try {
    const { PyObject_SetAttr, PyObject_DelItem } = python.api.objects;
    const { object } = handle;
    python.checkInt(
      isKey(python, object, name)
        ? PyObject_DelItem(object, python.key(name))
        : PyObject_SetAttr(object, python.name(name), 0n),
    );
  } finally {
    python.leave();
  }
}

// law python/setItem: python/object, python/frame, python/leaks, python/values
/**
 * Sets the item for a key, or for several: `object[a, b] = value`.
 *
 * @param args the keys, then the value
 */
export function setItem(handle: Handle, args: readonly unknown[]): void {
  if (args.length < 2) throw new TypeError("Cannot set an item: expected a key, or several, and then the value");
  const { python } = handle;
  python.enter();
  try {
    handle.withObject((object) => { // before a stream among the values is consumed
      const made = toPython(python, args);
      const [value = 0n, ...keys] = [made.at(-1), ...made.slice(0, -1)];
      const [first = 0n] = keys;
      inFrame(python, "set_item", object, [keys.length === 1 ? first : python.tuple(keys), value]);
    });
  } finally {
    python.leave();
  }
}

/** Sets the item for a name that denotes one. */
export function setIndexed(handle: Handle, name: string, value: unknown): void {
  const { python } = handle;
  python.enter();
  try {
    handle.withObject((object) => {
      const made = toPython(python, [value]);
      inFrame(python, "set_item", object, [indexKey(python, object, name), ...made]);
    });
  } finally {
    python.leave();
  }
}

/** Deletes the item for a name that denotes one. */
export function deleteIndexed(handle: Handle, name: string): void {
  const { python } = handle;
  python.enter();
  try {
    const { object } = handle;
    inFrame(python, "delete_item", object, [indexKey(python, object, name)]);
  } finally {
    python.leave();
  }
}

/** Changes an item from a frame, into which some classes look; adopts the references to the arguments. */
function inFrame(
  python: Interpreter,
  helper: "set_item" | "delete_item",
  object: bigint,
  args: readonly bigint[],
): void {
  const call = [python.retain(object), ...args];
  python.release(python.check(python.tryCallFramed(python.helper(helper), call, 0n)));
}

// law python/indexKey: python/object, python/leaks
/**
 * The key for a name that denotes an item, as a new reference: an int, unless only the string is a key of a mapping,
 * as in what was read from JSON.
 */
export function indexKey(python: Interpreter, object: bigint, name: string): bigint {
  const index = Number(name);
  const integer = Number.isSafeInteger(index) ? python.smallInteger(index) : python.integer(BigInt(name));
  if (!python.isKeyed(object) || contains(python, object, integer)) return integer;
  const text = python.text(name);
  const isText = contains(python, object, text);
  python.release(isText ? integer : text);
  return isText ? text : integer;
}

function contains(python: Interpreter, object: bigint, key: bigint): boolean {
  const { objects, errors } = python.api;
  const found = objects.PySequence_Contains(object, key);
  if (found < 0) errors.PyErr_Clear(); // of a class that has its own test: it will say so when it is read
  return found === 1;
}
