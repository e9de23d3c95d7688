/**
 * Waiting for all work of a device, before something that the work may use is closed.
 *
 * @module
 */
import { isSticky } from "../driver/mod.ts";
import type { CudaDevice } from "./device.ts";

// law device/waitForDevice: device/kernel/program_cache, order/deferred_free, memory/staging
/** Makes the host wait for all work of a device. In a context that is lost there is nothing left to wait for. */
export function waitForDevice(device: CudaDevice): void {
  try {
    device.synchronize(); // reports the error, if the cause is something else
  } catch (error) {
    if (!isSticky(error)) throw error;
  }
}
