/**
 * CUDA: devices, streams, events, kernels, graphs and memory.
 *
 * @module
 */
export { type CheckedOptions, Cuda, type CudaProbe, type DeviceOptions } from "../cuda/mod.ts";
export {
  type CaptureOptions,
  CompileError,
  type CompileOptions,
  CudaDevice,
  CudaEvent,
  CudaGraph,
  CudaGraphExec,
  type CudaGraphNode,
  type CudaGraphNodeKind,
  CudaStream,
  type DeviceAttribute,
  type Dim3,
  type EventOptions,
  Kernel,
  type KernelArg,
  type KernelAttribute,
  type KernelMemory,
  type KernelParameter,
  type LaunchOptions,
  type PeerAttribute,
  type PointerAttributes,
  Program,
  StreamCapture,
  type StreamOptions,
} from "../device/mod.ts";
export { type CudaDriver, CudaError } from "../driver/mod.ts";
export {
  type AllocateOptions,
  type Allocation,
  checkSize,
  type CopyOptions,
  type DeviceLike,
  DeviceMemoryResource,
  DriverMemoryResource,
  type FillOptions,
  type FromPointerOptions,
  type HostMemoryOptions,
  HostMemoryResource,
  ManagedMemoryResource,
  MemoryBuffer,
  MemoryPool,
  type MemoryPoolOptions,
  type MemoryPoolUse,
  MemoryResource,
  PeerAccessSet,
  PinnedMemoryResource,
  SynchronousMemoryResource,
} from "../memory/mod.ts";
export type { MemoryKind } from "../order/mod.ts";
export type { SimulateOptions } from "../sim/mod.ts";
export { CausalityError, type CheckOptions } from "../checker/mod.ts";
export { FfiError, LibraryNotFoundError, type LoadAttempt } from "../ffi/mod.ts";
export {
  CU_DEVICE_ATTRIBUTE,
  CU_DEVICE_P2P_ATTRIBUTE,
  CU_FUNC_ATTRIBUTE,
  CU_GRAPH_NODE_TYPE,
  CU_MEM_ADVISE,
} from "../../bindings/cuda_types.ts";
