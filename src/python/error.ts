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
  /** Whose stack of JavaScript is this error's; undefined where that is its own. */
  readonly #origin: Error | undefined;
  /** How many lines of it the program wants. */
  readonly #limit: number;
  /** The message when the error was made. */
  readonly #made: string;

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
    calledAt: Error | null = null,
  ) {
    const reader = stackReader();
    const limit = Reflect.get(Error, "stackTraceLimit") as unknown;
    let origin = calledAt ?? undefined;
    if (typeof limit === "number") {
      if (origin === undefined) Reflect.set(Error, "stackTraceLimit", limit + mostOwnFrames);
      if (reader === undefined) origin ??= new Error();
      if (origin !== undefined) Reflect.set(Error, "stackTraceLimit", 0);
    }
    super(message, options);
    if (typeof limit === "number") Reflect.set(Error, "stackTraceLimit", limit);
    this.type = type;
    this.#traceback = traceback;
    this.#frames = frames;
    this.#origin = origin;
    this.#limit = typeof limit === "number" ? limit : 0;
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
    const head = `${this.name}: ${this.message}`;
    if (!(#frames in this)) return head; // as for other errors, a Proxy of one has no frames
    const origin = this.#origin;
    // The first frame of another error is always Causeway's: where it was made.
    const lines = origin === undefined ? this.#takeFrames() : String(origin.stack).split("\n").slice(2);
    const called = framesOfProgram(lines).slice(0, this.#limit);
    return this.stack = [head, this.#frames(), ...called].filter((part) => part !== "").join("\n");
  }

  override set stack(value: string) {
    Object.defineProperty(this, "stack", { value, writable: true, configurable: true });
  }

  // law python/PythonError.takeFrames: python/uncaught, python/generators
  /**
   * The frames that V8 has noted. Then there are none: Deno prints an error that nobody has caught from them, and only if
   * there are none from its `stack`.
   */
  #takeFrames(): string[] {
    const reader = stackReader();
    const text = String(reader?.call(this) ?? "");
    // The head of the stack may have another name, and the message of when it was made or of now.
    const said = [this.message, this.#made].find((one) => text.includes(one));
    const capture: unknown = Reflect.get(Error, "captureStackTrace");
    if (typeof capture === "function") {
      const limit: unknown = Reflect.get(Error, "stackTraceLimit");
      Reflect.set(Error, "stackTraceLimit", 0);
      capture.call(Error, this);
      Reflect.set(Error, "stackTraceLimit", limit);
      reader?.call(this); // it notes frames when it is read
    }
    return said === undefined ? [] : text.slice(text.indexOf(said) + said.length).split("\n").slice(1);
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
 * The frames of a stack, without Causeway's own that it begins with.
 *
 * Bun prints an error that nobody has caught from its stack, but leaves out all lines from one on that names no
 * function; and of a call of a proxy it knows nothing but that there is one.
 */
function framesOfProgram(frames: readonly string[]): string[] {
  const lines = frames.filter((line) => line !== "    at unknown");
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
