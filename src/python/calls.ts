/**
 * Calls of Python objects: by machine code where it can make the arguments, else by CPython's functions.
 *
 * @module
 */
import type { ImportOptions } from "../dlpack/mod.ts";
import { isPlainObject } from "../layout/mod.ts";
import { StridedMemoryView } from "../view/mod.ts";
import { Status } from "./call_programs.ts";
import { PythonError } from "./error.ts";
import { pendingError } from "./exception.ts";
import { type Handle, handleOf } from "./handle.ts";
import type { Interpreter } from "./interpreter.ts";
import { Keywords } from "./keywords.ts";
import { Kind } from "./kinds.ts";
import { type NativeCalls, Taken } from "./native_calls.ts";
import { toPython } from "./to_python.ts";

/** Converts the result of a call; adopts the reference. */
type ConvertResult = (python: Interpreter, object: bigint, options: ImportOptions, kind?: Kind) => unknown;

// law python/call: python/native_calls, python/cached_attributes, python/object
/**
 * Calls an object.
 *
 * @param convert converts the result
 */
export function call(handle: Handle, args: readonly unknown[], convert: ConvertResult): unknown {
  const { python } = handle;
  const native = python.nativeCalls;
  const inspects = handle.isKnownToInspectFrame;
  const object = handle.reference;
  if (native === null || inspects === null || object === 0n) return callByParts(handle, args, convert);
  const taken = native.take(args) ? Taken.yes : takeObjects(native, args);
  if (taken === Taken.no) return callByParts(handle, args, convert);
  const afterwards = handle.takeForCall();
  const status = python.runNatively(
    native,
    inspects || taken === Taken.framed
      ? native.prepareFramedCall(object, afterwards)
      : native.prepareCall(object, afterwards),
  );
  if (status < Status.object) {
    const value = native.valueOf(status);
    python.pollWithoutLock();
    return value;
  }
  let error: unknown; // thrown at the end: each handler that it passes costs a microsecond
  try {
    if (status === Status.object) {
      const { result } = native;
      python.poll();
      const kind = python.kindOf(result);
      if (kind === Kind.float) readAsFloat(python, native, result);
      return convert(python, result, importOptionsFor(args, handle.options), kind);
    }
    error = errorOfCall(python, status, native, afterwards);
  } finally {
    python.leave();
  }
  throw withHint(error, args);
}

function takeObjects(native: NativeCalls, args: readonly unknown[]): Taken {
  const last = args[args.length - 1];
  const isNamed = typeof last === "object" && last instanceof Keywords;
  return isNamed ? native.takeObjects(args.slice(0, -1), last.values) : native.takeObjects(args, null);
}

// law python/readAsFloat: python/native_calls
/** Lets machine code read further results of this object's type, which is derived from float. */
function readAsFloat(python: Interpreter, native: NativeCalls, object: bigint): void {
  const type = python.typeOf(object);
  if (python.retainsType(type)) native.readAsFloat(type);
}

/** The error of a call that failed or was not made. */
function errorOfCall(python: Interpreter, status: Status, native: NativeCalls, afterwards: bigint): unknown {
  const unused = status === Status.notMade ? [...native.made, afterwards] : [];
  const error = pendingError(python);
  for (const one of unused) if (one !== 0n) python.release(one);
  python.poll();
  return error;
}

/** Calls an object by CPython's functions, and converts the result. */
export function callByParts<T>(
  handle: Handle,
  args: readonly unknown[],
  convert: (python: Interpreter, object: bigint, options: ImportOptions) => T,
): T {
  const { python } = handle;
  python.enter();
  try {
    return convert(python, rawCall(handle, args), importOptionsFor(args, handle.options));
  } finally {
    python.leave();
  }
}

// law python/withHint: python/object, python/frame, python/leaks
/** The error of a call, with a hint on how to pass keyword arguments if that may be the cause. */
function withHint(error: unknown, args: readonly unknown[]): unknown {
  if (error instanceof PythonError && mayTakeForKeywords.has(error.type)) {
    error.message += keywordsHint(args[args.length - 1]);
  }
  return error;
}

/** Where device arrays in a call's result will be used: the stream of the first device view among its arguments. */
function importOptionsFor(args: readonly unknown[], options: ImportOptions): ImportOptions {
  if (options.stream !== undefined) return options;
  for (let i = 0; i < args.length; i++) {
    const view = args[i];
    if (typeof view !== "object" || !(view instanceof StridedMemoryView) || view.device === null) continue;
    return view.stream === null ? { device: view.device } : { stream: view.stream };
  }
  return options;
}

// law python/rawCall: python/object, python/frame, python/leaks
function rawCall(handle: Handle, args: readonly unknown[]): bigint {
  const { python } = handle;
  let result = 0n;
  let error: unknown; // thrown at the end: each handler that it passes costs a microsecond
  try {
    handle.withObject((object) => {
      const { inspectsFrame } = handle; // first: it may be closed by then
      const [objects, named] = argumentsOf(python, args);
      // A function that does not inspect its caller's frame may call an argument that does.
      const isFramed = inspectsFrame || named !== 0n || hasPyObject(args);
      result = isFramed ? python.tryCallFramed(object, objects, named) : python.tryCall(object, objects);
      if (result === 0n) error = pendingError(python);
    });
  } finally {
    handle.endCall();
    python.poll();
  }
  if (result !== 0n) return result;
  throw withHint(error, args);
}

// law python/argumentsOf: python/object, python/async
/** References to arguments: those by position, and a dict of those by name, or 0n. */
function argumentsOf(python: Interpreter, args: readonly unknown[]): [byPosition: bigint[], byName: bigint] {
  const last = args[args.length - 1];
  const isNamed = typeof last === "object" && last instanceof Keywords;
  const objects = toPython(python, isNamed ? [...args.slice(0, -1), { ...last.values }] : args);
  return [objects, isNamed ? objects.pop() ?? 0n : 0n];
}

function hasPyObject(values: readonly unknown[]): boolean {
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (typeof value === "function" && handleOf(value) !== undefined) return true; // every PyObject is a function
  }
  return false;
}

/** Exceptions raised by functions that were passed a dict where they expect something else. */
const mayTakeForKeywords = new Set(["TypeError", "ValueError", "AttributeError", "KeyError"]);

/** Explains how to pass keyword arguments, if the last argument looks as if it was meant as such. */
function keywordsHint(last: unknown): string {
  if (!isPlainObject(last) || Object.keys(last).length === 0) return "";
  const names = Object.keys(last).join(", ");
  return `\nThe last argument, { ${names} }, is a dict to Python. Arguments by name are given as kwargs({ ${names} }).`;
}

/**
 * Begins a call of an object on a Python thread.
 *
 * @param calledAt made at the program's call site, for the stack of an error
 */
export function begin(
  handle: Handle,
  args: readonly unknown[],
  signal: AbortSignal | undefined,
  calledAt: Error,
): Promise<unknown> {
  const { python } = handle;
  return python.locked(() => {
    signal?.throwIfAborted();
    const began = handle.withObject((object) => {
      const [objects, named] = argumentsOf(python, args);
      const options = importOptionsFor(args, handle.options);
      return python.javascript.begin(object, objects, named, { options, signal, calledAt });
    });
    handle.endCall();
    return began.catch((error: unknown) => {
      throw withHint(error, args);
    });
  });
}
