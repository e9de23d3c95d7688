/**
 * Arrow structs in Python capsules: arrays, tables and streams of PyArrow, nanoarrow, Polars and others. They are
 * imported without a copy, by whichever protocol the object implements.
 *
 * @module
 */
import { cString } from "../ffi/mod.ts";
import {
  type ArrowField,
  type ArrowPointers,
  type ArrowStreamPointer,
  exportSchema,
  type OpenedArrow,
} from "../cdata/mod.ts";
import { ExchangeError } from "../order/mod.ts";
import { PythonError } from "./error.ts";
import { capsuleName } from "./take_capsule.ts";
import type { Interpreter } from "./interpreter.ts";
import type { Handle } from "./handle.ts";

/** The protocol methods, and the names of the capsules that each returns. */
const methods = {
  __arrow_c_device_array__: ["arrow_schema", "arrow_device_array"],
  __arrow_c_array__: ["arrow_schema", "arrow_array"],
  __arrow_c_device_stream__: ["arrow_device_array_stream"],
  __arrow_c_stream__: ["arrow_array_stream"],
} as const;

const methodNames = Object.keys(methods) as (keyof typeof methods)[]; // its own keys

/** The structs of an array. @param requested the requested field; null: any */
export function openArray(handle: Handle, requested: ArrowField | null): OpenedArrow<ArrowPointers> {
  return withCapsules(
    handle,
    requested,
    ["__arrow_c_device_array__", "__arrow_c_array__"],
    (method, [schema = 0n, array = 0n]) =>
      method === "__arrow_c_array__" ? { schema, array } : { schema, deviceArray: array },
  );
}

/** The struct of a stream. @param requested the requested field; null: any */
export function openStream(handle: Handle, requested: ArrowField | null): OpenedArrow<ArrowStreamPointer> {
  return withCapsules(
    handle,
    requested,
    ["__arrow_c_device_stream__", "__arrow_c_stream__"],
    (method, [stream = 0n]) => method === "__arrow_c_stream__" ? { stream } : { deviceStream: stream },
  );
}

function withCapsules<Pointers>(
  handle: Handle,
  requested: ArrowField | null,
  methodsToTry: readonly (keyof typeof methods)[],
  pointersOf: (method: keyof typeof methods, addresses: readonly bigint[]) => Pointers,
): OpenedArrow<Pointers> {
  const { python } = handle;
  return python.locked(() => {
    const method = methodsToTry.find((name) => python.hasProtocol(handle.object, name));
    if (method === undefined) {
      const other = methodNames.find((name) => python.hasProtocol(handle.object, name));
      throw new ExchangeError(
        `Cannot import ${python.show(handle.object)}: it has no ${methodsToTry.join("() and no ")}()${
          adviceFor(other)
        }`,
      );
    }
    const returned = callMethod(handle, method, requested);
    try {
      const pointers = pointersOf(method, unpack(python, returned, method));
      // The capsules release whatever has not been moved out of them.
      return { pointers, close: () => python.locked(() => python.release(returned)) };
    } catch (error) {
      python.release(returned);
      throw error;
    }
  });
}

/** Advice for an object that has one array where a stream is expected, or a stream where one array is. */
function adviceFor(method: keyof typeof methods | undefined): string {
  if (method === undefined) return "";
  return method.endsWith("stream__")
    ? ". It has a stream of arrays: import it with ArrowStream.from()"
    : ". It has one array: import it with ArrowArray.from()";
}

// law python/callMethod: python/arrow_capsules
function callMethod({ python, object }: Handle, name: string, requested: ArrowField | null): bigint {
  const method = python.check(python.api.objects.PyObject_GetAttrString(object, cString(name)));
  const schema = requested === null ? null : exportSchema(requested);
  try {
    if (schema === null) return python.check(python.api.calls.PyObject_CallNoArgs(method));
    return python.call(method, [
      python.check(python.api.capsules.PyCapsule_New(schema.address, capsuleName("arrow_schema"), 0n)),
    ]);
  } finally {
    python.release(method);
    schema?.release(); // unless the producer has released it, or has moved it out of the capsule
  }
}

/**
 * The addresses in one capsule, or in a tuple of several.
 *
 * @throws {ExchangeError} if there are no such capsules
 */
function unpack(python: Interpreter, returned: bigint, method: keyof typeof methods): bigint[] {
  const { capsules, tuples } = python.api;
  const names = methods[method];
  try {
    return names.map((name, i) => {
      const capsule = names.length === 1 ? returned : python.check(tuples.PyTuple_GetItem(returned, BigInt(i)));
      return python.check(capsules.PyCapsule_GetPointer(capsule, capsuleName(name)));
    });
  } catch (cause) {
    if (!(cause instanceof PythonError)) throw cause;
    const expected = names.length === 1 ? `a capsule ${names[0]}` : `a tuple of capsules ${names.join(" and ")}`;
    throw new ExchangeError(
      `Cannot import ${python.show(returned)}, which ${method}() returned: expected ${expected}`,
      {
        cause,
      },
    );
  }
}
