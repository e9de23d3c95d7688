/**
 * Producers and consumers of every convention, in random programs: leases, DLPack, the CUDA Array Interface and Arrow,
 * in and out, over several devices and streams. Each must get the bytes that it would get in sequential execution,
 * whatever the streams do; and nothing is leaked.
 */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { liveExports } from "../../src/order/reclaim.ts";
import type { Schedule } from "../../src/public/sim.ts";
import { Cuda } from "../../mod.ts";
import { patiently } from "../support/child.ts";
import { check, fc, scaled } from "../support/property.ts";
import { type Program, reference } from "../support/programs/mod.ts";
import { programs } from "../support/programs/plan.ts";
import { runProgram } from "../support/programs/run.ts";
import { simulatorOf } from "../support/simulator_of.ts";

const schedules: readonly Schedule[] = ["latest", "random", "round-robin"];

function simulate({ devices, hasPeers, isOld }: Program, schedule: Schedule, seed: number, freesWait = true) {
  const cuda = Cuda.simulate({
    devices,
    schedule,
    seed,
    freesWait,
    canAccessPeer: () => hasPeers,
    ...(isOld ? { driverVersion: 12040 } : {}),
    check: { onReport: () => {} },
  });
  const simulated = simulatorOf(cuda);
  return { cuda, simulated };
}

for (const schedule of schedules) {
  test(
    `consumers of every convention see the expected bytes, and nothing is leaked (${schedule})`,
    patiently,
    () => {
      check(
        fc.property(programs(), fc.nat(), fc.boolean(), (program, seed, freesWait) => {
          const live = liveExports();
          const { cuda, simulated } = simulate(program, schedule, seed, freesWait);
          const bytes = runProgram(cuda, program);
          assertEquals(cuda.reports.map(({ message }) => message), []);
          assertEquals(bytes, reference(program));
          assertEquals(liveExports(), live);
          const { streams, events, allocations, pools, contexts, queued } = simulated.live;
          assertEquals(
            { streams, events, allocations, pools, contexts, queued },
            { streams: 0, events: 0, allocations: 0, pools: 0, contexts: 0, queued: 0 },
          );
        }),
        250,
      );
    },
  );
}

test(
  "programs contain few needless waits: most of the waits in them are reported if they are missing",
  patiently,
  () => {
    const generated = fc.sample(programs(), { numRuns: Math.max(60, scaled(60)), seed: 4 });
    let [removed, reported] = [0, 0];
    for (const [seed, program] of generated.entries()) {
      const orders = program.steps.filter((step) => step.do === "order").length;
      for (let without = 0; without < orders; without++) {
        const { cuda } = simulate(program, "latest", seed);
        runProgram(cuda, program, without);
        removed++;
        if (cuda.reports.length > 0) reported++;
      }
    }
    assert(removed > 50, `${removed} waits to remove are too few to tell`);
    assert(reported > 0.6 * removed, `only ${reported} of ${removed} missing waits were reported`);
  },
);
