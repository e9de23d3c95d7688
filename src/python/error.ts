/**
 * Python exceptions.
 *
 * @module
 */
import type { PyObject } from "./object.ts";

/** V8's getter for the stack of an error; null before it was looked up. */
let readStack: ((this: unknown) => unknown) | undefined | null = null;

/**
 * V8's getter for the stack of an error. In Bun the stack is a value, and looking for it builds it, which takes half as
 * long as all other work for an exception. There the error is made without a stack, and a second error, which nothing
 * inspects, records where it was made.
 *
 * Not looked up at import: for an error made there, V8 parses the file again, 30 ms if everything is in one file.
 */
function stackReader(): ((this: unknown) => unknown) | undefined {
  if (readStack === null) readStack = Object.getOwnPropertyDescriptor(new Error(), "stack")?.get;
  return readStack;
}

/** The exception behind an error. */
export interface Exception {
  /** The object, always the same one; null if there is none. */
  readonly value: PyObject | null;
  /** Its address, borrowed; 0n if there is none, or it was released. */
  readonly address: bigint;
  /** Releases it, if it is owned: a cause is its effect's. */
  release?(): void;
  /** Drops its traceback, if it is owned, and unless something in Python has it. Needs the interpreter's lock. */
  dropTraces?(): void;
}

const noException: Exception = { value: null, address: 0n };

/** The exception behind an error. */
let behind: (error: PythonError) => Exception;

// law python/PythonError: python/generators
/**
 * A Python exception in JavaScript. The message is the last line that Python prints for it: `ValueError: bad value`.
 * Its `stack` begins with the Python frames and continues with the JavaScript frames that called them, even if the call
 * was made earlier, as by `py.async`; `cause` is what it was raised from (`raise ... from ...`): a `PythonError`, or
 * what a JavaScript function threw. `value` is the exception itself. Passed to Python, or thrown by a function that
 * Python called, a `PythonError` is that exception.
 */
export class PythonError extends Error {
  /** `PythonError`. */
  override readonly name: string = "PythonError";
  /** The exception's type, qualified by its module unless built in: `ValueError`, `torch.OutOfMemoryError`. */
  readonly type: string;
  #traceback: string | (() => string);
  readonly #exception: Exception;
  readonly #frames: () => string;
  /** The error that holds this one's JavaScript stack; undefined if this error holds it itself. */
  readonly #origin: Error | undefined;
  /** How many lines of that stack the program wants. */
  readonly #limit: number;
  /** The message at construction. */
  readonly #made: string;

  static {
    behind = (error) => error.#exception;
  }

  /**
   * Made by the interpreter's calls. A function argument is evaluated when its text is first read.
   *
   * @param frames lines of a stack, innermost first
   * @param calledAt if the call was made earlier, an error made at that time in the function that the program called
   */
  constructor(
    type: string,
    message: string,
    traceback: string | (() => string),
    frames: () => string = () => "",
    options: ErrorOptions = {},
    calledAt: Error | null = null,
    exception: Exception = noException,
  ) {
    const reader = stackReader();
    const limit = Reflect.get(Error, "stackTraceLimit") as unknown;
    let origin = calledAt ?? undefined;
    if (typeof limit === "number") {
      if (origin === undefined) Reflect.set(Error, "stackTraceLimit", limit + maxOwnFrames);
      if (reader === undefined) origin ??= new Error();
      if (origin !== undefined) Reflect.set(Error, "stackTraceLimit", 0);
    }
    super(message, options);
    if (typeof limit === "number") Reflect.set(Error, "stackTraceLimit", limit);
    this.type = type;
    this.#traceback = traceback;
    this.#exception = exception;
    this.#frames = frames;
    this.#origin = origin;
    this.#limit = typeof limit === "number" ? limit : 0;
    this.#made = message;
    // A class between this one and Error would cost V8 half a microsecond per error.
    if (reader !== undefined || Object.hasOwn(this, "stack")) Object.defineProperty(this, "stack", joinedStack);
  }

  /** Python's traceback, as Python prints it. Formatted when first read. */
  get traceback(): string {
    const traceback = this.#traceback;
    return typeof traceback === "string" ? traceback : this.#traceback = traceback();
  }

  /**
   * The exception, with its attributes: `error.value?.errno` of an OSError, `error.value?.exceptions` of a group. It
   * has no traceback any more, which would keep the variables of its frames alive, unless something else in Python has
   * the exception. Released with this error, once that has been collected, or by `$close()`. Null if Python reported a
   * failure without an exception, and if 256 later errors were caught, without awaiting anything, before this property
   * was first read.
   */
  get value(): PyObject | null {
    return this.#exception.value;
  }

  // law python/joinStack: python/generators
  /** The Python frames, then the JavaScript frames. Joined when first read. */
  override get stack(): string {
    const head = `${this.name}: ${this.message}`;
    if (!(#frames in this)) return head; // as with other errors, a Proxy of one has no frames
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
   * Takes the frames that V8 recorded, leaving none: Deno prints an uncaught error from them, and from its `stack` only
   * if there are none.
   */
  #takeFrames(): string[] {
    const reader = stackReader();
    const text = String(reader?.call(this) ?? "");
    // The head of the stack may have another name, and the message at construction or the current one.
    const said = [this.message, this.#made].find((one) => text.includes(one));
    const capture: unknown = Reflect.get(Error, "captureStackTrace");
    if (typeof capture === "function") {
      const limit: unknown = Reflect.get(Error, "stackTraceLimit");
      Reflect.set(Error, "stackTraceLimit", 0);
      capture.call(Error, this);
      Reflect.set(Error, "stackTraceLimit", limit);
      reader?.call(this); // reading makes V8 record the frames
    }
    return said === undefined ? [] : text.slice(text.indexOf(said) + said.length).split("\n").slice(1);
  }

  /** What a console shows: the JavaScript stack, and Python's traceback. */
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return `${this.stack}\n\n${this.traceback}`;
  }
}

export { behind as exceptionBehind };

/** The maximum number of Causeway frames between a program and the error. */
const maxOwnFrames = 12;

// law python/framesOfProgram: python/uncaught, python/async, python/generators
/**
 * The frames of a stack, without the leading ones of Causeway itself.
 *
 * Bun prints an uncaught error from its stack, but drops all lines from the first that names no function; and for a
 * call of a proxy it records only that there is one.
 */
function framesOfProgram(frames: readonly string[]): string[] {
  const lines = frames.filter((line) => line !== "    at unknown");
  const folder = ownFolder();
  const first = folder === null ? 0 : lines.findIndex((line) => !line.includes(folder));
  return (first < 0 ? lines : lines.slice(first)).map((line) => line.replace(placeAlone, inNoFunction));
}

const placeAlone = /^( {4}at (?:async )?)((?:\/|[\w.+-]+:)[^(]*:\d+:\d+)$/;
const inNoFunction = "$1<anonymous> ($2)";

/** The folder of Causeway's modules, as stacks show it; null if they may be bundled with the program's. */
function ownFolder(): string | null {
  const url = import.meta.url.replace("file://", "");
  return /^.*(?=\/src\/python\/error\.ts$)/.exec(url)?.[0].concat("/src/") ??
    /^.*\/causeway\/dist\//.exec(url)?.[0] ?? null;
}

const joinedStack = Object.getOwnPropertyDescriptor(PythonError.prototype, "stack") ?? {};
