/**
 * Converts Python exceptions to JavaScript errors.
 *
 * All functions here need the interpreter's lock.
 *
 * @module
 */
import { NativeArena, type Out } from "../ffi/mod.ts";
import { copyOut } from "./copy_out.ts";
import { type Exception, PythonError } from "./error.ts";
import { handleOf } from "./handle.ts";
import { RetainedException, retainForTurn } from "./retained_exception.ts";
import type { Interpreter } from "./interpreter.ts";
import type { PyObject } from "./object.ts";

// law python/pendingError: python/object, python/frame, python/leaks
/**
 * Takes and clears the pending exception.
 *
 * @returns a {@linkcode PythonError}, or the value that a JavaScript function threw
 */
export function pendingError(python: Interpreter): unknown {
  const { errors } = python.api;
  if (errors.PyErr_Occurred() === 0n) {
    return new PythonError("SystemError", "SystemError: a call failed without setting an exception", "");
  }
  return errorOf(python, takeException(python));
}

// law python/errorOf: python/functions, python/leaks, python/raised
/**
 * The error for an exception; adopts the reference.
 *
 * @param calledAt the call site, if the call was made earlier
 */
export function errorOf(python: Interpreter, exception: bigint, calledAt?: Error): unknown {
  const { errors } = python.api;
  if (python.isExactly(exception, "JavaScriptError")) {
    const thrown = python.javascript.thrownFor(exception);
    python.release(exception);
    return thrown;
  }
  const { raised } = python;
  const isCaughtNow = raised === null && calledAt === undefined;
  const outline = python.callWithOne(
    python.helper(isCaughtNow ? "brief_and_drop_traces" : "brief_exception"),
    exception,
  );
  const retained = new RetainedException(python, exception);
  if (raised !== null) raised.retain(retained); // Python may continue with it
  else if (isCaughtNow) retainForTurn(retained);
  else retained.releaseWithError(); // many calls may end in one turn
  if (outline === 0n) {
    errors.PyErr_Clear();
    return new PythonError("Exception", "An exception that cannot be described", "", () => "", {}, null, retained);
  }
  try {
    return described(python, outlineOf(python, outline), calledAt ?? null, retained);
  } finally {
    python.release(outline);
  }
}

// law python/CauseOf: python/raised
/** What an exception was raised from. */
class CauseOf implements Exception {
  readonly #effect: Exception;
  #value: PyObject | null | undefined;

  constructor(effect: Exception) {
    this.#effect = effect;
  }

  get value(): PyObject | null {
    if (this.#value !== undefined) return this.#value;
    const isThere = this.#effect.address !== 0n;
    return this.#value = isThere ? this.#effect.value?.$get("__cause__") ?? null : null;
  }

  get address(): bigint {
    return this.value === null ? 0n : handleOf(this.value)?.reference ?? 0n;
  }
}

/** The result of outline_exception() in guest/exceptions.py: lists of strings and None, and an error's key. */
type Outline = [
  type: string,
  message: string,
  traceback: string | null,
  last: string | null,
  places: string,
  cause: Outline | number | null,
];

/** The result of brief_exception(): an outline, or its three texts that are not None joined into one. */
function outlineOf(python: Interpreter, brief: bigint): Outline {
  const outline = copyOut(python, brief, () => null) as Outline | string; // it returns nothing else
  if (typeof outline !== "string") return outline;
  const [type = "", message = "", places = ""] = outline.split("\0");
  return [type, message, null, message, places, null];
}

// law python/described: python/generators
function described(
  python: Interpreter,
  [type, message, traceback, last, places, cause]: Outline,
  calledAt: Error | null,
  exception: Exception,
): PythonError {
  return new PythonError(
    type,
    type === "ModuleNotFoundError" ? message + whereMissing(python, message) : message,
    traceback ?? (() => formatted(python, "format_traceback", [last ?? "", places])),
    () => formatted(python, "format_frames", [places]),
    cause === null ? {} : {
      cause: typeof cause === "number"
        ? python.javascript.thrownWith(cause)
        : described(python, cause, calledAt, new CauseOf(exception)),
    },
    calledAt,
    exception,
  );
}

// law python/whereMissing: python/no_module
/** Names the Python that lacks a module: users with several may have installed it into another one. */
function whereMissing(python: Interpreter, message: string): string {
  if (!message.startsWith("ModuleNotFoundError: No module named ")) return ""; // a program's own message
  const { objects, errors } = python.api;
  const executable = objects.PyObject_GetAttr(python.helper("sys"), python.name("executable"));
  if (executable === 0n) errors.PyErr_Clear();
  const program = executable === 0n ? null : copyOut(python, executable, () => null);
  if (executable !== 0n) python.release(executable);
  return typeof program === "string" && program !== ""
    ? `\nThis Python is ${program}: install into it with "${program} -m pip install". CAUSEWAY_PYTHON ` +
      "or Python.open({ home }) selects another."
    : "";
}

/** A traceback as Python prints it, or its frames in JavaScript's format. */
function formatted(
  python: Interpreter,
  helper: "format_traceback" | "format_frames",
  texts: readonly string[],
): string {
  return python.locked(() => {
    const text = python.callHelper(helper, texts.map((one) => python.text(one)));
    try {
      return python.readText(text);
    } finally {
      python.release(text);
    }
  });
}

/** Where PyErr_Fetch() stores its results: the type, the exception and the traceback. */
let taken: readonly [Out<"ptr">, Out<"ptr">, Out<"ptr">] | undefined;

// law python/takeException: python/object, python/frame, python/leaks
/** Takes and clears the pending exception, which there is, with its traceback; a new reference. */
export function takeException(python: Interpreter): bigint {
  const { errors, objects } = python.api;
  if (errors.PyErr_GetRaisedException !== null) return errors.PyErr_GetRaisedException();
  const arena = new NativeArena();
  const [type, value, traceback] = taken ??= [arena.out("ptr"), arena.out("ptr"), arena.out("ptr")];
  errors.PyErr_Fetch(type.$address, value.$address, traceback.$address);
  errors.PyErr_NormalizeException(type.$address, value.$address, traceback.$address);
  if (traceback.value !== 0n) {
    objects.PyObject_SetAttr(value.value, python.name("__traceback__"), traceback.value);
    python.release(traceback.value);
  }
  python.release(type.value);
  return value.value;
}
