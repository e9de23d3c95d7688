/**
 * What cuda.core promises about its peer access, tested on simulated devices in many orders. The same tests run on
 * GPUs: tests/gpu.
 */
import { test } from "node:test";
import { simulatedRoots } from "../support/simulated_roots.ts";
import { cudaCorePeerAccess } from "../support/cuda_core_peer_access.ts";

for (const { name, run } of cudaCorePeerAccess) {
  test(name, async () => {
    for (const root of simulatedRoots) await run(root);
  });
}
