/**
 * The CUDA context that UCX needs: it copies in the one that is current in this thread when it makes progress, and
 * before 1.19 fails, or crashes, if there is none.
 *
 * @module
 */
import type { CudaDevice } from "../device/mod.ts";

/** The GPU whose memory this thread gave to UCX last. The thread's, as the current context is. */
let latest: WeakRef<CudaDevice> | null = null;

/** Makes a context current, if none is, for memory of a GPU that is given to UCX. */
export function useGpu(device: CudaDevice): void {
  device.ensureCurrent();
  if (latest?.deref() !== device) latest = new WeakRef(device);
}

// law ucx/ensureGpuContext: ucx/pool_staging
/**
 * The same before UCX makes progress: other libraries of this thread may have left none. A driver that refuses is no
 * error here, where no caller could handle it: UCX reports what it cannot copy.
 */
export function ensureGpuContext(): void {
  if (latest === null) return;
  const device = latest.deref();
  if (device === undefined || device.isGone) {
    latest = null;
    return;
  }
  try {
    device.ensureCurrent();
  } catch {
    latest = null; // its context is lost, and stays so
  }
}
