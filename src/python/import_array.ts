/**
 * Python arrays in JavaScript, without a copy. All functions here need the interpreter's lock.
 *
 * @module
 */
import { cString, readCString } from "../ffi/mod.ts";
import { DType } from "../layout/mod.ts";
import { ExchangeError } from "../order/mod.ts";
import { DlpackTensor, fromArrayInterface, fromCudaArrayInterface, type ImportOptions } from "../dlpack/mod.ts";
import { makeView, StridedMemoryView } from "../view/mod.ts";
import { capsuleName } from "./take_capsule.ts";
import { copyOut } from "./copy_out.ts";
import { importByExchangeApi } from "./dlpack_exchange_api.ts";
import { importTensor } from "./import_tensor.ts";
import { exceptionBehind, PythonError } from "./error.ts";
import { Handle } from "./handle.ts";
import type { Interpreter } from "./interpreter.ts";
import { Kind } from "./kinds.ts";

/** Whether an object is an array: its type implements one of the array protocols. */
export function isArray(python: Interpreter, object: bigint): boolean {
  return python.isArrayType(BigInt(python.typeOf(object)));
}

/**
 * Imports a Python array as a view of the same memory. The view owns it: the array is released when the view is closed
 * or collected.
 *
 * @param object borrowed
 * @throws {ExchangeError} if it cannot be imported as it is
 * @throws {PythonError} if its owner refuses to export it
 */
export function importArray(
  python: Interpreter,
  object: bigint,
  options: ImportOptions,
  kind: Kind,
): StridedMemoryView {
  if (kind === Kind.numpyArray) {
    const view = importFromNumpy(python, object, options);
    if (view !== null) return view;
  }
  if (!python.typeHas(object, "__dlpack__")) return importDescribed(python, object, options);
  try {
    return importFromProducer(python, object, options);
  } catch (error) {
    // Some owners refuse to export by DLPack what they describe by an interface: read-only arrays, ml_dtypes types.
    if (!(error instanceof PythonError) || !python.typeHas(object, "__array_interface__")) throw error;
    exceptionBehind(error).release();
    return importDescribed(python, object, options);
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
    using tensor = takeFromCapsule(python, capsule);
    const view = StridedMemoryView.fromDlpack(tensor, options); // takes the tensor, or leaves closing it to `using`
    return tensor.version === null && isImmutable(python, object) ? readOnly(view) : view;
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
function importDescribed(python: Interpreter, object: bigint, options: ImportOptions): StridedMemoryView {
  python.release(python.callHelper("check_elements", [python.retain(object)]));
  const isCuda = python.typeHas(object, "__cuda_array_interface__");
  const name = isCuda ? "__cuda_array_interface__" : "__array_interface__";
  const attribute = python.check(python.api.objects.PyObject_GetAttrString(object, cString(name)));
  const owners = [object, attribute].map((one) => new Handle(python, python.retain(one)));
  const close = () => owners.forEach((owner) => owner.close());
  try {
    const copied = copyOut(python, attribute, () => unreadable);
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
    return isCuda ? fromCudaArrayInterface(source, options, make, close) : fromArrayInterface(source, make, close);
  } catch (error) {
    close();
    throw error;
  } finally {
    python.release(attribute);
  }
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
