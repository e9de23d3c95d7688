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
  /** Python's traceback, as Python prints it. */
  readonly traceback: string;

  /** Made by the interpreter's calls. */
  constructor(type: string, message: string, traceback: string) {
    super(message);
    this.type = type;
    this.traceback = traceback;
  }
}
