/**
 * Devices, streams and events; captured graphs (`graph/`) and kernels (`kernel/`) have their own folders.
 *
 * The room knows a driver and the ground below it. About memory it knows addresses and sizes, and one type:
 * `CudaDevice.memory`, which the code that makes a device passes in. A `CudaDevice` retains its primary context on
 * first use and makes it current for the duration of a call; streams and events belong to a device, and native objects
 * are reference-counted. Every call that another library's capture would refuse, or that would invalidate it, is made
 * `besideCaptures` or waits until the capture has ended; only those that wait for the whole context, or mark its end,
 * cannot be: `order/` checks first (`isBlockedByCapture`).
 *
 * Everything that enqueues work goes through `CudaStream`; `order/` decides which work waits for which.
 *
 * @module
 */
export { checkSameCuda, checkSameDevice, isSameDevice } from "./check_device.ts";
export { checkOpenStream, checkPlace, checkStream, expectDevice } from "./check_stream.ts";
export type { EventOptions } from "./create_event.ts";
export type { StreamOptions } from "./create_stream.ts";
export { CudaDevice } from "./device.ts";
export { CudaEvent } from "./event.ts";
export { checkReached } from "./explain_unreachable.ts";
export { closeIfDropped, type DroppedState } from "./finalizer.ts";
export { afterCaptures, captureOf, isCapturing } from "./graph/active_captures.ts";
export { type CaptureOptions, StreamCapture } from "./graph/capture.ts";
export { CudaGraph, type CudaGraphNode, type CudaGraphNodeKind } from "./graph/graph.ts";
export { CudaGraphExec } from "./graph/graph_exec.ts";
export { makeOrderExplicit } from "./implied_order.ts";
export { checkDevice, handleBytes, type IpcHandle, readHandle, writeHandle } from "./ipc_handle.ts";
export { CompileError } from "./kernel/compiler.ts";
export { type Dim3, Kernel, type KernelAttribute, type KernelParameter, type LaunchOptions } from "./kernel/kernel.ts";
export type { KernelArg } from "./kernel/kernel_arguments.ts";
export type { KernelMemory } from "./kernel/kernel_memory.ts";
export { type CompileOptions, Program } from "./kernel/program.ts";
export { ProgramCache } from "./kernel/program_cache.ts";
export { PerDevice } from "./per_device.ts";
export { type PointerAttributes, PointerQuery } from "./pointer_attributes.ts";
export type { DeviceAttribute, PeerAttribute } from "./properties.ts";
export { type CopyDirection, enqueueCopy, enqueueFill, enqueuePeerCopy } from "./raw_copies.ts";
export { ReferenceCount } from "./reference_count.ts";
export {
  besideAllCaptures,
  besideCaptures,
  isBlockedByCapture,
  isRefusedByCapture,
  relax,
  restore,
} from "./relaxed_capture.ts";
export { CudaStream } from "./stream.ts";
export { internals, isDoneByPoll, type StreamWatcher } from "./stream_internals.ts";
export { waitForDevice } from "./wait_for_device.ts";
