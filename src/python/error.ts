/**
 * Exceptions of Python.
 *
 * @module
 */

/**
 * A Python exception, in JavaScript. The message is the last line that Python prints of it: `ValueError: bad value`. Its
 * `stack` begins with the frames of Python, and goes on with those of JavaScript that have called it; `cause` is what it
 * was raised from (`raise ... from ...`), a `PythonError`, or what a function of JavaScript has thrown.
 */
export class PythonError extends Error {
  /** `PythonError`. */
  override readonly name: string = "PythonError";
  /** The exception's type, with its module unless it is built in: `ValueError`, `torch.OutOfMemoryError`. */
  readonly type: string;
  #traceback: string | (() => string);

  /**
   * Made by the interpreter's calls. What is a function is formatted when it is first read.
   *
   * @param frames lines of a stack, the innermost first
   */
  constructor(
    type: string,
    message: string,
    traceback: string | (() => string),
    frames: () => string = () => "",
    options: ErrorOptions = {},
  ) {
    super(message, options);
    this.type = type;
    this.#traceback = traceback;
    joinStack(this, frames);
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

// law python/joinStack: python/generators
/**
 * Puts the frames of Python above those of JavaScript. Each runtime has the stack as a property of the error itself,
 * which is therefore replaced: V8 by one that formats it when it is read, which stays so.
 */
function joinStack(error: Error, frames: () => string): void {
  const own = Object.getOwnPropertyDescriptor(error, "stack");
  const { message } = error;
  const define = (value: PropertyDescriptor) => Object.defineProperty(error, "stack", { configurable: true, ...value });
  define({
    get: () => {
      const known: unknown = own?.get === undefined ? own?.value : own.get.call(error);
      const text = String(known ?? "");
      // The head of the stack may have another name, and the message of when it was made or of now.
      const head = [error.message, message].find((one) => text.includes(one));
      const called = head === undefined ? "" : text.slice(text.indexOf(head) + head.length);
      const joined = [`${error.name}: ${error.message}`, frames()].filter((part) => part !== "").join("\n") + called;
      define({ value: joined, writable: true });
      return joined;
    },
    set: (value: unknown) => void define({ value, writable: true }),
  });
}
