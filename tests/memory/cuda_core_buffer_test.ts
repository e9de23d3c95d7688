/**
 * What cuda.core promises about its Buffer, tested on simulated devices in many orders. The same tests run on GPUs:
 * tests/gpu.
 */
import { test } from "node:test";
import { simulatedRoots } from "../support/simulated_roots.ts";
import { cudaCoreBuffer } from "../support/cuda_core_buffer.ts";

for (const { name, run } of cudaCoreBuffer) {
  test(name, async () => {
    for (const root of simulatedRoots) await run(root);
  });
}
