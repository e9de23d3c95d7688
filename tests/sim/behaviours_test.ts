/** The GPU behaviour tests, here on simulated GPUs in many orders. */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { arrowBehaviours, consumeArrowWhileFreeing } from "../gpu/arrow_behaviours.ts";
import { cudaBehaviours } from "../gpu/cuda_behaviours.ts";
import { consumeWhileFreeing, dlpackBehaviours } from "../gpu/dlpack_behaviours.ts";
import { argumentBehaviours } from "../gpu/argument_behaviours.ts";
import { graphBehaviours } from "../gpu/graph_behaviours.ts";
import { simulatedRoot, simulatedRoots } from "../support/simulated_roots.ts";

function seeds(count: number): number[] {
  return Array.from({ length: count }, (_, seed) => seed);
}

for (
  const { name, run } of [
    ...cudaBehaviours,
    ...dlpackBehaviours,
    ...arrowBehaviours,
    ...graphBehaviours,
    ...argumentBehaviours,
  ]
) {
  test(`simulated: ${name}`, async () => {
    for (const one of simulatedRoots) await run(one);
  });
}

for (const on of ["the same device", "a peer"] as const) {
  test(`simulated: memory that a consumer on ${on} has released is freed after the consumer's work`, () => {
    for (const one of [...simulatedRoots, ...seeds(64).map((seed) => simulatedRoot("random", seed))]) {
      const { right, reused } = consumeWhileFreeing(one, "ordered", on);
      assertEquals(reused, true, "the pool must give the same memory again, or this shows nothing");
      assertEquals(right, true);
    }
  });

  test(`simulated control: without that order the consumer on ${on} reads later bytes, by some seed`, () => {
    const isWrong = (seed: number) => !consumeWhileFreeing(simulatedRoot("random", seed), "unordered", on).right;
    assert(seeds(64).some(isWrong), "no seed shows the race: the test above shows nothing");
  });
}

test("simulated: an Arrow consumer waits for the producer's event, and the memory is freed after its work", () => {
  for (const one of [...simulatedRoots, ...seeds(64).map((seed) => simulatedRoot("random", seed))]) {
    for (const how of ["imported", "by a consumer in C"] as const) {
      const { right, reused } = consumeArrowWhileFreeing(one, how);
      assertEquals(reused, true, "the pool must give the same memory again, or this shows nothing");
      assertEquals(right, true, how);
    }
  }
});

test("simulated control: a consumer that ignores the event reads what was there before, by some seed", () => {
  const wrong = seeds(64).filter((seed) =>
    !consumeArrowWhileFreeing(simulatedRoot("random", seed), "event ignored").right
  );
  assert(wrong.length > 0, "no seed shows the race: the test above shows nothing");
});
