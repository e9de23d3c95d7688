/**
 * References to Python objects, owned by JavaScript.
 *
 * @module
 */
import type { ImportOptions } from "../dlpack/mod.ts";
import { type ExpectedAttribute, expectedAttribute } from "./expected_attribute.ts";
import type { Interpreter } from "./interpreter.ts";
import { Kind } from "./kinds.ts";

/** The origin of an object that is an attribute of another one. */
interface Origin {
  readonly owner: Handle;
  readonly name: string;
}

/** A reference that is owned, for whoever releases it: its owner or the {@linkcode finalizer}. */
export interface Reference {
  readonly python: Interpreter;
  /** 0n while there is none. */
  object: bigint;
}

/** How many attributes of an object are cached to be returned again. */
const maxCached = 256;

/**
 * Owns a reference to an object, until it is closed or collected.
 *
 * A method, and a member of a module that is a function, a class or a module, is made once: reading the attribute again
 * returns the same handle. So it may have several users, and it is closed when all of them have closed it.
 */
export class Handle {
  readonly python: Interpreter;
  /** Where device arrays that come from the object will be used. */
  readonly options: ImportOptions;
  /** The `PyObject` of this handle. */
  proxy: object | null = null;
  /** The object's members that are not Python attributes, of those that were read. */
  members: Map<string | symbol, unknown> | null = null;
  /** None after the last call of a method, and once this is closed. */
  readonly #reference: Reference;
  #isClosed = false;
  /** Where to look up the object again after a call, if it is a method of its owner. */
  readonly #origin: Origin | null;
  /** The function behind the method, in C or in Python; 0n for everything else. */
  readonly #function: bigint;
  /** How often it was read as an attribute and not yet closed. */
  #users = 1;
  /** How often a method was read and not yet called. */
  #uncalled = 1;
  /** Whether a method was called more often than it was read: the program keeps it, so it is no longer released. */
  #isCalledAgain = false;
  #inspectsFrame: boolean | null = null;
  #expected: ExpectedAttribute | null = null;
  /** Attributes that are returned again, by name. */
  #attributes: Map<string, Handle> | null = null;

  // law python/Handle.constructor: python/values, python/export_array
  /** Adopts the reference. */
  constructor(python: Interpreter, object: bigint, options: ImportOptions = {}, origin: Origin | null = null) {
    this.python = python;
    this.options = options;
    this.#reference = { python, object };
    this.#function = origin === null ? 0n : functionOf(python, object, origin.owner.object, python.kindOf(object));
    this.#origin = this.#function === 0n ? null : origin;
    finalizer.register(this, this.#reference);
  }

  // law python/Handle.object: python/values, python/export_array
  /** The object; borrowed. */
  get object(): bigint {
    const { object } = this.#reference;
    return object === 0n ? this.#lookUp() : object;
  }

  // law python/Handle.withObject: python/closed_in_use
  /** Runs work with the object, which lives until then: a getter of what the work converts may close this handle. */
  withObject<T>(work: (object: bigint) => T): T {
    const object = this.python.retain(this.object);
    try {
      return work(object);
    } finally {
      this.python.release(object);
    }
  }

  /** Whether it is closed. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** The object, if a reference is currently held; else 0n. Borrowed. */
  get reference(): bigint {
    return this.#reference.object;
  }

  /** As {@linkcode Handle.inspectsFrame}; null if not yet determined. */
  get isKnownToInspectFrame(): boolean | null {
    return this.#inspectsFrame;
  }

  /** Whether a call may inspect its caller's frame. Functions written in C do not, except those of two modules. */
  get inspectsFrame(): boolean {
    return this.#inspectsFrame ??= inspectsFrame(this.python, this.object);
  }

  /** The handle returned for an attribute before, if it is the same object; it then adopts the reference. */
  sameAttribute(name: string, object: bigint, kind: Kind): Handle | undefined {
    const known = this.#attributes?.get(name);
    return known !== undefined && known.#isAgain(object, this, kind) ? known : undefined;
  }

  /** The handle returned for an attribute before, unless it was closed. */
  cachedAttribute(name: string): Handle | undefined {
    const known = this.#attributes?.get(name);
    return known === undefined || known.#isClosed ? undefined : known;
  }

  /** The expected value of this attribute, for comparison with the next read, if it may be returned again. */
  get expected(): ExpectedAttribute | null {
    return this.#expected;
  }

  // law python/Handle.reuse: python/cached_attributes, python/native_calls
  /** Returns this handle again for the same attribute. @param object adopted, unless 0n */
  reuse(object: bigint): void {
    if (this.#reference.object === 0n) this.#reference.object = object;
    else if (object !== 0n) this.python.releaseLater(object);
    this.#users++;
    this.#uncalled++;
  }

  // law python/Handle.cacheAttribute: python/cached_attributes
  /** Caches an attribute, to return it again the next time that it is read. */
  cacheAttribute(name: string, attribute: Handle, kind: Kind): void {
    if (this.#isClosed || !(attribute.#function !== 0n || isMemberOfModule(this, attribute, kind))) return;
    const attributes = this.#attributes ??= new Map();
    if (attributes.size === maxCached) attributes.clear();
    attributes.set(name, attribute);
    attribute.#expected = expectedAttribute(this.python, attribute.object, attribute.#function, this.object, kind);
  }

  // law python/Handle.isAgain: python/cached_attributes, python/object
  /** Whether an object is this one, or the same method; its reference is then adopted. */
  #isAgain(object: bigint, owner: Handle, kind: Kind): boolean {
    const { python } = this;
    if (this.#isClosed) return false;
    const isSame = this.#function === 0n
      ? this.#reference.object === object
      : functionOf(python, object, owner.object, kind) === this.#function;
    if (!isSame) return false;
    const isReleased = this.#reference.object === 0n;
    this.reuse(isReleased ? object : 0n);
    if (!isReleased) python.release(object); // last: the caller releases it if anything is thrown
    return true;
  }

  /**
   * Releases a method once it was called as often as it was read: a method looked up only to be called may never be
   * closed, and would keep its object alive until collected. A method that is called again is looked up again, and kept
   * from then on.
   */
  endCall(): void {
    const object = this.takeForCall();
    if (object !== 0n) this.python.release(object);
  }

  // law python/Handle.takeForCall: python/object, python/cached_attributes, python/native_calls
  /** What {@linkcode Handle.endCall} releases, for callers that release it themselves after a call; else 0n. */
  takeForCall(): bigint {
    if (this.#function === 0n || this.#isClosed) return 0n;
    if (this.#uncalled > 0) this.#uncalled--;
    if (this.#isCalledAgain || this.#uncalled > 0) return 0n;
    if (this.#origin?.owner.isClosed) return 0n; // it could not be looked up again
    const { object } = this.#reference;
    this.#reference.object = 0n;
    return object;
  }

  // law python/Handle.close: python/values, python/export_array, python/cached_attributes, python/functions
  /** Releases the object, unless the same attribute has other users. */
  close(): void {
    if (this.#users > 1) {
      this.#users--;
      if (this.#function === 0n || --this.#uncalled > 0) return;
      this.#uncalled = 0;
      this.#isCalledAgain = false;
      if (this.#origin?.owner.isClosed) return;
    } else {
      this.#isClosed = true;
      this.#attributes = null;
    }
    const { object } = this.#reference;
    this.#reference.object = 0n;
    if (object === 0n) return;
    const { python } = this;
    // Python is inside a function of JavaScript: what called it may use the object.
    if (python.isCalledBack) return python.releaseLater(object);
    python.enter();
    try {
      python.releaseAndPoll(object);
    } finally {
      python.leave();
    }
  }

  // law python/Handle.lookUp: python/object, python/cached_attributes
  #lookUp(): bigint {
    if (this.#isClosed || this.#origin === null) throw new TypeError("Cannot use a closed PyObject");
    const { python } = this;
    const { owner, name } = this.#origin;
    if (owner.isClosed) throw new TypeError(`Cannot use ${name} again: it is a method of a closed PyObject`);
    const object = python.attribute(owner.object, name);
    if (functionOf(python, object, owner.object, python.kindOf(object)) !== this.#function) {
      python.release(object);
      throw new TypeError(
        `Cannot use ${name} again: the object has another method of this name now. Keep a method with $get("${name}")`,
      );
    }
    this.#isCalledAgain = true;
    this.#reference.object = object;
    return object;
  }
}

// law python/inspectsFrame: python/object, python/frame, python/leaks
/** Whether a callable may inspect the frame that it is called from. */
function inspectsFrame(python: Interpreter, object: bigint): boolean {
  if (python.kindOf(object) !== Kind.builtin) return true;
  const self = python.api.methods.PyCFunction_GetSelf(object);
  return self === python.helper("builtins") || self === python.helper("sys");
}

// law python/functionOf: python/object, python/frame, python/leaks
/**
 * The function behind a method of an object: a Python function, or the address of a C function. 0n for everything else,
 * and for functions of a module, which is never closed.
 */
function functionOf(python: Interpreter, object: bigint, self: bigint, kind: Kind): bigint {
  const { PyMethod_Self, PyMethod_Function, PyCFunction_GetSelf, PyCFunction_GetFunction } = python.api.methods;
  if (kind === Kind.method) return PyMethod_Self(object) === self ? PyMethod_Function(object) : 0n;
  const isMethod = kind === Kind.builtin && PyCFunction_GetSelf(object) === self &&
    python.kindOf(self) !== Kind.module;
  return isMethod ? PyCFunction_GetFunction(object) : 0n;
}

// law python/isMemberOfModule: python/cached_attributes
/**
 * Whether an object is a function, a class or a module in a module, which keeps it alive anyway. Instances of a
 * program's own classes are excluded, because they may hold large data.
 */
function isMemberOfModule({ python, object }: Handle, member: Handle, kind: Kind): boolean {
  if (kind < Kind.object || python.kindOf(object) !== Kind.module) return false;
  if (kind === Kind.object) return python.api.objects.PyCallable_Check(member.object) === 1;
  if (kind === Kind.module) return true;
  const self = kind === Kind.builtin ? python.api.methods.PyCFunction_GetSelf(member.object) : 0n;
  return self !== 0n && python.kindOf(self) === Kind.module; // a method keeps its object
}

/** A finalizer must not wait for Python's lock: the reference is released when the lock is next held. */
export const finalizer = new FinalizationRegistry<Reference>(({ python, object }) => {
  if (object !== 0n) python.releaseLater(object);
});

/** The key under which a `PyObject` exposes its handle, and its target stores it. */
export const behind: unique symbol = Symbol("handle");

/** The handle behind a `PyObject`; undefined for any other object. */
export function handleOf(value: object): Handle | undefined {
  const handle: unknown = Reflect.get(value, behind);
  // An object derived from a PyObject exposes the same handle.
  return handle instanceof Handle && handle.proxy === value ? handle : undefined;
}
