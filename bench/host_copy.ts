/**
 * Copies in host memory beside NumPy's, in one run. Prints Markdown.
 *
 * Goals, as multiples of NumPy's time: moves 1.3 for large copies and 1.5 in the caches; transposes 0.6 and 1.5;
 * contiguous copies 1.05 and 1.2; up to 100 elements 1, also where the arrays are sliced anew for each copy, or 1.5
 * where they are converted. What is met, and what is not, is in bench/results.
 *
 * ```sh
 * CAUSEWAY_PYTHON=venv/bin/python deno run -A bench/host_copy.ts
 * CAUSEWAY_PYTHON=venv/bin/python bun bench/host_copy.ts 5 transpose   # rounds, and a part of the names
 * ```
 *
 * Both sides alternate, in rounds; the median of all rounds counts for each. The peer needs numpy.
 */
import process from "node:process";
import { type HostCase, moveCases } from "./host_copy/moves.ts";
import { sliceCases } from "./host_copy/slices.ts";
import { headOf, median, Peer } from "./peer.ts";

/** Nanoseconds that each side spends on a case in each round. */
const TURN = 4e7;

const [rounds = "9", part = ""] = process.argv.slice(2);

/** The sections, each with all cases of a kind. */
const sections: Record<string, () => HostCase[]> = { Moves: moveCases, "New slices": sliceCases };

/** Nanoseconds per call, which is repeated until about the requested time has passed. */
function measured(run: () => void, enough: number): number {
  for (let times = 1;;) {
    const start = performance.now();
    for (let i = 0; i < times; i++) run();
    const taken = (performance.now() - start) * 1e6;
    if (taken >= enough / 2) return taken / times;
    times = Math.max(times * 2, Math.floor(times * enough / Math.max(taken, 1) * 0.8));
  }
}

using python = Peer.python("host_copy_peer.py");
const numpy = await python.hear();
if (typeof numpy !== "string") {
  console.log("Not measured: install numpy, and set CAUSEWAY_PYTHON.");
  process.exit(0);
}
console.log(headOf({ NumPy: numpy }, `medians of ${rounds} rounds`));
let failures = 0;
for (const [section, cases] of Object.entries(sections)) {
  console.log(`### ${section}\n\n| copy | ours (us) | NumPy (us) | ratio | goal | |\n|---|--:|--:|--:|--:|---|`);
  for (const { name, goal, make } of cases()) {
    if (!name.includes(part)) continue;
    const { run, copies, question } = make();
    await python.ask(question);
    const [ours, theirs]: [number[], number[]] = [[], []];
    measured(run, TURN); // engines compile code that has run for a while
    for (let round = 0; round < Number(rounds); round++) {
      ours.push(measured(run, TURN) / copies);
      theirs.push(Number(await python.ask(TURN)));
    }
    const ratio = median(ours) / median(theirs);
    const isSlow = ratio > goal;
    if (isSlow) failures++;
    const us = (times: number[]) => (median(times) / 1000).toPrecision(3);
    console.log(`| ${name} | ${us(ours)} | ${us(theirs)} | ${ratio.toFixed(2)} | ${goal} | ${isSlow ? "slow" : ""} |`);
  }
}
console.log(`\n${failures === 0 ? "All claims hold" : `${failures} claims fail`}.`);
process.exitCode = failures === 0 ? 0 : 1;
