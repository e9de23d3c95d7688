/** The causality checker reports exactly what is unordered: no false positives, no misses. */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { CausalityError, checkDriver } from "../../src/checker/mod.ts";
import { type Schedule, simulateDriver } from "../../src/sim/mod.ts";
import { nullDriver } from "../support/null_driver.ts";
import { check, checkUntil, fc, scaled } from "../support/property.ts";
import { type Choice, choices, judge, Session, type Verdict } from "../support/checker_oracle.ts";
import { orders, type Program, programs, reference } from "../support/driver_programs.ts";
import { run } from "../support/run_raw_driver.ts";

/** The step at which the checker throws, and the bytes it names. */
function findOut(
  session: Session,
  program: readonly Choice[],
): { step: number; address: bigint; bytes: number } | null {
  for (const [step, choice] of program.entries()) {
    session.step = step;
    try {
      session.perform(choice);
    } catch (error) {
      if (!(error instanceof CausalityError)) throw error;
      const { kind, address, bytes } = error.report;
      assertEquals(kind, "race");
      return { step, address: address ?? 0n, bytes };
    }
  }
  return null;
}

function name(verdict: Verdict, session: Session): string[] {
  return verdict.overlaps.map(({ life, from, to }) =>
    `${(session.addresses.get(life) ?? 0n) + BigInt(from)} ${to - from}`
  );
}

test("the first unordered access is reported at its call, with bytes that both touch, and nothing else ever", () => {
  const counts = { right: 0, wrong: 0 };
  check(
    fc.property(choices, fc.integer({ min: 1, max: 2 }), (program, devices) => {
      const made = nullDriver(devices);
      const checker = checkDriver(made.driver);
      const session = new Session(checker.driver, made, devices);
      const seen = findOut(session, program);
      const verdict = session.judge.verdict();
      session.close();
      if (verdict === null) counts.right++;
      else counts.wrong++;
      assertEquals(seen?.step, verdict?.step);
      if (seen === null || verdict === null) return;
      const bytes = name(verdict, session);
      assert(bytes.includes(`${seen.address} ${seen.bytes}`), `${seen.address} ${seen.bytes} is none of ${bytes}`);
    }),
    1500,
  );
  console.log(`${counts.right} programs without a race, ${counts.wrong} with one`);
  assert(counts.right > scaled(200) && counts.wrong > scaled(200), "too few of one kind to tell");
});

const schedules: readonly Schedule[] = ["latest", "random", "round-robin"];

function runChecked(program: Program, schedule: Schedule, seed: number, without: number | null): number[][] {
  using simulated = simulateDriver({ devices: program.devices, schedule, seed });
  const checker = checkDriver(simulated.driver);
  const bytes = run(checker.driver, program, without === null ? {} : { without });
  checker.close();
  return bytes;
}

test("a program with the order that it needs is not reported; without a needed part of it, it is", async () => {
  const counts = { needed: 0, spare: 0 };
  await checkUntil(
    () => counts.needed > scaled(100), // the daily run's 50 programs had 75 to 131
    fc.property(
      fc.integer({ min: 1, max: 3 }).chain((devices) => programs(devices)),
      fc.constantFrom(...schedules),
      fc.nat(),
      (program, schedule, seed) => {
        assertEquals(runChecked(program, schedule, seed, null), reference(program));
        for (let without = 0; without < orders(program); without++) {
          const isNeeded = judge(program, without) !== null;
          counts[isNeeded ? "needed" : "spare"]++;
          let thrown: unknown = null;
          try {
            runChecked(program, schedule, seed, without);
          } catch (error) {
            thrown = error;
          }
          assertEquals(thrown instanceof CausalityError ? thrown.kind : thrown, isNeeded ? "race" : null);
        }
      },
    ),
    100,
  );
  console.log(`${counts.needed} waits left out that were needed, ${counts.spare} that were not`);
  assert(counts.needed > scaled(100), "too few to tell");
});
