/**
 * Kernels for decoding, compiled once for each device on demand and closed with it.
 *
 * @module
 */
import { type CudaDevice, type Kernel, type Program, ProgramCache } from "../../device/mod.ts";
import type { NumberKernel } from "./number_kernels.ts";

const programs = new ProgramCache<Program>();

/** A kernel, compiled by the driver on first use. */
export function kernelOn(device: CudaDevice, { key, ptx }: NumberKernel): Kernel {
  return programs.get(device, key, () => device.loadPtx(ptx())).kernel("decode");
}
