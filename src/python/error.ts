/**
 * Exceptions of Python.
 *
 * @module
 */

/** What V8 reads the stack of an error with; null before it was looked for. */
let readStack: ((this: unknown) => unknown) | undefined | null = null;

/**
 * What V8 reads the stack of an error with. In Bun the stack is a value, and whoever looks for one has it built, which
 * takes half as long as all else that is done for an exception. There an error is made without a stack of its own, and
 * another one, which nobody looks at, remembers where that was.
 *
 * It is not looked for at import: for an error that is made there V8 parses the file once more, 30 ms if all is in one.
 */
function stackReader(): ((this: unknown) => unknown) | undefined {
  if (readStack === null) readStack = Object.getOwnPropertyDescriptor(new Error(), "stack")?.get;
  return readStack;
}

// law python/PythonError: python/generators
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
  readonly #frames: () => string;
  /** Whose stack of JavaScript is this error's; undefined where that is its own. */
  readonly #origin: Error | undefined;
  /** The message when the error was made. */
  readonly #made: string;

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
    const reader = stackReader();
    const limit = reader === undefined ? Reflect.get(Error, "stackTraceLimit") as unknown : undefined;
    let origin: Error | undefined;
    if (typeof limit === "number") {
      Reflect.set(Error, "stackTraceLimit", limit + 1); // the first frame is this constructor's
      origin = new Error();
      Reflect.set(Error, "stackTraceLimit", undefined);
    }
    super(message, options);
    if (typeof limit === "number") Reflect.set(Error, "stackTraceLimit", limit);
    this.type = type;
    this.#traceback = traceback;
    this.#frames = frames;
    this.#origin = origin;
    this.#made = message;
    // A class between this one and Error would cost V8 half a microsecond for each error.
    if (reader !== undefined || Object.hasOwn(this, "stack")) Object.defineProperty(this, "stack", joinedStack);
  }

  /** Python's traceback, as Python prints it. It is formatted when it is first read. */
  get traceback(): string {
    const traceback = this.#traceback;
    return typeof traceback === "string" ? traceback : this.#traceback = traceback();
  }

  // law python/joinStack: python/generators
  /** The frames of Python, and those of JavaScript. They are joined when they are first read. */
  override get stack(): string {
    const { message } = this;
    const head = `${this.name}: ${message}`;
    if (!(#frames in this)) return head; // as for other errors, a Proxy of one has no frames
    const origin = this.#origin;
    let called: string;
    if (origin === undefined) {
      const text = String(stackReader()?.call(this) ?? "");
      // The head of the stack may have another name, and the message of when it was made or of now.
      const said = [message, this.#made].find((one) => text.includes(one));
      called = said === undefined ? "" : text.slice(text.indexOf(said) + said.length);
    } else {
      called = (origin.stack ?? "").split("\n").slice(2).map((line) => `\n${line}`).join("");
    }
    return this.stack = [head, this.#frames()].filter((part) => part !== "").join("\n") + called;
  }

  override set stack(value: string) {
    Object.defineProperty(this, "stack", { value, writable: true, configurable: true });
  }

  /** What a console shows: the stack of JavaScript, and Python's traceback. */
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return `${this.stack}\n\n${this.traceback}`;
  }
}

const joinedStack = Object.getOwnPropertyDescriptor(PythonError.prototype, "stack") ?? {};
