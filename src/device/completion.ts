/**
 * Waits for a stream without blocking: a host function at its end closes one of two connected sockets.
 *
 * @module
 */
import { CUresult } from "../../bindings/cuda_types.ts";
import { checkCuda, type CudaDriver, cudaError, innermost, observerOf } from "../driver/mod.ts";
import { nodeBuiltin } from "../ffi/mod.ts";
import { createWakeup } from "../unix/mod.ts";
import { isCapturing } from "./graph/active_captures.ts";
import { besideCaptures } from "./relaxed_capture.ts";
import type { CudaStream } from "./stream.ts";
import { internals } from "./stream_internals.ts";

/** How often to check whether a stream that is waited for has failed, in milliseconds. */
const failureCheck = 100;

// law device/completion: checker/polls, device/stream, memory/memory_programs, sim/behaviours, order/pageable_in_use
/**
 * Settles when everything enqueued on a stream so far is done.
 *
 * @param stream open, or retained
 * @throws {CudaError} if the work has failed
 */
export async function completion(stream: CudaStream, handle: bigint): Promise<void> {
  const { driver } = stream.device;
  if (stream.isCapturing) {
    throw cudaError(driver, "cuLaunchHostFunc", CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  const wakeup = createWakeup();
  const { callback, argument } = wakeup;
  let isTaken = false; // by the driver, which then owns the descriptor
  let passed: (() => void) | undefined;
  try {
    const code = stream.enqueue(() => {
      const launched = driver.stream.cuLaunchHostFunc(handle, callback, argument);
      isTaken = launched === CUresult.CUDA_SUCCESS;
      passed = observerOf(driver)?.mark(handle);
      return launched;
    });
    checkCuda(driver, "cuLaunchHostFunc", code);
  } finally {
    if (!isTaken) wakeup.cancel();
  }
  // A failed context no longer calls host functions: without these checks the wait would never end.
  const { clearInterval, setInterval } = nodeBuiltin("node:timers");
  const watch = setInterval(() => hasFailed(stream, handle) && wakeup.abandon(), failureCheck);
  try {
    await wakeup.signalled;
  } finally {
    clearInterval(watch);
  }
  passed?.();
  if (isCapturing(driver)) return;
  // Whether later work is done as well is chance: the program has not waited for it.
  const asked = innermost(driver);
  const state = query(stream, handle, asked);
  if (state === CUresult.CUDA_SUCCESS && asked === driver) stream[internals].passed();
  if (state !== CUresult.CUDA_ERROR_NOT_READY) checkCuda(driver, "cuStreamQuery", state);
}

// law device/query: memory/beside_captures
/**
 * Queries the driver whether a stream, open or retained, is done.
 *
 * @param driver the device's, or the innermost if the program did not ask: an observer takes an answer for a wait
 * @returns `CUresult`
 */
export function query(stream: CudaStream, handle: bigint, driver: CudaDriver): number {
  return besideCaptures(stream.device.driver, () => stream.enqueue(() => driver.stream.cuStreamQuery(handle)));
}

/** Whether the stream's work has failed. While anything is captured no stream may be queried: the answer is then no. */
function hasFailed(stream: CudaStream, handle: bigint): boolean {
  const { driver } = stream.device;
  if (isCapturing(driver)) return false;
  const code = query(stream, handle, innermost(driver));
  return code !== CUresult.CUDA_SUCCESS && code !== CUresult.CUDA_ERROR_NOT_READY;
}
