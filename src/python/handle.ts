/**
 * A reference to an object of Python that JavaScript holds.
 *
 * @module
 */
import type { Interpreter } from "./interpreter.ts";

/** How an object was come by: as an attribute of another one. */
export interface Origin {
  readonly owner: Handle;
  readonly name: string;
}

/** A reference that lives as long as JavaScript holds this. */
export class Handle {
  readonly python: Interpreter;
  /** 0n while it is let go of. */
  #object: bigint;
  #isClosed = false;
  /** Where the object is a method of its owner: how it is had again after a call. */
  readonly #origin: Origin | null;
  /** The C function, or the function of Python, that the method is of; 0n until it was called. */
  #function = 0n;
  #inspectsFrame: boolean | null = null;

  /** Takes the reference over. */
  constructor(python: Interpreter, object: bigint, origin: Origin | null = null) {
    this.python = python;
    this.#object = object;
    this.#origin = origin !== null && functionOf(python, object, origin.owner.object) !== 0n ? origin : null;
    finalizer.register(this, { python, object }, this);
  }

  /** The object; borrowed. */
  get object(): bigint {
    if (this.#isClosed) throw new TypeError("Cannot use a closed PyObject");
    if (this.#object === 0n && this.#origin !== null) this.#lookUp(this.#origin);
    return this.#object;
  }

  /** Whether the object was let go of for good. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Whether what it does may depend on who calls it. Functions written in C do not look, but those of two modules. */
  get inspectsFrame(): boolean {
    return this.#inspectsFrame ??= inspectsFrame(this.python, this.object);
  }

  /**
   * Lets go of a method after its first call, because nobody else might if it was looked up for that alone. Who has kept
   * it, and calls it again, holds it from then on.
   */
  endCall(): void {
    if (this.#origin === null || this.#function !== 0n || this.#isClosed) return;
    const { owner } = this.#origin;
    if (owner.isClosed) return; // it could not be had again
    this.#function = functionOf(this.python, this.#object, owner.object);
    finalizer.unregister(this);
    this.python.release(this.#object);
    this.#object = 0n;
  }

  /** Lets go of the object. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    finalizer.unregister(this);
    if (this.#object !== 0n) this.python.locked(() => this.python.releaseAndPoll(this.#object));
  }

  #lookUp({ owner, name }: Origin): void {
    const { python } = this;
    if (owner.isClosed) throw new TypeError(`Cannot use ${name} again: it is a method of a closed PyObject`);
    const object = python.check(python.api.objects.PyObject_GetAttr(owner.object, python.name(name)));
    if (functionOf(python, object, owner.object) !== this.#function) {
      python.release(object);
      throw new TypeError(
        `Cannot use ${name} again: the object has another one since. Keep a method with $get("${name}")`,
      );
    }
    this.#object = object;
    finalizer.register(this, { python, object }, this);
  }
}

/** Whether a callable may look at the frame that it is called from. */
function inspectsFrame(python: Interpreter, object: bigint): boolean {
  if (!python.isExactly(object, "builtin_function")) return true;
  const self = python.api.methods.PyCFunction_GetSelf(object);
  return self === python.helper("builtins") || self === python.helper("sys");
}

/**
 * What a method of an object is a method of: a function of Python, or the address of one in C. 0n for all else, and for
 * functions of a module, which is never closed.
 */
function functionOf(python: Interpreter, object: bigint, self: bigint): bigint {
  const { PyMethod_Self, PyMethod_Function, PyCFunction_GetSelf, PyCFunction_GetFunction } = python.api.methods;
  if (python.isExactly(object, "bound_method")) return PyMethod_Self(object) === self ? PyMethod_Function(object) : 0n;
  const isMethod = python.isExactly(object, "builtin_function") && PyCFunction_GetSelf(object) === self &&
    !python.isExactly(self, "module_type");
  return isMethod ? PyCFunction_GetFunction(object) : 0n;
}

/** The garbage collector must not wait for Python's lock: it leaves the reference to whoever holds it next. */
const finalizer = new FinalizationRegistry<{ readonly python: Interpreter; readonly object: bigint }>(
  ({ python, object }) => python.releaseLater(object),
);

const handles = new WeakMap<object, Handle>();

/** The reference behind a `PyObject`; undefined for any other object. */
export function handleOf(value: object): Handle | undefined {
  return handles.get(value);
}

/** Makes a handle the reference behind an object of JavaScript. */
export function setHandle(value: object, handle: Handle): void {
  handles.set(value, handle);
}
