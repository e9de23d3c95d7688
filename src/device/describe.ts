/**
 * What a console shows for devices.
 *
 * @module
 */
import { quoted, showBytes } from "../layout/mod.ts";
import type { CudaDevice } from "./device.ts";
import { besideCaptures } from "./relaxed_capture.ts";

// law device/describeDevice: public/inspect
/** Its number, names and memory. Memory in use is only shown if a context exists already, which the query needs. */
export function describeDevice(device: CudaDevice): string {
  const { ordinal, label, name } = device;
  const what = `${ordinal}${quoted(label)}: ${name}`;
  if (device.isClosed) return `${what}, closed`;
  if (!device.isActive) return `${what}, ${showBytes(device.totalMemory)}, not in use`;
  const { free, total } = besideCaptures(device.driver, () => device.memoryInfo());
  return `${what}, ${showBytes(total - free)} of ${showBytes(total)} in use`;
}
