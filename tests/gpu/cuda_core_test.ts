/** What cuda.core promises about buffers, memory resources and peer access, on GPUs. */
import { test } from "node:test";
import { cudaCoreBuffer } from "../support/cuda_core_buffer.ts";
import { cudaCoreMemoryResources } from "../support/cuda_core_memory_resource.ts";
import { cudaCorePeerAccess } from "../support/cuda_core_peer_access.ts";
import { missingGpus } from "../support/gpu.ts";
import { needs } from "../support/needs.ts";
import { realRoot } from "../support/cuda_root.ts";

for (const { name, devices, run } of [...cudaCoreBuffer, ...cudaCoreMemoryResources, ...cudaCorePeerAccess]) {
  test(...needs(missingGpus(devices), name), () => run(realRoot));
}
