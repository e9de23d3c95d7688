/**
 * The Python exceptions of errors that JavaScript received while called by Python. If the called function lets such an
 * error propagate, Python continues with the exception, so all of them keep their tracebacks until the function ends.
 *
 * @module
 */
import { type RetainedException, retainForTurn } from "./retained_exception.ts";

// law python/Raised: python/raised
/** Exceptions of one call of JavaScript by Python. Needs the interpreter's lock. */
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
