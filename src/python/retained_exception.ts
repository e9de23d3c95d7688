/**
 * How long the exception of an error is retained: until the error has been collected, which JavaScript reports between
 * turns of the event loop. A program that catches a million errors one after the other should not keep a million
 * exceptions, so of those that it catches without awaiting anything, outside functions that Python calls, only the last
 * are kept.
 *
 * @module
 */
import type { Exception } from "./error.ts";
import { finalizer, handleOf, type Reference } from "./handle.ts";
import type { Interpreter } from "./interpreter.ts";
import type { PyObject } from "./object.ts";

// law python/RetainedException: python/raised
/** An exception that an error retains. */
export class RetainedException implements Exception {
  readonly #reference: Reference;
  #value: PyObject | null = null;

  /** Adopts the reference. */
  constructor(python: Interpreter, object: bigint) {
    this.#reference = { python, object };
  }

  get value(): PyObject | null {
    const object = this.#take();
    if (object !== 0n) this.#value = this.#reference.python.wrap(object);
    return this.#value;
  }

  get address(): bigint {
    const handle = this.#value === null ? undefined : handleOf(this.#value);
    return handle === undefined ? this.#reference.object : handle.reference;
  }

  release(): void {
    const at = ofTurn.lastIndexOf(this);
    if (at >= 0) ofTurn.splice(at, 1);
    const object = this.#take();
    if (object !== 0n) this.#reference.python.releaseLater(object);
  }

  /**
   * Releases the exception at once, since what is left to release keeps the next call from machine code; but not inside
   * a function that Python has called: what called it may use the exception.
   */
  forget(): void {
    const { python } = this.#reference;
    const object = this.#take();
    if (object === 0n) return;
    if (python.isCalledBack) python.releaseLater(object);
    else python.release(object);
  }

  /** Drops the tracebacks of the exception and of those behind it, unless something in Python has them. */
  dropTraces(): void {
    const { python } = this.#reference;
    const { address } = this;
    if (address === 0n) return;
    const none = python.callWithOne(python.helper("drop_traces_if_lone"), address);
    if (none === 0n) python.api.errors.PyErr_Clear(); // no memory is left
    else python.release(none);
  }

  /** Releases the exception when its error has been collected. */
  releaseWithError(): void {
    finalizer.register(this, this.#reference);
  }

  /** The exception, which is then no longer owned; 0n if it was taken before. */
  #take(): bigint {
    const { object } = this.#reference;
    this.#reference.object = 0n;
    return object;
  }
}

/** How many exceptions are kept of those caught one after the other. */
const mostOfTurn = 256;

/** The last of them, oldest first. */
const ofTurn: RetainedException[] = [];

// law python/retainForTurn: python/raised
/**
 * Keeps an exception while it is one of the last, and from the next microtask on until its error was collected. Needs
 * the interpreter's lock.
 */
export function retainForTurn(exception: RetainedException): void {
  if (ofTurn.length === 0) queueMicrotask(endTurn);
  if (ofTurn.length === mostOfTurn) ofTurn.shift()?.forget();
  ofTurn.push(exception);
}

/** Leaves the exceptions of a turn to the collector, which takes longer than all else that is done for one. */
function endTurn(): void {
  for (const exception of ofTurn) exception.releaseWithError();
  ofTurn.length = 0;
}

// law python/Raised: python/raised
/**
 * The exceptions of errors that JavaScript received in one function that Python called. If the function lets such an
 * error propagate, Python continues with the exception, so all of them keep their tracebacks until the function ends.
 * Needs the interpreter's lock.
 */
export class Raised {
  readonly #exceptions: RetainedException[] = [];

  /** Keeps an exception with its traceback until the function ends. */
  retain(exception: RetainedException): void {
    this.#exceptions.push(exception);
  }

  /** Drops the tracebacks of the exceptions that Python does not have, such as the one that it continues with. */
  close(): void {
    for (const exception of this.#exceptions) {
      exception.dropTraces();
      retainForTurn(exception);
    }
  }
}
