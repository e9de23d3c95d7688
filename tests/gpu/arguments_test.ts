/** What kernels accept as arguments, on real GPUs. */
import { test } from "node:test";
import { missingGpus } from "../support/gpu.ts";
import { needs } from "../support/needs.ts";
import { argumentBehaviours } from "./argument_behaviours.ts";
import { realRoot } from "../support/cuda_root.ts";

for (const { name, devices, run } of argumentBehaviours) {
  test(...needs(missingGpus(devices), name), () => run(realRoot));
}
