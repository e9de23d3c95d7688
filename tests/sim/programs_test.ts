/** The simulator runs correct programs correctly in every order, and exposes faults in the others. */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { type Schedule, simulateDriver } from "../../src/sim/mod.ts";
import { check, fc, scaled } from "../support/property.ts";
import { orders, type Program, programs, reference } from "../support/driver_programs.ts";
import { run, type RunOptions } from "../support/run_raw_driver.ts";

const schedules: readonly Schedule[] = ["latest", "random", "round-robin"];

function simulate(program: Program, schedule: Schedule, seed: number, options: RunOptions = {}): number[][] {
  using simulated = simulateDriver({ devices: program.devices, schedule, seed });
  const bytes = run(simulated.driver, program, options);
  const { streams, events, allocations, contexts, queued } = simulated.live;
  assertEquals([streams, events, allocations, contexts, queued], [0, 0, 0, 0, 0], "something is left");
  return bytes;
}

for (const schedule of schedules) {
  test(`a program with the order that it needs gives the same bytes by every seed (${schedule})`, () => {
    check(
      fc.property(
        fc.integer({ min: 1, max: 3 }).chain((n) => programs(n)),
        fc.nat(),
        fc.boolean(),
        (program, seed, pinned) => {
          assertEquals(simulate(program, schedule, seed, { pinned }), reference(program));
        },
      ),
      300,
    );
  });
}

test("the same seed repeats a run, wrong bytes included", () => {
  check(
    fc.property(programs(2), fc.nat(), fc.nat(), (program, seed, edge) => {
      const without = edge % Math.max(1, orders(program));
      assertEquals(simulate(program, "random", seed, { without }), simulate(program, "random", seed, { without }));
    }),
    100,
  );
});

test("a program that lacks one wait gives wrong bytes by some seed", () => {
  const generated = fc.sample(programs(2, { maxLength: 40, watched: true }), { numRuns: scaled(60), seed: 4 });
  let removed = 0;
  let seen = 0;
  for (const program of generated) {
    const right = JSON.stringify(reference(program));
    for (let without = 0; without < orders(program); without++) {
      removed++;
      const wrong = (seed: number) =>
        JSON.stringify(simulate(program, schedules[seed % 2] ?? "random", seed, { without })) !== right;
      if (Array.from({ length: 24 }, (_, seed) => seed).some(wrong)) seen++;
    }
  }
  assert(removed > scaled(100), `${removed} waits to remove are too few to tell`);
  assert(seen > 0.75 * removed, `only ${seen} of ${removed} missing waits were seen`);
});
