/**
 * Kernels for decoding, compiled once per device on demand and closed with the device.
 *
 * @module
 */
import { type CudaDevice, type Kernel, PerDevice, type Program } from "../../device/mod.ts";
import type { NumberKernel } from "./number_kernels.ts";

/** The number of most recently used programs kept per device. */
const enough = 256;

/** Programs by key, least recently used first. */
const caches = new PerDevice<Map<string, Program>>(
  () => new Map(),
  (programs, device) => {
    if (programs.size > 0) device.synchronize(); // running code must stay loaded
    for (const program of programs.values()) program.close();
  },
);

/** A kernel, compiled by the driver on first use. */
export function kernelOn(device: CudaDevice, { key, ptx }: NumberKernel): Kernel {
  const programs = caches.of(device);
  const program = programs.get(key) ?? device.loadPtx(ptx());
  programs.delete(key); // to move it to the end
  programs.set(key, program);
  if (programs.size > enough) {
    const [oldest] = programs;
    if (oldest !== undefined) {
      programs.delete(oldest[0]);
      device.synchronize(); // running code must stay loaded
      oldest[1].close();
    }
  }
  return program.kernel("decode");
}
