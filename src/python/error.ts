/**
 * Exceptions of Python.
 *
 * @module
 */

/**
 * A Python exception, in JavaScript. The message is the last line that Python prints of it: `ValueError: bad value`.
 */
export class PythonError extends Error {
  /** `PythonError`. */
  override readonly name: string = "PythonError";
  /** The exception's type, with its module unless it is built in: `ValueError`, `torch.OutOfMemoryError`. */
  readonly type: string;
  #traceback: string | (() => string);

  /** Made by the interpreter's calls. A traceback that is a function is formatted when it is first read. */
  constructor(type: string, message: string, traceback: string | (() => string)) {
    super(message);
    this.type = type;
    this.#traceback = traceback;
  }

  /** Python's traceback, as Python prints it. It is formatted when it is first read. */
  get traceback(): string {
    const traceback = this.#traceback;
    return typeof traceback === "string" ? traceback : this.#traceback = traceback();
  }

  /** What a console shows: the stack of JavaScript, and Python's traceback. */
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return `${this.stack ?? this.message}\n\n${this.traceback}`;
  }
}
