/** Captures and graphs on a real GPU. */
import { test } from "node:test";
import { missingGpus } from "../support/gpu.ts";
import { needs } from "../support/needs.ts";
import { graphBehaviours } from "./graph_behaviours.ts";
import { realRoot } from "../support/cuda_root.ts";

for (const { name, devices, run } of graphBehaviours) {
  test(...needs(missingGpus(devices), name), () => run(realRoot));
}
