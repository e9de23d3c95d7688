/**
 * Arrays across the border, without a copy. All functions here need the interpreter's lock.
 *
 * @module
 */
import { type DriverObserver, observerOf } from "../driver/observer.ts";
import { CU_STREAM_LEGACY } from "../../bindings/cuda_types.ts";
import type { CudaDevice } from "../device/device.ts";
import type { CudaStream } from "../device/stream.ts";
import { libcuda } from "../driver/driver.ts";
import { NativeArena } from "../ffi/arena.ts";
import { libc } from "../ffi/libc.ts";
import { openLibrary } from "../ffi/library.ts";
import { cString, readCString } from "../ffi/c_string.ts";
import { DType } from "../layout/mod.ts";
import { StridedMemoryView } from "../view/strided_memory_view.ts";
import { fromArrayInterface, fromCudaArrayInterface } from "../dlpack/array_interface.ts";
import { withLastingCopies } from "../dlpack/copy_for_consumer.ts";
import { callDeleter, dlpackDevice, DlpackTensor, type ImportOptions } from "../dlpack/tensor.ts";
import { ExchangeError } from "../order/exchange_error.ts";
import { orderHostView } from "../order/order.ts";
import { PythonError } from "./error.ts";
import { offerTable, takeByTable } from "./dlpack_exchange_api.ts";
import type { Interpreter } from "./interpreter.ts";
import { Handle } from "./object.ts";
import { copyOut } from "./values.ts";

/**
 * A new reference to an `Array` over a view: NumPy's, where a program has loaded it. It keeps the memory allocated until Python has let go of it.
 *
 * Memory that ends with this Worker is copied for it, and the copy read-only: what were written there would be lost.
 *
 * @param arrow makes a new reference to what it is in Arrow, if that is more than its elements
 * @throws {ExchangeError} for memory of a simulated device
 */
export function lend(python: Interpreter, view: StridedMemoryView, arrow?: () => bigint): bigint {
  if (view.buffer.endsWithWorker) return withLastingCopies([view], (lasting) => lend(python, lasting(view), arrow));
  const { device, dtype, layout, stream } = view;
  if (device !== null) bindCuda(python, device);
  offerTable(python);
  const { none, true: yes, false: no } = python.singletons;
  const numbers = (values: readonly number[]) => python.tuple(values.map((value) => python.integer(BigInt(value))));
  const handle = (value: bigint | undefined) => value === undefined ? python.share(none) : python.integer(value);
  const text = (value: string | null) => value === null ? python.share(none) : python.text(value);
  const isDense = dtype.isPacked || layout.isContiguousC;
  if (device === null) orderHostView(view, "giving to Python"); // whoever reads it there has no stream
  const tensor = view.toDlpack({ stream: null }).take(); // Python orders a device's consumers when they come
  python.hasLent = true;
  try {
    return python.callHelper("export_array", [
      python.integer(tensor),
      python.text(dtype.name),
      text(layout.isContiguousC ? dtype.arrowFormat : null),
      arrow?.() ?? python.share(none),
      numbers(view.shape),
      isDense ? python.share(none) : numbers(layout.stridesInBytes),
      text(dtype.typestr),
      python.integer(view.ptr),
      python.share(view.readonly ? yes : no),
      numbers(dlpackDevice(view)),
      handle(device?.context),
      handle(device === null ? undefined : homeOf(stream, device)),
    ]);
  } catch (error) {
    callDeleter(tensor, true);
    throw error;
  }
}

const cudaFunctions = [
  "cuCtxPushCurrent_v2",
  "cuCtxPopCurrent_v2",
  "cuEventCreate",
  "cuEventDestroy_v2",
  "cuEventRecord",
  "cuStreamWaitEvent",
];

/** What a copy in memory of a device needs. */
const memoryFunctions = [
  "cuMemAlloc_v2",
  "cuMemFree_v2",
  "cuMemcpyAsync",
  "cuStreamSynchronize",
  "cuThreadExchangeStreamCaptureMode",
  "cuDevicePrimaryCtxRetain",
  "cuDevicePrimaryCtxRelease_v2",
];

const cudaBound = new WeakSet<Interpreter>();

/**
 * Lets Python order its streams after ours, and copy: by the driver itself, because no JavaScript can run when Python asks.
 *
 * @throws {ExchangeError} for a simulated device
 */
export function bindCuda(python: Interpreter, device: CudaDevice): void {
  const { functions, handle } = openLibrary(libcuda);
  const check = observerOf(device.driver);
  if ((check?.inner ?? device.driver) !== functions) {
    throw new ExchangeError("Cannot hand memory of a simulated device to Python: only a GPU's can be used there");
  }
  if (check !== null) tellOrders(python, device.context, check);
  if (cudaBound.has(python)) return;
  const at = (name: string) => python.integer(libc().loading.dlsym(handle, cString(name)));
  python.drop(python.callHelper("bind_cuda", cudaFunctions.map(at)));
  python.drop(python.callHelper("bind_memory", memoryFunctions.map(at)));
  cudaBound.add(python);
}

/** Who checks what is done in a context that Python orders streams of, by its handle. */
const checks = new Map<bigint, Pick<DriverObserver, "orderedElsewhere">>();

/**
 * Lets a checker know what Python orders: the calls go to the driver by its address, past the checker, and what comes after
 * them would look like a race.
 */
export function tellOrders(
  python: Interpreter,
  context: bigint,
  check: Pick<DriverObserver, "orderedElsewhere">,
): void {
  checks.set(context, check);
  if (python.beforeUnlock !== null) return;
  const take = () => {
    const list = python.callHelper("take_orders", []);
    try {
      return copyOut(python, list, {}) as (number | bigint)[][]; // tuples of integers
    } finally {
      python.drop(list);
    }
  };
  take(); // which begins it
  python.beforeUnlock = () => {
    for (const order of take()) {
      const [context = 0n, home = 0n, consumer = 0n] = order.map(BigInt);
      checks.get(context)?.orderedElsewhere(context, home, consumer);
    }
  };
}

/** The handle of the stream that consumers on a device are to wait for. One of another device is waited for now. */
function homeOf(stream: CudaStream | null, device: CudaDevice): bigint | undefined {
  if (stream === null) return undefined;
  if (stream.device === device) return stream.handle || CU_STREAM_LEGACY;
  device.defaultStream.wait(stream); // Python knows one context for each array
  return CU_STREAM_LEGACY;
}

/** Whether an object is an array: it speaks one of the protocols. */
export function isArray(python: Interpreter, object: bigint): boolean {
  return ["__dlpack__", "__cuda_array_interface__", "__array_interface__"].some((name) => python.typeHas(object, name));
}

/**
 * Sees an array of Python where it is. The view owns it: closing the view, or losing it to the garbage collector, lets
 * Python have it back.
 *
 * @param object borrowed
 * @throws {ExchangeError} if it cannot be taken as it is
 * @throws {PythonError} if its owner refuses to hand it over
 */
export function takeArray(python: Interpreter, object: bigint, options: ImportOptions): StridedMemoryView {
  if (!python.typeHas(object, "__dlpack__")) return takeDescribed(python, object, options);
  try {
    return takeTensor(python, object, options);
  } catch (error) {
    // Some owners refuse by DLPack what they describe all the same: read-only arrays, and the types of ml_dtypes.
    if (!(error instanceof PythonError) || !python.typeHas(object, "__array_interface__")) throw error;
    return takeDescribed(python, object, options);
  }
}

function takeTensor(python: Interpreter, object: bigint, options: ImportOptions): StridedMemoryView {
  const taken = takeByTable(python, object, options);
  if (taken !== null) return taken;
  const capsule = python.callHelper("request_capsule", [python.share(object), streamFor(python, options)]);
  try {
    using tensor = unpack(python, capsule);
    return StridedMemoryView.fromDlpack(tensor, options); // which takes it, or leaves it to be closed
  } finally {
    python.drop(capsule);
  }
}

/** The stream on which a producer shall make device memory ready, in DLPack's terms. */
function streamFor(python: Interpreter, { stream, device }: ImportOptions): bigint {
  if (stream === null) return python.integer(-1n);
  if (stream !== undefined) return python.integer(stream.handle || 1n);
  return device === undefined ? python.share(python.singletons.none) : python.integer(1n);
}

/** What capsules are called once their tensor is taken: they keep the address, so the names are never freed. */
const used = new Map<string, bigint>();

function usedName(name: "dltensor" | "dltensor_versioned"): bigint {
  let address = used.get(name);
  if (address === undefined) used.set(name, address = new NativeArena().cString(`used_${name}`));
  return address;
}

/**
 * The tensor in a capsule, taken over as the protocol says.
 *
 * @throws {ExchangeError} if it is no capsule with a tensor
 */
function unpack(python: Interpreter, capsule: bigint): DlpackTensor {
  const { capsules, errors } = python.api;
  const nameAt = capsules.PyCapsule_GetName(capsule);
  if (nameAt === 0n) errors.PyErr_Clear(); // no capsule: an exception that stays set makes the next call fail, or worse
  const name = readCString(nameAt);
  if (name !== "dltensor" && name !== "dltensor_versioned") {
    throw new ExchangeError(
      `Cannot import ${python.show(capsule)}, which __dlpack__() returned: expected a capsule dltensor or ` +
        "dltensor_versioned",
    );
  }
  const ptr = capsules.PyCapsule_GetPointer(capsule, cString(name));
  capsules.PyCapsule_SetName(capsule, usedName(name));
  return new DlpackTensor(ptr, name === "dltensor" ? null : [1, 0], { isReleased: () => false });
}

/** Sees an array by its interface; a reference to the array itself keeps the memory. */
function takeDescribed(python: Interpreter, object: bigint, options: ImportOptions): StridedMemoryView {
  python.drop(python.callHelper("check_elements", [python.share(object)]));
  const isCuda = python.typeHas(object, "__cuda_array_interface__");
  const name = isCuda ? "__cuda_array_interface__" : "__array_interface__";
  const attribute = python.check(python.api.objects.PyObject_GetAttrString(object, cString(name)));
  const owner = new Handle(python, python.share(object));
  try {
    const copied = copyOut(python, attribute, options);
    if (!(copied instanceof Map)) {
      throw new ExchangeError(
        `Cannot import by the array interface: ${name} is ${python.show(attribute)}, expected a dict`,
      );
    }
    const description: Record<string, unknown> = Object.fromEntries(copied);
    if (!isReadable(description["typestr"]) && hasDtype(python, object)) {
      description["typestr"] = typeName(python, object);
    }
    const take = isCuda ? fromCudaArrayInterface : fromArrayInterface;
    return take({ owner, [name]: description }, options, () => owner.close());
  } catch (error) {
    owner.close();
    throw error;
  } finally {
    python.drop(attribute);
  }
}

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

/** Name of the element type: the types of ml_dtypes have type strings that mean raw bytes, or nothing. */
function typeName(python: Interpreter, object: bigint): string {
  const dtype = python.check(python.api.objects.PyObject_GetAttrString(object, cString("dtype")));
  try {
    return python.show(dtype);
  } finally {
    python.drop(dtype);
  }
}
