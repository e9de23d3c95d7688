/**
 * Driver queries about a stream.
 *
 * @module
 */
import { CU_STREAM, CU_STREAM_CAPTURE_STATUS } from "../../bindings/cuda_types.ts";
import { checkCuda } from "../driver/mod.ts";
import { NativeArena } from "../ffi/mod.ts";
import type { CudaStream } from "./stream.ts";

/** Queries a numeric property of a stream, with the name of the driver call. */
function ask(stream: CudaStream, name: string, call: (out: bigint) => number): number {
  using arena = new NativeArena();
  const out = arena.out("i32");
  checkCuda(stream.device.driver, name, stream.enqueue(() => call(out.$address)));
  return out.value;
}

/** Whether an open stream takes part in a capture, by any library. */
export function isInCapture(stream: CudaStream, handle: bigint): boolean {
  const { cuStreamIsCapturing } = stream.device.driver.capture;
  const status = ask(stream, "cuStreamIsCapturing", (out) => cuStreamIsCapturing(handle, out));
  return status !== CU_STREAM_CAPTURE_STATUS.NONE;
}

/** The priority of an open stream. */
export function priority(stream: CudaStream, handle: bigint): number {
  const { cuStreamGetPriority } = stream.device.driver.stream;
  return ask(stream, "cuStreamGetPriority", (out) => cuStreamGetPriority(handle, out));
}

/** Whether an open stream ignores the legacy default stream. */
export function isNonBlocking(stream: CudaStream, handle: bigint): boolean {
  const { cuStreamGetFlags } = stream.device.driver.stream;
  return (ask(stream, "cuStreamGetFlags", (out) => cuStreamGetFlags(handle, out)) & CU_STREAM.NON_BLOCKING) !== 0;
}
