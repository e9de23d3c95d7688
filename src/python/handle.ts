/**
 * References to objects of Python that JavaScript owns.
 *
 * @module
 */
import type { Interpreter } from "./interpreter.ts";

/** Where an object was found: it is an attribute of another one. */
export interface Origin {
  readonly owner: Handle;
  readonly name: string;
}

/** Owns a reference to an object, until it is closed or collected. */
export class Handle {
  readonly python: Interpreter;
  /** 0n while the reference is released: after the first call of a method, and when this is closed. */
  #object: bigint;
  #isClosed = false;
  /** How the object is looked up again after a call, if it is a method of its owner. */
  readonly #origin: Origin | null;
  /** The function behind the method, in C or in Python; 0n before the first call. */
  #function = 0n;
  #inspectsFrame: boolean | null = null;

  // law python/Handle.constructor: python/values, python/export_array
  /** Adopts the reference. */
  constructor(python: Interpreter, object: bigint, origin: Origin | null = null) {
    this.python = python;
    this.#object = object;
    this.#origin = origin !== null && functionOf(python, object, origin.owner.object) !== 0n ? origin : null;
    finalizer.register(this, { python, object }, this);
  }

  // law python/Handle.object: python/values, python/export_array
  /** The object; borrowed. */
  get object(): bigint {
    if (this.#isClosed) throw new TypeError("Cannot use a closed PyObject");
    if (this.#object === 0n && this.#origin !== null) this.#lookUp(this.#origin);
    return this.#object;
  }

  /** Whether it was closed. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Whether a call may inspect its caller's frame. Functions written in C do not, but for those of two modules. */
  get inspectsFrame(): boolean {
    return this.#inspectsFrame ??= inspectsFrame(this.python, this.object);
  }

  // law python/Handle.endCall: python/object, python/frame, python/leaks
  /**
   * Releases a method after its first call: one that was looked up to be called may never be closed, and would keep its
   * object until it is collected. A method that is called again is looked up again, and kept from then on.
   */
  endCall(): void {
    if (this.#origin === null || this.#function !== 0n || this.#isClosed) return;
    const { owner } = this.#origin;
    if (owner.isClosed) return; // it could not be looked up again
    this.#function = functionOf(this.python, this.#object, owner.object);
    finalizer.unregister(this);
    this.python.release(this.#object);
    this.#object = 0n;
  }

  // law python/Handle.close: python/values, python/export_array
  /** Releases the object. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    finalizer.unregister(this);
    if (this.#object !== 0n) this.python.locked(() => this.python.releaseAndPoll(this.#object));
  }

  // law python/Handle.lookUp: python/object, python/frame, python/leaks
  #lookUp({ owner, name }: Origin): void {
    const { python } = this;
    if (owner.isClosed) throw new TypeError(`Cannot use ${name} again: it is a method of a closed PyObject`);
    const object = python.check(python.api.objects.PyObject_GetAttr(owner.object, python.name(name)));
    if (functionOf(python, object, owner.object) !== this.#function) {
      python.release(object);
      throw new TypeError(
        `Cannot use ${name} again: the object has another method of this name now. Keep a method with $get("${name}")`,
      );
    }
    this.#object = object;
    finalizer.register(this, { python, object }, this);
  }
}

// law python/inspectsFrame: python/object, python/frame, python/leaks
/** Whether a callable may inspect the frame that it is called from. */
function inspectsFrame(python: Interpreter, object: bigint): boolean {
  if (!python.isExactly(object, "builtin_function")) return true;
  const self = python.api.methods.PyCFunction_GetSelf(object);
  return self === python.helper("builtins") || self === python.helper("sys");
}

// law python/functionOf: python/object, python/frame, python/leaks
/**
 * The function behind a method of an object: a function of Python, or the address of one in C. 0n for everything else,
 * and for functions of a module, which is never closed.
 */
function functionOf(python: Interpreter, object: bigint, self: bigint): bigint {
  const { PyMethod_Self, PyMethod_Function, PyCFunction_GetSelf, PyCFunction_GetFunction } = python.api.methods;
  if (python.isExactly(object, "bound_method")) return PyMethod_Self(object) === self ? PyMethod_Function(object) : 0n;
  const isMethod = python.isExactly(object, "builtin_function") && PyCFunction_GetSelf(object) === self &&
    !python.isExactly(self, "module_type");
  return isMethod ? PyCFunction_GetFunction(object) : 0n;
}

/** A finalizer must not wait for Python's lock: the reference is released when the lock is next held. */
const finalizer = new FinalizationRegistry<{ readonly python: Interpreter; readonly object: bigint }>(
  ({ python, object }) => python.releaseLater(object),
);

const handles = new WeakMap<object, Handle>();

/** The reference behind a `PyObject`; undefined for any other object. */
export function handleOf(value: object): Handle | undefined {
  return handles.get(value);
}

/** Makes a handle the reference behind a `PyObject`. */
export function setHandle(value: object, handle: Handle): void {
  handles.set(value, handle);
}
