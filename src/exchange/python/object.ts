/**
 * Objects of Python in JavaScript.
 *
 * @module
 */
import { cString } from "../../ffi/text.ts";
import type { ArraySource } from "../../view/protocols.ts";
import { StridedMemoryView } from "../../view/strided_memory_view.ts";
import type { ImportOptions } from "../dlpack.ts";
import { isArray, takeArray } from "./arrays.ts";
import { PythonError } from "./error.ts";
import type { Interpreter } from "./interpreter.ts";
import { all, copyOut, dict, fromPython } from "./values.ts";

/**
 * An object of Python: a module, a function, a class, an instance. Its attributes are properties, it is called like a
 * function and iterated like an array; `object[0]` is the item 0. What comes back is converted: None, truth values,
 * numbers and texts to JavaScript's, arrays to views of the same memory, all else to another `PyObject`. Members of our
 * own begin with `$`, which no name in Python does.
 *
 * It holds a reference until it is closed with `using` or `$close()`, or collected.
 */
export interface PyObject extends Iterable<unknown>, Disposable {
  /** Calls the object. Arguments by name are the last one: `kwargs({ dim: 0 })`. */
  // deno-lint-ignore no-explicit-any -- only Python knows what comes back
  (...args: unknown[]): any;
  /** Calls the object and returns the result as it is, an array or number too: for its methods. */
  $call(...args: unknown[]): PyObject;
  /** An attribute as it is, an array or number too. */
  $get(name: string): PyObject;
  /** The item for an index, a key, a slice, or several of them: Python's `object[a, b]`. */
  // deno-lint-ignore no-explicit-any -- only Python knows what comes back
  $item(...keys: unknown[]): any;
  /** Sets the item for a key. */
  $setItem(key: unknown, value: unknown): void;
  /** A copy of the object with all that is in it: lists and tuples as arrays, dicts as Maps, bytes as Uint8Array. */
  $value(): unknown;
  /** Lets go of the object. Closing twice is harmless. */
  $close(): void;
  /** An attribute. */
  // deno-lint-ignore no-explicit-any -- only Python knows what comes back
  [attribute: string]: any;
}

/** Arguments by name. */
export class Keywords {
  /** By name. */
  readonly values: Readonly<Record<string, unknown>>;

  /** Use {@linkcode kwargs}. */
  constructor(values: Readonly<Record<string, unknown>>) {
    this.values = values;
  }
}

/** Arguments by name, as the last argument of a call: `torch.sum(view, kwargs({ dim: 0 }))`. */
export function kwargs(values: Readonly<Record<string, unknown>>): Keywords {
  return new Keywords(values);
}

/** A reference that lives as long as JavaScript holds this. */
export class Handle {
  readonly python: Interpreter;
  readonly #object: bigint;
  #isClosed = false;

  /** Takes the reference over. */
  constructor(python: Interpreter, object: bigint) {
    this.python = python;
    this.#object = object;
    forgotten.register(this, { python, object }, this);
  }

  /** The object; borrowed. */
  get object(): bigint {
    if (this.#isClosed) throw new TypeError("Cannot use a closed PyObject");
    return this.#object;
  }

  /** Lets go of the object. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    forgotten.unregister(this);
    this.python.locked(() => this.python.release(this.#object));
  }
}

/** The garbage collector must not wait for Python's lock: it leaves the reference to whoever holds it next. */
const forgotten = new FinalizationRegistry<{ readonly python: Interpreter; readonly object: bigint }>(
  ({ python, object }) => python.dropLater(object),
);

const handles = new WeakMap<object, Handle>();

/** The reference behind a `PyObject`; undefined for any other object. */
export function handleOf(value: object): Handle | undefined {
  return handles.get(value);
}

/** Arrays of Python. For `StridedMemoryView.from`. */
export const pythonArrays: ArraySource = {
  speaks: "an array of Python",
  accepts: (source) => handles.has(source),
  take(source, options) {
    const handle = handles.get(source);
    if (handle === undefined) throw new TypeError("Cannot view this as an array of Python: it is no PyObject");
    const { python, object } = handle;
    return python.locked(() => {
      const speaksArrow = ["__arrow_c_device_array__", "__arrow_c_array__"].some((name) =>
        python.typeHas(object, name)
      );
      if (isArray(python, object)) {
        try {
          return takeArray(python, object, options);
        } catch (error) {
          // PyArrow refuses by DLPack what it hands over by its own protocol: truth values, dates, lists of fixed size.
          if (!(error instanceof PythonError) || !speaksArrow) throw error;
        }
      }
      if (speaksArrow) return StridedMemoryView.fromArrowDevice(source, options);
      throw new TypeError(`Cannot view ${python.show(object)}: expected an array of Python`);
    });
  },
};

/** Properties that JavaScript itself asks for, in passing, of whatever it is given. */
const askedInPassing = new Set(["then", "toJSON", "constructor"]);

/** A `PyObject` that takes the reference over. */
export function wrap(python: Interpreter, object: bigint, options: ImportOptions): PyObject {
  const handle = new Handle(python, object);
  const members = membersOf(handle, options);
  // A proxy is inspected as its target is.
  const target = Object.assign(() => {}, {
    [Symbol.for("nodejs.util.inspect.custom")]: () => `PyObject ${show(handle)}`,
  });
  const proxy = new Proxy(target, {
    apply: (_, __, args: unknown[]) => call(handle, args, options),
    get(_, key) {
      if (typeof key === "symbol" || key.startsWith("$")) return Reflect.get(members, key);
      if (/^-?(0|[1-9]\d*)$/.test(key)) return members.$item(Number(key));
      if (askedInPassing.has(key) && !hasAttribute(handle, key)) return undefined;
      if (key === "toString" && !hasAttribute(handle, key)) return () => show(handle);
      return python.locked(() => fromPython(python, attribute(handle, key), options));
    },
    has: (_, key) => typeof key === "symbol" ? key in members : key in members || hasAttribute(handle, key),
    set: (_, key, value: unknown) => typeof key === "string" && setAttribute(handle, key, value),
    getPrototypeOf: () => null,
  });
  handles.set(proxy, handle);
  return proxy as unknown as PyObject; // the traps are its members
}

function membersOf(handle: Handle, options: ImportOptions) {
  const { python } = handle;
  return {
    $call: (...args: unknown[]) => python.locked(() => wrap(python, rawCall(handle, args), orderOf(args, options))),
    $get: (name: string) => python.locked(() => wrap(python, attribute(handle, name), options)),
    $item: (...keys: unknown[]) => python.locked(() => fromPython(python, item(handle, keys), options)),
    $setItem: (key: unknown, value: unknown) => setItem(handle, key, value),
    $value: () => python.locked(() => copyOut(python, handle.object, options)),
    $close: () => handle.close(),
    [Symbol.dispose]: () => handle.close(),
    [Symbol.iterator]: () => iterate(handle, options),
    [Symbol.toPrimitive]: (hint: string) => hint === "number" ? toNumber(handle, options) : show(handle),
  };
}

function show({ python, object }: Handle): string {
  return python.locked(() => python.show(object));
}

function hasAttribute({ python, object }: Handle, name: string): boolean {
  return python.locked(() => python.api.objects.PyObject_HasAttrString(object, cString(name)) === 1);
}

function attribute({ python, object }: Handle, name: string): bigint {
  return python.check(python.api.objects.PyObject_GetAttrString(object, cString(name)));
}

function setAttribute({ python, object }: Handle, name: string, value: unknown): boolean {
  return python.locked(() => {
    const [made = 0n] = all(python, [value]);
    const code = python.api.objects.PyObject_SetAttrString(object, cString(name), made);
    python.drop(made);
    return python.checkInt(code) === 0;
  });
}

function item({ python, object }: Handle, keys: readonly unknown[]): bigint {
  const objects = all(python, keys);
  const [only = 0n] = objects;
  const key = objects.length === 1 ? only : python.tuple(objects);
  const found = python.api.objects.PyObject_GetItem(object, key);
  python.drop(key);
  return python.check(found);
}

function setItem({ python, object }: Handle, key: unknown, value: unknown): void {
  python.locked(() => {
    const [keyObject = 0n, valueObject = 0n] = all(python, [key, value]);
    const code = python.api.objects.PyObject_SetItem(object, keyObject, valueObject);
    python.drop(keyObject);
    python.drop(valueObject);
    python.checkInt(code);
  });
}

function call(handle: Handle, args: readonly unknown[], options: ImportOptions): unknown {
  const { python } = handle;
  return python.locked(() => fromPython(python, rawCall(handle, args), orderOf(args, options)));
}

/** Where device arrays in a call's result will be used: on the stream of the first device view among its arguments. */
function orderOf(args: readonly unknown[], options: ImportOptions): ImportOptions {
  if (options.stream !== undefined) return options;
  const view = args.find((arg) => arg instanceof StridedMemoryView && arg.device !== null);
  if (!(view instanceof StridedMemoryView) || view.device === null) return options;
  return view.stream === null ? { device: view.device } : { stream: view.stream };
}

function rawCall({ python, object }: Handle, args: readonly unknown[]): bigint {
  const last = args.at(-1);
  const named = last instanceof Keywords ? dict(python, Object.entries(last.values)) : 0n;
  let objects: bigint[];
  try {
    objects = all(python, last instanceof Keywords ? args.slice(0, -1) : args);
  } catch (error) {
    if (named !== 0n) python.drop(named);
    throw error;
  }
  try {
    return python.call(object, objects, named);
  } finally {
    python.release();
  }
}

function* iterate({ python, object }: Handle, options: ImportOptions): Generator<unknown, void> {
  const { PyObject_GetIter, PyIter_Next } = python.api.iteration;
  const { PyErr_Occurred } = python.api.errors;
  const iterator = new Handle(python, python.locked(() => python.check(PyObject_GetIter(object))));
  try {
    for (;;) {
      const next = python.locked(() => {
        const found = PyIter_Next(iterator.object);
        if (found !== 0n) return { value: fromPython(python, found, options) };
        if (PyErr_Occurred() !== 0n) python.check(0n);
        return null;
      });
      if (next === null) return;
      yield next.value;
    }
  } finally {
    iterator.close();
  }
}

/** What `Number(object)` gives: what Python's `float()` makes of it. */
function toNumber({ python, object }: Handle, options: ImportOptions): unknown {
  return python.locked(() =>
    fromPython(python, python.callHelper("method", [python.share(object), python.text("__float__")]), options)
  );
}
