/**
 * The Python exceptions of errors that JavaScript received while called by Python: if the called function lets such an
 * error propagate, Python continues with the exception, which still has its traceback. The tracebacks of all others are
 * dropped when the function ends, because a traceback keeps the variables of all its frames alive.
 *
 * @module
 */
import type { Interpreter } from "./interpreter.ts";

// law python/Raised: python/raised
/** Exceptions of one call of JavaScript by Python. Needs the interpreter's lock. */
export class Raised {
  readonly #python: Interpreter;
  readonly #exceptions = new Set<bigint>();

  constructor(python: Interpreter) {
    this.#python = python;
  }

  /** Keeps the traceback of an exception, borrowed, until the function ends. */
  keep(exception: bigint): void {
    if (!this.#exceptions.has(exception)) this.#exceptions.add(this.#python.retain(exception));
  }

  /** Notes that Python continues with an exception. */
  continueWith(exception: bigint): void {
    if (this.#exceptions.delete(exception)) this.#python.release(exception);
  }

  /** Drops the tracebacks of the exceptions that Python does not continue with. */
  close(): void {
    const python = this.#python;
    for (const exception of this.#exceptions) python.release(python.callHelper("drop_traces", [exception])); // adopts
    this.#exceptions.clear();
  }
}
