/**
 * JavaScript arrays in Python, without a copy. All functions here need the interpreter's lock. The capsules that
 * libraries ask an array for are made in Python (`guest/array.py`).
 *
 * @module
 */
import { type DriverObserver, libcuda, observerOf } from "../driver/mod.ts";
import { CU_STREAM_LEGACY } from "../../bindings/cuda_types.ts";
import type { CudaDevice, CudaStream } from "../device/mod.ts";
import { cString, libc, openLibrary } from "../ffi/mod.ts";
import { type StridedMemoryView, viewOf } from "../view/mod.ts";
import { withLastingCopies } from "../copy/mod.ts";
import { callDeleter, dlpackDevice } from "../dlpack/mod.ts";
import { ExchangeError, hostWaitsToRead, orderStreams } from "../order/mod.ts";
import { capsuleName } from "./take_capsule.ts";
import { offerExchangeApi } from "./dlpack_exchange_api.ts";
import { hostSpec } from "./host_specs.ts";
import type { Interpreter } from "./interpreter.ts";
import { copyOut } from "./copy_out.ts";

// law python/exportArray: python/export_array, python/arrow_capsules
/**
 * A new reference to an array over a view: a NumPy array if the program has loaded NumPy, else an `Array`
 * (guest/array.py). It keeps the memory allocated until Python releases it.
 *
 * Memory that ends with this Worker is copied, and the copy is read-only: writes from Python would be lost.
 *
 * @param arrow makes a new reference to the view's `Arrow`, if it is an Arrow array with more than its elements
 * @throws {ExchangeError} for memory of a simulated device
 */
export function exportArray(python: Interpreter, view: StridedMemoryView, arrow?: () => bigint): bigint {
  if (view.buffer.endsWithWorker) {
    return withLastingCopies(
      [view],
      (lasting) => exportArray(python, viewOf(lasting(view)), arrow),
    );
  }
  const { device, dtype, layout, stream } = view;
  if (device !== null) bindCuda(python, device);
  offerExchangeApi(python);
  const spec = device === null && arrow === undefined ? hostSpec(python, view) : 0n;
  const made = spec === 0n ? 0n : exportTensor(python, view, spec);
  if (made !== 0n) return made;
  const { none, true: yes, false: no } = python.singletons;
  const handle = (value: bigint | undefined) => value === undefined ? python.retain(none) : python.integer(value);
  const text = (value: string | null) => value === null ? python.retain(none) : python.text(value);
  const isDense = dtype.isPacked || layout.isContiguousC;
  if (device === null) hostWaitsToRead(view, "giving to Python"); // consumers there have no stream
  const tensor = view.toDlpack({ stream: null }).take(); // a consumer is ordered when it requests the array
  python.hasExports = true;
  try {
    return python.callHelper("export_array", [
      python.integer(tensor),
      python.text(dtype.name),
      text(layout.isContiguousC ? dtype.arrowFormat : null),
      arrow?.() ?? python.retain(none),
      python.numbers(view.shape),
      isDense ? python.retain(none) : python.numbers(layout.stridesInBytes),
      text(dtype.typestr),
      python.integer(view.ptr),
      python.retain(view.readonly ? yes : no),
      python.numbers(dlpackDevice(view)),
      handle(device?.context),
      handle(device === null ? undefined : homeHandle(stream, device)),
    ]);
  } catch (error) {
    callDeleter(tensor, true);
    throw error;
  }
}

// law python/exportTensor: python/host_exports, python/numpy, python/leaks
/** A new reference to a NumPy array over a host view, made by NumPy from a tensor; 0n if NumPy does not make one. */
function exportTensor(python: Interpreter, view: StridedMemoryView, spec: bigint): bigint {
  hostWaitsToRead(view, "giving to Python"); // consumers there have no stream
  const tensor = view.toDlpack({ stream: null }).take();
  python.hasExports = true; // its consumers may export it further
  const { capsules } = python.api;
  const name = capsuleName("dltensor_versioned");
  const capsule = capsules.PyCapsule_New(tensor, name, 0n);
  if (capsule === 0n) callDeleter(tensor, true); // nothing has taken it
  python.check(capsule);
  try {
    const args = [python.retain(spec), python.retain(capsule), python.integer(view.ptr)];
    const made = python.callHelper("export_tensor", args);
    return made === python.singletons.none ? 0n : made;
  } finally {
    if (capsules.PyCapsule_GetName(capsule) === name) callDeleter(tensor, true); // NumPy has not taken it
    python.release(capsule);
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

/** What copies of device memory need. */
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
 * Lets Python order streams and copy on a device: through the driver itself, because no JavaScript can run when a
 * consumer requests it.
 *
 * @throws {ExchangeError} for a simulated device
 */
export function bindCuda(python: Interpreter, device: CudaDevice): void {
  const { functions, handle } = openLibrary(libcuda);
  const check = observerOf(device.driver);
  if ((check?.inner ?? device.driver) !== functions) {
    throw new ExchangeError(
      "Cannot pass memory of a simulated device to Python: only GPU memory can be used there. Copy it to the host " +
        "first.",
    );
  }
  if (check !== null) reportOrders(python, device.context, check);
  if (cudaBound.has(python)) return;
  const at = (name: string) => python.integer(libc().loading.dlsym(handle, cString(name)));
  python.release(python.callHelper("bind_cuda", cudaFunctions.map(at)));
  python.release(python.callHelper("bind_memory", memoryFunctions.map(at)));
  cudaBound.add(python);
}

/** The observer of each context whose streams Python orders, by context handle. */
const checks = new Map<bigint, Pick<DriverObserver, "orderedElsewhere">>();

// law python/reportOrders: python/order
/**
 * Reports to an observer how Python orders streams. Python calls the driver by address, bypassing the observer, which
 * would otherwise report a race.
 */
export function reportOrders(
  python: Interpreter,
  context: bigint,
  check: Pick<DriverObserver, "orderedElsewhere">,
): void {
  checks.set(context, check);
  if (python.beforeUnlock !== null) return;
  const take = () => {
    const list = python.callHelper("take_orders", []);
    try {
      return copyOut(python, list, () => null) as (number | bigint)[][]; // tuples of integers
    } finally {
      python.release(list);
    }
  };
  take(); // the first call starts the list
  python.beforeUnlock = () => {
    for (const order of take()) {
      const [context = 0n, home = 0n, consumer = 0n] = order.map(BigInt);
      checks.get(context)?.orderedElsewhere(context, home, consumer);
    }
  };
}

/** The handle of the stream that consumers on a device must wait for. A stream of another device is awaited now. */
function homeHandle(stream: CudaStream | null, device: CudaDevice): bigint | undefined {
  if (stream === null) return undefined;
  if (stream.device === device) return stream.handle || CU_STREAM_LEGACY;
  orderStreams(stream, device.defaultStream); // in Python an array has one context
  return CU_STREAM_LEGACY;
}
