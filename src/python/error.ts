/**
 * Exceptions of Python.
 *
 * @module
 */

// law python/PythonError: python/generators
/**
 * A Python exception, in JavaScript. The message is the last line that Python prints of it: `ValueError: bad value`. Its
 * `stack` begins with the frames of Python, and goes on with those of JavaScript that have called it, also where that
 * was long ago, as by `py.async`; `cause` is what it was raised from (`raise ... from ...`), a `PythonError`, or what a
 * function of JavaScript has thrown.
 */
export class PythonError extends Error {
  /** `PythonError`. */
  override readonly name: string = "PythonError";
  /** The exception's type, with its module unless it is built in: `ValueError`, `torch.OutOfMemoryError`. */
  readonly type: string;
  #traceback: string | (() => string);
  readonly #frames: () => string;
  /**
   * Whose stack of JavaScript is this error's, which has none of its own: it would be built in Bun by whoever looks for
   * one, which takes half as long as all else that is done for an exception, and Deno prints an error that nobody has
   * caught from the frames that it has noted, if there are any, and only else from its `stack`. Undefined if the program
   * wants no stacks.
   */
  readonly #origin: Error | undefined;
  /** How many lines of it the program wants. */
  readonly #limit: number;

  /**
   * Made by the interpreter's calls. What is a function is formatted when it is first read.
   *
   * @param frames lines of a stack, the innermost first
   * @param calledAt if the call was made long ago, an error that was made then, in the function that the program has
   *   called
   */
  constructor(
    type: string,
    message: string,
    traceback: string | (() => string),
    frames: () => string = () => "",
    options: ErrorOptions = {},
    calledAt?: Error,
  ) {
    const limit = Reflect.get(Error, "stackTraceLimit") as unknown;
    let origin = calledAt;
    if (typeof limit === "number") {
      if (origin === undefined) {
        Reflect.set(Error, "stackTraceLimit", limit + mostOwnFrames);
        origin = new Error();
      }
      Reflect.set(Error, "stackTraceLimit", 0);
    }
    super(message, options);
    if (typeof limit === "number") Reflect.set(Error, "stackTraceLimit", limit);
    this.type = type;
    this.#traceback = traceback;
    this.#frames = frames;
    this.#origin = origin;
    this.#limit = typeof limit === "number" ? limit : 0;
    // A class between this one and Error would cost V8 half a microsecond for each error.
    if (Object.hasOwn(this, "stack")) Object.defineProperty(this, "stack", joinedStack);
  }

  /** Python's traceback, as Python prints it. It is formatted when it is first read. */
  get traceback(): string {
    const traceback = this.#traceback;
    return typeof traceback === "string" ? traceback : this.#traceback = traceback();
  }

  // law python/joinStack: python/generators
  /** The frames of Python, and those of JavaScript. They are joined when they are first read. */
  override get stack(): string {
    const head = `${this.name}: ${this.message}`;
    if (!(#frames in this)) return head; // as for other errors, a Proxy of one has no frames
    const called = framesOfProgram(String(this.#origin?.stack ?? "")).slice(0, this.#limit);
    return this.stack = [head, this.#frames(), ...called].filter((part) => part !== "").join("\n");
  }

  override set stack(value: string) {
    Object.defineProperty(this, "stack", { value, writable: true, configurable: true });
  }

  /** What a console shows: the stack of JavaScript, and Python's traceback. */
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return `${this.stack}\n\n${this.traceback}`;
  }
}

/** How many frames of Causeway's there are at most between a program and the error. */
const mostOwnFrames = 12;

// law python/framesOfProgram: python/uncaught, python/async, python/generators
/**
 * The frames of a stack, without Causeway's own that it begins with. The first one is always.
 *
 * Bun prints an error that nobody has caught from its stack, but leaves out all lines from one on that names no
 * function; and of a call of a proxy it knows nothing but that there is one.
 */
function framesOfProgram(stack: string): string[] {
  const lines = stack.split("\n").slice(2).filter((line) => line !== "    at unknown");
  const folder = ownFolder();
  const first = folder === null ? 0 : lines.findIndex((line) => !line.includes(folder));
  return (first < 0 ? lines : lines.slice(first)).map((line) => line.replace(placeAlone, inNoFunction));
}

const placeAlone = /^( {4}at (?:async )?)((?:\/|[\w.+-]+:)[^(]*:\d+:\d+)$/;
const inNoFunction = "$1<anonymous> ($2)";

/** The folder of Causeway's modules, as stacks have it; null if they may be in one file with the program's. */
function ownFolder(): string | null {
  const url = import.meta.url.replace("file://", "");
  return /^.*(?=\/src\/python\/error\.ts$)/.exec(url)?.[0].concat("/src/") ??
    /^.*\/causeway\/dist\//.exec(url)?.[0] ?? null;
}

const joinedStack = Object.getOwnPropertyDescriptor(PythonError.prototype, "stack") ?? {};
