/** Runs the GPU tests on simulated GPUs, whose memory is real to the host. */
import { test } from "node:test";
import { patiently } from "../support/child.ts";
import { simulatedRoot } from "../support/simulated_roots.ts";
import { ucxBehaviours } from "../gpu/ucx_behaviours.ts";
import { sendToAnotherProcess } from "../support/ucx_pair.ts";
import { soak } from "../support/ucx_soak.ts";

for (const { name, run } of ucxBehaviours) {
  test(`simulated: ${name}`, patiently, async () => {
    for (const root of [simulatedRoot("latest", 0), simulatedRoot("random", 1)]) await run(root);
  });
}

test("simulated: memory of every place is sent to another process and back", patiently, async () => {
  for (const size of [8, 1 << 20]) await sendToAnotherProcess("simulated", 0, size);
});

test("simulated: many messages of any size from and to memory of every place arrive whole", patiently, async () => {
  await soak("simulated", 0, 1000);
});
