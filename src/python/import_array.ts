/**
 * Python arrays in JavaScript, without a copy. All functions here need the interpreter's lock, but for `viewOf`.
 *
 * @module
 */
import { Py_TPFLAGS } from "../../bindings/cpython.ts";
import { cString, readCString } from "../ffi/mod.ts";
import { DType, show } from "../layout/mod.ts";
import { arrowArraySource, type ForeignArrow } from "../cdata/mod.ts";
import { ExchangeError } from "../order/mod.ts";
import { DlpackTensor, fromArrayInterface, fromCudaArrayInterface, type ImportOptions } from "../dlpack/mod.ts";
import { makeView, StridedMemoryView } from "../view/mod.ts";
import { openArray } from "./arrow_capsules.ts";
import { capsuleName } from "./take_capsule.ts";
import { copyOut } from "./copy_out.ts";
import { importByExchangeApi } from "./dlpack_exchange_api.ts";
import { type BufferDescription, describeBuffer, hasBuffer, importBuffer } from "./import_buffer.ts";
import { importTensor } from "./import_tensor.ts";
import { exceptionBehind, PythonError } from "./error.ts";
import { Handle } from "./handle.ts";
import type { Interpreter } from "./interpreter.ts";
import { Kind, notSimple } from "./kinds.ts";

/** Whether an object is an array: its type implements one of the array protocols. */
export function isArray(python: Interpreter, object: bigint): boolean {
  return python.isArrayType(BigInt(python.typeOf(object)));
}

// law python/offersArray: python/instance_protocols
/**
 * Whether an object offers one of the array protocols itself, like a namespace, though its type does not. The
 * attributes of a class are those of its instances.
 */
function offersArray(python: Interpreter, object: bigint): boolean {
  if (python.typeFlags(object) & Py_TPFLAGS.TYPE_SUBCLASS) return false;
  return ["__dlpack__", "__cuda_array_interface__", "__array_interface__"].some((name) =>
    offers(python, object, name, true)
  );
}

/** @param isAsked whether attributes of the object itself count, not only those of its type */
function offers(python: Interpreter, object: bigint, name: string, isAsked: boolean): boolean {
  return python.typeHas(object, name) ||
    (isAsked && python.api.objects.PyObject_HasAttrString(object, cString(name)) === 1);
}

/** Members of arrays of quantities, such as those of Astropy and unyt: their numbers alone would be other lengths. */
const membersOfQuantities = ["unit", "units"];

// law python/viewOf: python/order
/** Views a Python array. For `StridedMemoryView.from`. By default it is used where `Python.open` says. */
export function viewOf(handle: Handle, given: ImportOptions): StridedMemoryView {
  const { python } = handle;
  const options = given.stream === undefined && given.device === undefined ? { ...given, ...handle.options } : given;
  return python.locked(() => {
    const { object } = handle;
    const hasArrow = () =>
      ["__arrow_c_device_array__", "__arrow_c_array__"].some((name) => python.hasProtocol(object, name));
    if (isArray(python, object)) {
      try {
        return importArray(python, object, options, python.kindOf(object), true);
      } catch (error) {
        // PyArrow refuses to export some arrays by DLPack that it exports by Arrow: booleans, dates, fixed-size lists.
        if (!(error instanceof PythonError) || !hasArrow()) throw error;
        exceptionBehind(error).release?.();
      }
    }
    if (hasArrow()) {
      const source: Pick<ForeignArrow, typeof arrowArraySource> = {
        [arrowArraySource]: (requested) => openArray(handle, requested),
      };
      return StridedMemoryView.fromArrowDevice(source, options);
    }
    if (hasBuffer(python, object)) return importBuffer(python, object);
    if (offersArray(python, object)) return importArray(python, object, options, python.kindOf(object), true);
    const way = python.hasProtocol(object, "__arrow_c_stream__")
      ? "ArrowStream.from views its columns, or convert it with its to_numpy()"
      : "numpy.asarray(it) may be one";
    throw new TypeError(`Cannot view ${python.show(object)}: expected a Python array. ${way}`);
  });
}

// law python/importIfPossible: python/values, python/export_array
/**
 * An array as a view. An array that cannot be exported, such as a tensor that needs a gradient, is an object like any
 * other.
 */
export function importIfPossible(python: Interpreter, object: bigint, options: ImportOptions, kind: Kind): unknown {
  try {
    return importArray(python, object, options, kind, false);
  } catch (error) {
    if (error instanceof PythonError) exceptionBehind(error).release?.();
    else if (!(error instanceof ExchangeError)) throw error;
    return notSimple;
  }
}

// law python/importArray: python/export_array
/**
 * Imports a Python array as a view of the same memory. The view owns it: the array is released when the view is closed
 * or collected.
 *
 * @param object borrowed
 * @param isAsked whether a program has asked for a view. Other results stay objects if they are more than arrays:
 *   images of Pillow, whose array interfaces have new bytes each time, and quantities, which have a unit
 * @throws {ExchangeError} if it cannot be imported as it is
 * @throws {PythonError} if its owner refuses to export it
 */
function importArray(
  python: Interpreter,
  object: bigint,
  options: ImportOptions,
  kind: Kind,
  isAsked: boolean,
): StridedMemoryView {
  if (kind === Kind.numpyArray) {
    const view = importFromNumpy(python, object, options);
    if (view !== null) return view;
  } else if (!isAsked && membersOfQuantities.some((name) => python.typeHas(object, name))) {
    throw new ExchangeError(`${python.show(object)} is more than an array`);
  }
  if (!offers(python, object, "__dlpack__", isAsked)) return importDescribed(python, object, options, isAsked);
  try {
    return importFromProducer(python, object, options);
  } catch (error) {
    // Some owners refuse to export by DLPack what they describe by an interface: read-only arrays, ml_dtypes types.
    if (!(error instanceof PythonError) || !offers(python, object, "__array_interface__", isAsked)) throw error;
    exceptionBehind(error).release?.();
    return importDescribed(python, object, options, isAsked);
  }
}

// law python/importFromNumpy: python/numpy_imports, python/leaks
/**
 * Imports a NumPy array, which is on the host, as a versioned tensor if NumPy supports them.
 *
 * @returns null if it does not export one: the other ways of importing it report why
 */
function importFromNumpy(python: Interpreter, object: bigint, options: ImportOptions): StridedMemoryView | null {
  const { capsules, errors } = python.api;
  const capsule = python.callMethod(object, "__dlpack__", python.helper("newest_version"), python.helper("by_version"));
  if (capsule === 0n) {
    errors.PyErr_Clear();
    return null;
  }
  try {
    const managedTensorVersioned = capsules.PyCapsule_GetPointer(capsule, capsuleName("dltensor_versioned"));
    if (managedTensorVersioned === 0n) {
      errors.PyErr_Clear();
      return null;
    }
    capsules.PyCapsule_SetName(capsule, capsuleName("used_dltensor_versioned"));
    return importTensor(managedTensorVersioned, options);
  } finally {
    python.release(capsule);
  }
}

function importFromProducer(python: Interpreter, object: bigint, options: ImportOptions): StridedMemoryView {
  const taken = importByExchangeApi(python, object, options);
  if (taken !== null) return taken;
  const capsule = python.callHelper("request_capsule", [python.retain(object), streamForProducer(python, options)]);
  try {
    const tensor = takeFromCapsule(python, capsule);
    try { // by `using` V8 takes a tenth of a microsecond longer, of about one for a small array
      const view = StridedMemoryView.fromDlpack(tensor, options); // takes the tensor, or leaves closing it to us
      return tensor.version === null && isImmutable(python, object) ? readOnly(view) : view;
    } finally {
      tensor.close();
    }
  } finally {
    python.release(capsule);
  }
}

/** Where the classes of immutable arrays are defined whose tensors, without a version, cannot say so. */
const modulesOfImmutable = /^(jax|jaxlib|tensorflow)\b/;

// law python/isImmutable: python/numpy_imports
function isImmutable(python: Interpreter, object: bigint): boolean {
  return modulesOfImmutable.test(python.textOf(BigInt(python.typeOf(object)), "__module__"));
}

/** The same view, which must not be written to. */
function readOnly({ buffer, offset, layout, dtype }: StridedMemoryView): StridedMemoryView {
  return StridedMemoryView[makeView](buffer, offset, layout, dtype, true, buffer);
}

/** The stream on which the producer must make device memory ready, as DLPack encodes it. */
function streamForProducer(python: Interpreter, { stream, device }: ImportOptions): bigint {
  if (stream === null) return python.integer(-1n);
  if (stream !== undefined) return python.integer(stream.handle || 1n);
  return device === undefined ? python.retain(python.singletons.none) : python.integer(1n);
}

// law python/takeFromCapsule: python/malformed
/**
 * Takes the tensor out of a capsule, as the protocol specifies.
 *
 * @throws {ExchangeError} if it is not a capsule that holds a tensor
 */
function takeFromCapsule(python: Interpreter, capsule: bigint): DlpackTensor {
  const { capsules, errors } = python.api;
  const nameAt = capsules.PyCapsule_GetName(capsule);
  if (nameAt === 0n) errors.PyErr_Clear(); // not a capsule: a pending exception would make the next call fail, or worse
  const name = readCString(nameAt);
  if (name !== "dltensor" && name !== "dltensor_versioned") {
    throw new ExchangeError(
      `Cannot import ${python.show(capsule)}, which __dlpack__() returned: expected a capsule dltensor or ` +
        "dltensor_versioned",
    );
  }
  const ptr = capsules.PyCapsule_GetPointer(capsule, nameAt);
  capsules.PyCapsule_SetName(capsule, capsuleName(`used_${name}`));
  return new DlpackTensor(ptr, name === "dltensor" ? null : [1, 0], { isReleased: () => false });
}

// law python/importDescribed: python/malformed, python/numpy_imports
/**
 * Imports an array by its array interface. References to the array and to the dict keep the memory alive: that of a
 * NumPy scalar is made for the dict, and only an entry of it refers to it.
 */
function importDescribed(
  python: Interpreter,
  object: bigint,
  options: ImportOptions,
  isAsked: boolean,
): StridedMemoryView {
  python.release(python.callHelper("check_elements", [python.retain(object)]));
  const isCuda = offers(python, object, "__cuda_array_interface__", isAsked);
  const name = isCuda ? "__cuda_array_interface__" : "__array_interface__";
  const attribute = python.check(python.api.objects.PyObject_GetAttrString(object, cString(name)));
  const owners = [object, attribute].map((one) => new Handle(python, python.retain(one)));
  const close = () => owners.forEach((owner) => owner.close());
  try {
    const { copied, bytes } = isCuda
      ? { copied: copyOut(python, attribute, () => unreadable), bytes: null }
      : splitInterface(python, object, attribute);
    if (bytes !== null) owners.push(bytes);
    if (bytes !== null && !isAsked) throw new ExchangeError(`${python.show(object)} is more than an array`);
    if (!(copied instanceof Map)) {
      throw new ExchangeError(
        `Cannot import by the array interface: ${name} is ${python.show(attribute)}, expected a dict`,
      );
    }
    const description: Record<string, unknown> = Object.fromEntries(copied);
    if (!isReadable(description["typestr"]) && hasDtype(python, object)) {
      description["typestr"] = typeName(python, object);
    }
    const [source, make] = [{ owners, [name]: description }, StridedMemoryView[makeView]] as const;
    if (bytes !== null) return importFromBytes(describeBuffer(python, bytes.object), description, owners, close);
    return isCuda ? fromCudaArrayInterface(source, options, make, close) : fromArrayInterface(source, make, close);
  } catch (error) {
    close();
    throw error;
  } finally {
    python.release(attribute);
  }
}

/** A description by a dict, and the buffer with its elements, unless it has an address. */
function splitInterface(
  python: Interpreter,
  array: bigint,
  described: bigint,
): { readonly copied: unknown; readonly bytes: Handle | null } {
  const parts = python.callHelper("split_interface", [array, described].map((one) => python.retain(one)));
  try {
    const [description = 0n, buffer = 0n] = [0n, 1n].map((i) => python.api.tuples.PyTuple_GetItem(parts, i));
    const copied = copyOut(python, description, () => unreadable);
    return { copied, bytes: buffer === python.singletons.none ? null : new Handle(python, python.retain(buffer)) };
  } finally {
    python.release(parts);
  }
}

// law python/importFromBytes: python/interface_buffers
/**
 * Imports an array whose elements are bytes of a buffer, from `offset` on.
 *
 * @throws {ExchangeError} if some of them are not in the buffer
 */
function importFromBytes(
  { data: [start, readonly], shape: [length = 0] }: BufferDescription,
  description: Readonly<Record<string, unknown>>,
  owners: readonly Handle[],
  close: () => void,
): StridedMemoryView {
  const { offset = 0, shape, strides } = description;
  if (typeof offset !== "number" || !Number.isSafeInteger(offset)) {
    throw new ExchangeError(
      `Cannot import by the array interface: offset is ${show(offset)}, expected an integer`,
    );
  }
  const source = { owners, __array_interface__: { ...description, data: [start + BigInt(offset), readonly] } };
  const isWithin = fromArrayInterface(
    source,
    ({ ptr, size }) => size === 0 || (ptr >= start && ptr + BigInt(size) <= start + BigInt(length)),
  );
  if (isWithin) return fromArrayInterface(source, StridedMemoryView[makeView], close);
  throw new ExchangeError(
    `Cannot import by the array interface: elements of the shape ${show(shape)} with the strides ${
      show(strides)
    } are ` +
      `outside the ${length} bytes of its data, from byte ${offset} on`,
  );
}

/** A placeholder for objects that no description may contain. */
const unreadable = {};

function isReadable(typestr: unknown): boolean {
  try {
    return typeof typestr === "string" && DType.from(typestr).typestr === typestr;
  } catch {
    return false;
  }
}

function hasDtype(python: Interpreter, object: bigint): boolean {
  return python.api.objects.PyObject_HasAttrString(object, cString("dtype")) === 1;
}

/** Name of the element type: the type strings of ml_dtypes types mean raw bytes, or nothing. */
function typeName(python: Interpreter, object: bigint): string {
  const dtype = python.check(python.api.objects.PyObject_GetAttrString(object, cString("dtype")));
  try {
    return python.display(dtype);
  } finally {
    python.release(dtype);
  }
}
