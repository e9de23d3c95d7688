/** Correct programs are not reported: the GPU behaviour tests, and random programs of resources, under the checker. */
import { assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { CausalityError } from "../../src/checker/mod.ts";
import { type Schedule, SimulatedDriver } from "../../src/public/sim.ts";
import { Cuda } from "../../mod.ts";
import { arrowBehaviours } from "../gpu/arrow_behaviours.ts";
import { cudaBehaviours } from "../gpu/cuda_behaviours.ts";
import { consumeWhileFreeing, dlpackBehaviours } from "../gpu/dlpack_behaviours.ts";
import { graphBehaviours } from "../gpu/graph_behaviours.ts";
import type { Root } from "../support/cuda_root.ts";
import { runBuffers } from "../support/run_buffers.ts";
import { drainFrees } from "../../src/order/deferred_free.ts";
import { check, fc } from "../support/property.ts";
import { programs, reference, resources } from "../support/driver_programs.ts";

/** Some of these close their Cuda before the objects they made through it: that is allowed, but looks like a leak. */
const order = { leaks: false } as const;

function root(schedule: Schedule, seed: number): Root {
  return {
    open: () => Cuda.simulate({ devices: 2, schedule, seed, check: order }),
    bytes: 4096,
    isSlow: schedule === "latest",
  };
}

const roots: readonly Root[] = [
  root("latest", 0),
  root("round-robin", 0),
  ...[0, 1, 2, 3].map((seed) => root("random", seed)),
];

for (const { name, run } of [...cudaBehaviours, ...dlpackBehaviours, ...arrowBehaviours, ...graphBehaviours]) {
  test(`not reported: ${name}`, async () => {
    for (const one of roots) await run(one);
  });
}

test("memory that a consumer has released is not reported, unless its free is not ordered after the consumer's work", () => {
  for (const one of roots) {
    assertEquals(consumeWhileFreeing(one, "ordered").right, true);
    assertThrows(() => consumeWhileFreeing(one, "unordered"), Error); // a race, and errors from closing what is left
  }
  const error = assertThrows(() => consumeWhileFreeing(root("latest", 0), "unordered"), Error);
  const reported: unknown[] = [];
  for (let one: unknown = error; one instanceof Error; one = Reflect.get(one, "suppressed")) {
    reported.push(one, Reflect.get(one, "error"));
  }
  assertEquals(reported.some((one) => one instanceof CausalityError && one.kind === "race"), true);
});

for (const schedule of ["latest", "random", "round-robin"] as const) {
  test(`random programs of all memory resources are not reported, in whatever order all is closed (${schedule})`, () => {
    const anyPrograms = fc.integer({ min: 1, max: 2 }).chain((devices) =>
      programs(devices, { resources, abroad: true })
    );
    check(
      fc.property(anyPrograms, fc.nat(), fc.boolean(), fc.nat(23), (program, seed, pinned, ending) => {
        const cuda = Cuda.simulate({ devices: program.devices, schedule, seed, check: order });
        const { bytes } = runBuffers(cuda, program, { pinned, ending }); // how memory is freed is tested elsewhere
        assertEquals([bytes, cuda.reports], [reference(program), []]);
        drainFrees(); // while there is still a driver
        SimulatedDriver.of(cuda.driver)?.close();
      }),
      80,
    );
  });
}
