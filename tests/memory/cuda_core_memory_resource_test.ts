/**
 * What cuda.core promises about its memory resources, tested on simulated devices in many orders. The same tests run on
 * GPUs: tests/gpu.
 */
import { test } from "node:test";
import { simulatedRoots } from "../support/simulated_roots.ts";
import { cudaCoreMemoryResources } from "../support/cuda_core_memory_resource.ts";

for (const { name, run } of cudaCoreMemoryResources) {
  test(name, async () => {
    for (const root of simulatedRoots) await run(root);
  });
}
