/** Arrow arrays in device memory: the same addresses, the producer's event, and a free that waits for the consumer. */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { missingGpus } from "../support/gpu.ts";
import { needs } from "../support/needs.ts";
import { arrowBehaviours, consumeArrowWhileFreeing } from "./arrow_behaviours.ts";
import { realRoot } from "./root.ts";

for (const { name, devices, run } of arrowBehaviours) test(...needs(missingGpus(devices), name), () => run(realRoot));

const missing = missingGpus();

test(
  ...needs(missing, "an Arrow consumer waits for the producer's event, and the memory is freed after its work"),
  () => {
    const { right, reused } = consumeArrowWhileFreeing(realRoot, "ordered");
    assertEquals(reused, true, "the pool must give the same memory again, or this shows nothing");
    assertEquals(right, true);
  },
);

test(...needs(missing, "control: a consumer that ignores the event reads what was there before"), () => {
  const { right } = consumeArrowWhileFreeing(realRoot, "event ignored");
  assertEquals(right, false, "the race was not seen: the test above shows nothing on this machine");
});
