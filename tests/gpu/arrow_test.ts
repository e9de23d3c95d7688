/** Arrow arrays in device memory: the same addresses, the producer's event, and a free that waits for the consumer. */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { missingGpus } from "../support/gpu.ts";
import { needs } from "../support/needs.ts";
import { arrowBehaviours, consumeArrowWhileFreeing } from "./arrow_behaviours.ts";
import { realRoot } from "../support/cuda_root.ts";

for (const { name, devices, run } of arrowBehaviours) test(...needs(missingGpus(devices), name), () => run(realRoot));

const missing = missingGpus();

test(
  ...needs(missing, "an Arrow consumer waits for the producer's event, and the memory is freed after its work"),
  () => {
    for (const how of ["imported", "by a consumer in C"] as const) {
      const { right, reused } = consumeArrowWhileFreeing(realRoot, how);
      assertEquals(reused, true, `${how}: the pool must give the same memory again, or this shows nothing`);
      assertEquals(right, true, how);
    }
  },
);
