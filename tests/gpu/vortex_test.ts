/** Vortex's numbers decoded by kernels of a GPU, and buffers of Vortex that are on one. */
import { test } from "node:test";
import { realRoot } from "../support/cuda_root.ts";
import { missingGpus } from "../support/gpu.ts";
import { needs } from "../support/needs.ts";
import { vortexBehaviours } from "./vortex_behaviours.ts";
import { vortexBufferBehaviours } from "./vortex_buffer_behaviours.ts";

for (const { name, devices, run } of [...vortexBehaviours, ...vortexBufferBehaviours]) {
  test(...needs(missingGpus(devices), name), () => run(realRoot));
}
