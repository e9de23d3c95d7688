/** Devices, streams, events and memory on a real GPU. */
import { test } from "node:test";
import { missingGpus } from "../support/gpu.ts";
import { needs } from "../support/needs.ts";
import { cudaBehaviours } from "./cuda_behaviours.ts";
import { realRoot } from "../support/cuda_root.ts";

for (const { name, devices, run } of cudaBehaviours) {
  test(...needs(missingGpus(devices), name), () => run(realRoot));
}
