/**
 * Kernels for copies, compiled once for each device and closed with it.
 *
 * @module
 */
import { type CudaDevice, type Kernel, ProgramCache } from "../device/mod.ts";
import type { CopyPlan } from "./device_plan.ts";
import type { CopyKernel } from "./ptx_fragments.ts";
import { packedKernel } from "./packed_kernel.ts";
import type { PackedPart } from "./packed_plan.ts";
import { stridedKernel } from "./strided_kernel.ts";
import { tiledKernel } from "./tiled_kernel.ts";

/** The plan of one kernel. */
export type KernelPlan = Extract<CopyPlan, { readonly kind: "strided" | "tiled" }> | PackedPart;

/** A kernel that the driver has compiled, and its launch configuration. */
interface ReadyKernel {
  readonly device: CudaDevice;
  readonly kernel: Kernel;
  readonly grid: number;
  readonly block: number;
  /** Whether the program is closed. */
  readonly isClosed: boolean;
  /** Closes the program. */
  close(): void;
}

const kernels = new ProgramCache<ReadyKernel>();

/** The last kernel of each plan. */
const last = new WeakMap<KernelPlan, ReadyKernel>();

/** The kernel of a plan. The driver compiles it on first use. */
export function kernelFor(device: CudaDevice, plan: KernelPlan): ReadyKernel {
  const before = last.get(plan);
  if (before?.device === device && !before.isClosed) return before;
  const ready = kernels.get(device, keyOf(plan), () => compile(device, plan));
  last.set(plan, ready);
  return ready;
}

/** Everything that the code depends on. */
function keyOf(plan: KernelPlan): string {
  if (plan.kind === "packed") return JSON.stringify(plan.problem);
  const { word, axes, conversion } = plan.problem;
  const what = conversion === null ? word : `${conversion.from.name} ${conversion.to.name} ${word}`;
  const how = plan.kind === "tiled" ? `${plan.tile.along} ${plan.tile.lanes}` : "";
  return `${what} ${how} ${axes.map(({ extent, to, from }) => `${extent},${to},${from}`).join(" ")}`;
}

function compile(device: CudaDevice, plan: KernelPlan): ReadyKernel {
  const { ptx, grid, block } = generate(plan);
  using undo = new DisposableStack(); // unless it has the kernel
  const program = undo.use(device.loadPtx(ptx));
  const kernel = program.kernel("copy");
  undo.move();
  let isClosed = false;
  return {
    device,
    kernel,
    grid,
    block,
    get isClosed() {
      return isClosed;
    },
    close: () => {
      isClosed = true;
      program.close();
    },
  };
}

function generate(plan: KernelPlan): CopyKernel {
  switch (plan.kind) {
    case "strided":
      return stridedKernel(plan.problem);
    case "tiled":
      return tiledKernel(plan.problem, plan.tile);
    case "packed":
      return packedKernel(plan.problem);
  }
}
