/** DLPack on device memory: the same address, the consumer's order, and a free that waits for the consumer. */
import { assertEquals } from "@std/assert";
import process from "node:process";
import { test } from "node:test";
import { missingGpus } from "../support/gpu.ts";
import { needs } from "../support/needs.ts";
import { consumeWhileFreeing, dlpackBehaviours } from "./dlpack_behaviours.ts";
import { realRoot } from "../support/cuda_root.ts";

/** The controls do what the checker exists to detect. */
const checked = process.env["CAUSEWAY_CHECK"] ? "it is a race, which the checker would report" : null;

for (const { name, devices, run } of dlpackBehaviours) {
  test(...needs(missingGpus(devices), name), () => run(realRoot));
}

for (const on of ["the same device", "a peer"] as const) {
  const missing = missingGpus(on === "a peer" ? 2 : 1);

  test(...needs(missing, `memory that a consumer on ${on} has released is freed after the consumer's work`), () => {
    const { right, reused } = consumeWhileFreeing(realRoot, "ordered", on);
    assertEquals(reused, true, "the pool must give the same memory again, or this shows nothing");
    assertEquals(right, true);
  });

  test(
    ...needs(checked ?? missing, `control: without that order the consumer on ${on} reads what came after it`),
    () => {
      const { right, reused } = consumeWhileFreeing(realRoot, "unordered", on);
      assertEquals(reused, true, "the pool must give the same memory again, or this shows nothing");
      assertEquals(right, false, "the race was not seen: the test above shows nothing on this machine");
    },
  );
}
