/**
 * The Python exceptions behind errors that JavaScript received while called by Python: if the called function lets such
 * an error propagate, Python continues with the original exception. Elsewhere exceptions are not kept, because an
 * exception keeps the variables of all frames in its traceback alive.
 *
 * @module
 */
import type { Interpreter } from "./interpreter.ts";
import type { PythonError } from "./error.ts";

/** Exceptions of one call of JavaScript by Python, and of the enclosing ones. Needs the interpreter's lock. */
export class Raised {
  readonly #python: Interpreter;
  readonly #outer: Raised | null;
  readonly #exceptions = new Map<object, bigint>();

  constructor(python: Interpreter, outer: Raised | null) {
    this.#python = python;
    this.#outer = outer;
  }

  /** Keeps the exception behind an error; borrowed. */
  keep(error: PythonError, exception: bigint): void {
    this.#exceptions.set(error, this.#python.retain(exception));
  }

  /** The exception behind an error, borrowed; undefined if there is none. */
  behind(error: object): bigint | undefined {
    return this.#exceptions.get(error) ?? this.#outer?.behind(error);
  }

  /** Releases the exceptions. */
  close(): void {
    for (const exception of this.#exceptions.values()) this.#python.release(exception);
    this.#exceptions.clear();
  }
}
