/**
 * Explains why the driver refused a launch: the driver only reports an invalid argument, or a lack of resources.
 *
 * @module
 */
import { CUresult } from "../../../bindings/cuda_types.ts";
import { type CudaError, cudaError } from "../../driver/mod.ts";
import { formatShape } from "../../layout/mod.ts";
import type { CudaDevice } from "../device.ts";
import type { Kernel } from "./kernel.ts";

/** The extents of a grid and of its blocks. */
export type LaunchShape = readonly [gx: number, gy: number, gz: number, bx: number, by: number, bz: number];

// law device/launchError: device/kernel/explain_launch
/** The error of a launch, with the limits that it exceeds, as far as the driver reports them. */
export function launchError(kernel: Kernel, code: number, shape: LaunchShape, sharedBytes: number): CudaError {
  const { device: { driver }, name } = kernel;
  let why = "";
  if (code === CUresult.CUDA_ERROR_INVALID_VALUE || code === CUresult.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES) {
    try {
      why = reasons(kernel, shape, sharedBytes);
    } catch {
      // If the driver cannot be queried now, nothing more is known.
    }
  }
  return cudaError(driver, `cuLaunchKernel of ${name}`, code, why);
}

const axes = ["X", "Y", "Z"] as const;

// law device/reasons: device/kernel/explain_launch
function reasons(kernel: Kernel, [gx, gy, gz, bx, by, bz]: LaunchShape, sharedBytes: number): string {
  const { device } = kernel;
  const [grid, block] = [[gx, gy, gz], [bx, by, bz]];
  const [gridMost, blockMost] = [limitsOf(device, "MAX_GRID_DIM_"), limitsOf(device, "MAX_BLOCK_DIM_")];
  const [threads, threadsMost] = [bx * by * bz, kernel.attribute("MAX_THREADS_PER_BLOCK")];
  const staticBytes = kernel.attribute("SHARED_SIZE_BYTES");
  const [bytes, bytesMost] = [staticBytes + sharedBytes, device.attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")];
  const found: string[] = [];
  if (threads > threadsMost) {
    const deviceMost = device.attribute("MAX_THREADS_PER_BLOCK");
    const because = threadsMost < deviceMost
      ? `, because of its registers or declared limits; other kernels up to ${deviceMost}`
      : "";
    found.push(
      `A block of ${formatShape(block)} has ${threads} threads: ${kernel.name} takes at most ${threadsMost} on ` +
        `${device}${because}. Make the block smaller, and the grid larger`,
    );
  } else if (exceeds(block, blockMost)) {
    found.push(`A block of ${formatShape(block)} is too large: ${device} takes at most ${formatShape(blockMost)}`);
  }
  if (exceeds(grid, gridMost)) {
    found.push(`A grid of ${formatShape(grid)} is too large: ${device} takes at most ${formatShape(gridMost)}`);
  }
  if (bytes > bytesMost) {
    found.push(`A block would have ${bytes} bytes of shared memory: ${device} allows at most ${bytesMost} per block`);
  }
  if (found.length > 0) return found.join(". ");
  return `A grid of ${formatShape(grid)} and a block of ${
    formatShape(block)
  } with ${bytes} bytes of shared memory are ` +
    `within what ${kernel.name} takes on ${device} (${threadsMost} threads per block): the cause is something else`;
}

function limitsOf(device: CudaDevice, attribute: "MAX_GRID_DIM_" | "MAX_BLOCK_DIM_"): number[] {
  return axes.map((axis) => device.attribute(`${attribute}${axis}`));
}

function exceeds(extents: readonly number[], most: readonly number[]): boolean {
  return extents.some((extent, axis) => extent > (most[axis] ?? Infinity));
}
