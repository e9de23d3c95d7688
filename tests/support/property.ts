/**
 * Runs fast-check properties the same way everywhere: every run's seed is printed, and the number of cases scales.
 *
 * - `CAUSEWAY_SEED=n` repeats a run.
 * - `CAUSEWAY_RUNS=k` multiplies the number of cases (`deno task test --runs=k` sets it).
 */
import fc from "fast-check";
import process from "node:process";

const seed = Number(process.env["CAUSEWAY_SEED"] ?? (Date.now() ^ (process.pid << 12)) >>> 0) | 0;
const factor = Number(process.env["CAUSEWAY_RUNS"] ?? 1);
if (!Number.isFinite(factor) || factor <= 0) throw new RangeError(`CAUSEWAY_RUNS is a positive factor, got ${factor}`);
console.log(`seed ${seed} (repeat with CAUSEWAY_SEED=${seed}), runs x${factor}`);

/**
 * Asserts a property on `runs` generated cases (times `CAUSEWAY_RUNS`).
 *
 * @param property from `fc.property` or `fc.asyncProperty`
 * @param runs how many cases without `CAUSEWAY_RUNS`
 * @param options `endOnFailure`: report the first failing case unshrunk. Where one failure may cause the next, as on a
 *   GPU, a smaller case that also fails says nothing about the cause. `examples`: the first cases, for what must not be
 *   left to chance
 */
export function check<T>(
  property: fc.IRawProperty<T>,
  runs = 1000,
  options: { readonly endOnFailure?: boolean; readonly examples?: T[] } = {},
): void | Promise<void> {
  return fc.assert(property, { ...options, seed, numRuns: Math.max(1, Math.round(runs * factor)) });
}

/**
 * Asserts a property on `runs` generated cases (times `CAUSEWAY_RUNS`), and on more until the test has seen enough of
 * some kind: for kinds that only running a case tells. Of others the generator can make as many as are needed.
 *
 * @param isEnough whether it has; the test asserts it afterwards
 */
export async function checkUntil<T>(
  isEnough: () => boolean,
  property: fc.IRawProperty<T>,
  runs: number,
  options: { readonly endOnFailure?: boolean } = {},
): Promise<void> {
  const numRuns = Math.max(1, Math.round(runs * factor));
  for (let round = 0; round === 0 || (!isEnough() && round < 20); round++) {
    await fc.assert(property, { ...options, seed: (seed + round) | 0, numRuns });
  }
}

/** How many cases a handwritten loop should run. */
export function scaled(runs: number): number {
  return Math.max(1, Math.round(runs * factor));
}

export { fc };
