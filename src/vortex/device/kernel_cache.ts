/**
 * Kernels that decoding has needed, compiled once for each device and closed with it.
 *
 * @module
 */
import { type CudaDevice, type Kernel, PerDevice, type Program } from "../../device/mod.ts";
import type { NumberKernel } from "./number_kernels.ts";

/** How many are kept for each device: those used last. */
const enough = 256;

/** By their keys; what was used last comes last. */
const caches = new PerDevice<Map<string, Program>>(
  () => new Map(),
  (programs, device) => {
    if (programs.size > 0) device.synchronize(); // code that runs must stay
    for (const program of programs.values()) program.close();
  },
);

/** A kernel, which the driver compiles at first use. */
export function kernelOn(device: CudaDevice, { key, ptx }: NumberKernel): Kernel {
  const programs = caches.of(device);
  const program = programs.get(key) ?? device.loadPtx(ptx());
  programs.delete(key); // so that it comes last
  programs.set(key, program);
  if (programs.size > enough) {
    const [oldest] = programs;
    if (oldest !== undefined) {
      programs.delete(oldest[0]);
      device.synchronize(); // code that runs must stay
      oldest[1].close();
    }
  }
  return program.kernel("decode");
}
