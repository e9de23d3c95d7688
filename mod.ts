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

// layout/: where elements lie, and what they are
export * from "./src/layout/mod.ts";

// cuda/: devices, streams and events
export { Cuda, type CudaProbe } from "./src/cuda/cuda.ts";
export {
  type CopyDirection,
  CudaDevice,
  type DeviceAttribute,
  type EventOptions,
  type StreamOptions,
} from "./src/device/device.ts";
export { cuda as cudaSymbols } from "./bindings/cuda.ts";
export { CU_DEVICE_ATTRIBUTE, CU_FUNC_ATTRIBUTE, CU_GRAPH_NODE_TYPE, CU_MEM_ADVISE } from "./bindings/cuda_types.ts";
export { type CudaDriver, CudaError, type DriverGroups } from "./src/driver/driver.ts";
export type { DriverObserver } from "./src/driver/observer.ts";
export {
  cause,
  type DriverTraits,
  type KernelAccess,
  type KernelObserver,
  observeKernels,
  observer,
} from "./src/driver/traits.ts";
export { CompileError } from "./src/device/kernel/compiler.ts";
export {
  type Dim3,
  Kernel,
  type KernelAttribute,
  type KernelParameter,
  type LaunchOptions,
} from "./src/device/kernel/kernel.ts";
export type { KernelArg } from "./src/device/kernel/kernel_arguments.ts";
export { type CompileOptions, Program } from "./src/device/kernel/program.ts";
export { CudaEvent } from "./src/device/event.ts";
export type { PointerAttributes } from "./src/device/pointer_attributes.ts";
export { type IpcHandle } from "./src/device/ipc_handle.ts";
export { CudaStream } from "./src/device/stream.ts";
export { type CaptureOptions, StreamCapture } from "./src/device/graph/capture.ts";
export { CudaGraph, type CudaGraphNode, type CudaGraphNodeKind } from "./src/device/graph/graph.ts";
export { CudaGraphExec } from "./src/device/graph/graph_exec.ts";
export type { GraphResource, GraphResources, LastLaunch } from "./src/device/graph/graph_resources.ts";
export type { KernelMemory } from "./src/device/kernel/kernel_memory.ts";

// sim/: a CUDA driver without a GPU, and one that checks the order of calls
export type { CheckedOptions } from "./src/cuda/check_options.ts";
export {
  type CausalityCall,
  CausalityChecker,
  CausalityError,
  type CausalityKind,
  CausalityReport,
  checkDriver,
  type CheckOptions,
  type LeakedObject,
  type Mark,
  type MarkKind,
  type ReportParts,
} from "./src/checker/mod.ts";
export {
  IllegalAddressError,
  type LiveObjects,
  type LoadPtx,
  type Print,
  type Schedule,
  SimulatedDriver,
  simulateDriver,
  type SimulateOptions,
} from "./src/sim/mod.ts";
export {
  type PrintTarget,
  type PtxAccess,
  PtxError,
  PtxFault,
  type PtxFaultKind,
  type PtxGlobal,
  type PtxKernel,
  type PtxLaunch,
  type PtxMemory,
  type PtxModule,
} from "./src/ptx/mod.ts";

// memory/: who owns bytes
export { DeviceMemoryResource } from "./src/memory/device_memory_resource.ts";
export {
  type DriverCalls,
  DriverMemoryResource,
  ManagedMemoryResource,
  PinnedMemoryResource,
  SynchronousMemoryResource,
} from "./src/memory/driver_memory_resource.ts";
export { type HostMemoryOptions, HostMemoryResource } from "./src/memory/host_memory_resource.ts";
export type { MemoryKind } from "./src/order/ordered_memory.ts";
export {
  type Allocation,
  type CopyOptions,
  type FillOptions,
  type FromPointerOptions,
  MemoryBuffer,
} from "./src/memory/memory_buffer.ts";
export type { BufferDescriptor, ImportBufferOptions } from "./src/memory/import_buffer.ts";
export type { Shareable, SharedResource } from "./src/memory/sharing/channel_message.ts";
export { MemoryChannel, type ReceiveValueOptions } from "./src/memory/sharing/memory_channel.ts";
export { MemoryPool, type MemoryPoolOptions, type MemoryPoolUse } from "./src/memory/memory_pool.ts";
export { type DeviceLike, PeerAccessSet } from "./src/memory/peer_access.ts";
export { type AllocateOptions, checkSize, MemoryResource } from "./src/memory/memory_resource.ts";

// view/ and exchange/: arrays, and handing them over
export type { ViewCopyOptions } from "./src/copy/copy.ts";
export { type FromBufferOptions, StridedMemoryView } from "./src/view/strided_memory_view.ts";
export * from "./src/exchange/mod.ts";

// ucx/: messages to other processes and machines
export {
  type CloseReason,
  type ConnectOptions,
  type Receivable,
  type Received,
  type ReceiveOptions,
  type Sendable,
  type SendOptions,
  Ucx,
  UcxEndpoint,
  UcxError,
  type UcxOptions,
  UcxWorker,
} from "./src/ucx/mod.ts";

// ffi/: what goes wrong before any library is open
export {
  type ArgumentValue,
  type ArgumentValues,
  type BufferArgument,
  FfiError,
  type FunctionGroup,
  type Functions,
  type HandleArgument,
  LibraryNotFoundError,
  type LoadAttempt,
  type NativeFunction,
  type ResultValue,
  type ScalarValue,
  type StructArgument,
  SystemError,
} from "./src/ffi/mod.ts";
export type { Argument, CScalar, FunctionDescription, SymbolTable } from "./bindings/abi.ts";
export {
  FileDescriptor,
  type UnixConnectOptions,
  UnixListener,
  type UnixListenOptions,
  type UnixMessage,
  type UnixPeer,
  type UnixReceiveOptions,
  UnixSocket,
  type WaitOptions,
} from "./src/unix/mod.ts";
