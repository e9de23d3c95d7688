/** Runs the GPU tests on simulated GPUs, whose memory is real to the host. */
import { test } from "node:test";
import { patiently } from "../support/child.ts";
import { simulatedRoot } from "../support/simulated_roots.ts";
import { ucxBehaviours } from "../gpu/ucx_behaviours.ts";
import { sendToAnotherProcess } from "../support/ucx_pair.ts";
import { soak } from "../support/ucx_soak.ts";

const simulated: readonly (readonly [name: string, run: () => Promise<void>])[] = [
  ...ucxBehaviours.map(({ name, run }) =>
    [name, async () => {
      for (const root of [simulatedRoot("latest", 0), simulatedRoot("random", 1)]) await run(root);
    }] as const
  ),
  ["memory of every place is sent to another process and back", async () => {
    for (const size of [8, 1 << 20]) await sendToAnotherProcess("simulated", 0, size);
  }],
  ["many messages of any size from and to memory of every place arrive whole", async () => {
    await soak("simulated", 0, 1000);
  }],
];

for (const [name, run] of simulated) test(`simulated: ${name}`, patiently, run);
