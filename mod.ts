/**
 * Causeway carries arrays between libraries, devices and machines, in causal order, without copying them: for Deno and
 * Bun, in TypeScript alone.
 *
 * Nothing is opened at import. {@linkcode Cuda.open} and {@linkcode Ucx.open} are the roots; a
 * {@linkcode StridedMemoryView} is an array.
 *
 * @example
 * ```ts
 * import { slice, StridedMemoryView } from "@causeway/causeway";
 *
 * const table = StridedMemoryView.fromTypedArray(new Float32Array(12), { shape: [3, 4] });
 * const column = table.sliced(slice(null, null, -1), 2); // no copy
 * using tensor = column.toDlpack(); // DLManagedTensorVersioned *, for any library in this process
 * using back = StridedMemoryView.fromDlpack(tensor);
 * console.log(back.ptr === column.ptr); // true
 * ```
 *
 * @module
 */

// layouts and element types
export {
  type Complex,
  DType,
  type DTypeLike,
  type DTypeName,
  type ElementValue,
  type Shape,
  Slice,
  slice,
  type SliceItem,
  StridedLayout,
  type TypedArray,
  type TypedArrayOf,
} from "./src/layout/mod.ts";

// devices, streams, kernels and graphs
export { Cuda } from "./src/cuda/mod.ts";
export {
  CompileError,
  CudaDevice,
  CudaEvent,
  CudaStream,
  type Dim3,
  Kernel,
  type KernelArg,
  Program,
} from "./src/device/mod.ts";
export { CudaError } from "./src/driver/mod.ts";

// memory and its owners
export {
  DeviceMemoryResource,
  HostMemoryResource,
  ManagedMemoryResource,
  MemoryBuffer,
  MemoryResource,
  PeerAccessSet,
  PinnedMemoryResource,
  SynchronousMemoryResource,
} from "./src/memory/mod.ts";
export { ExchangeError, liveExports } from "./src/order/mod.ts";

// arrays and their exchange
export { Lease, type Place, StridedMemoryView } from "./src/view/mod.ts";
export { DlpackTensor } from "./src/dlpack/mod.ts";
export { NpyError, openNpy, readNpy, readNpz, writeNpy, writeNpz } from "./src/files/mod.ts";
export { ArrowArray, ArrowStream } from "./src/arrow/mod.ts";
export { ArrowDeviceArray, arrowField } from "./src/cdata/mod.ts";

// Python in this process
export { kwargs, type PyObject, Python, PythonError } from "./src/python/mod.ts";

// messages to other processes and machines
export {
  type Receivable,
  type Received,
  SecretError,
  type Sendable,
  Ucx,
  UcxEndpoint,
  UcxError,
  UcxListener,
  UcxWorker,
} from "./src/ucx/mod.ts";

// errors
export { CausalityError } from "./src/checker/mod.ts";
export { FfiError, LibraryNotFoundError, type LoadAttempt, SystemError } from "./src/ffi/mod.ts";
