/**
 * Messages between all GPUs of the machine, one process per GPU: the rate of every pair, one after the other and all at
 * once, beside the driver's copy between the same two GPUs in one of the processes. Every received byte is compared.
 * Prints Markdown.
 *
 * Needs two GPUs or more, and a UCX with CUDA.
 *
 * Usage: ucx_mesh.ts [MiB of a message, default 256]
 *
 * @module
 */
import process from "node:process";
import { Cuda } from "../mod.ts";
import { missingUcxCuda } from "../tests/support/gpu.ts";
import { Mesh } from "../tests/support/ucx_mesh.ts";

const missing = missingUcxCuda(2);
if (missing !== null) {
  console.log(`Not measured: ${missing}.`);
  process.exit(0);
}

const bytes = Number(process.argv[2] ?? 256) << 20;
const times = 100; // the two do not begin at the same moment
const { devices } = Cuda.open();
const all = devices.map(({ ordinal }) => ordinal);
const others = (one: number) => all.filter((other) => other !== one);
await using mesh = await Mesh.start(all.length, bytes);
let wrong = 0;

/** Gigabytes a second from one to the other. */
async function pair(from: number, to: number, count: number): Promise<number> {
  const answers = await mesh.tell((one) =>
    one === from ? { to: [to], from: [], count } : one === to ? { to: [], from: [from], count } : null
  );
  for (const answer of answers) wrong += answer.wrong;
  return count * bytes / 1e9 / Math.max(...answers.map(({ seconds }) => seconds));
}

const number = (value: number) => value.toFixed(0);

function table(title: string, cells: readonly (readonly string[])[]): void {
  console.log(`\n### ${title}\n\n| from \\ to | ${all.join(" | ")} |\n|---|${all.map(() => "---|").join("")}`);
  for (const [i, row] of cells.entries()) console.log(`| ${i} | ${row.join(" | ")} |`);
}

const { bun } = process.versions;
console.log(`## ${bun === undefined ? `Deno ${process.versions["deno"]}` : `Bun ${bun}`}\n`);
console.log(`${all.length} x ${devices[0]?.name}; messages of ${bytes >> 20} MiB, ${times} for each pair.`);
const sent: number[][] = [];
const copied: number[][] = [];
for (const from of all) {
  const [one, other]: [number[], number[]] = [[], []];
  for (const to of all) {
    if (to === from) {
      one.push(NaN);
      other.push(NaN);
      continue;
    }
    await pair(from, to, 2); // the other process maps the memory
    one.push(await pair(from, to, times));
    const [answer] = await mesh.tell((child) => child === from ? { copyTo: to, count: times } : null);
    other.push(times * bytes / 1e9 / (answer?.seconds ?? NaN));
  }
  sent.push(one);
  copied.push(other);
}
const cell = (value: number, show: (value: number) => string) => Number.isNaN(value) ? "-" : show(value);
table("UCX, GB/s, one pair at a time", sent.map((row) => row.map((value) => cell(value, number))));
table("The driver's copy, GB/s", copied.map((row) => row.map((value) => cell(value, number))));
const ratios = sent.map((row, i) => row.map((value, j) => value / (copied[i]?.[j] ?? NaN)));
table("UCX in terms of it", ratios.map((row) => row.map((value) => cell(value, (one) => one.toFixed(2)))));

const rounds = 30;
const answers = await mesh.tell((one) => ({ to: others(one), from: others(one), count: rounds }));
for (const answer of answers) wrong += answer.wrong;
const total = all.length * (all.length - 1) * rounds * bytes / 1e9 / Math.max(...answers.map(({ seconds }) => seconds));
console.log(`\nAll ${all.length * (all.length - 1)} pairs at once, ${rounds} messages each: ${number(total)} GB/s.`);
console.log(`Messages that were not what was sent: ${wrong}.`);
console.log(`By ${[...new Set(answers.flatMap(({ transports }) => transports))].join(", ")}.`);
process.exitCode = wrong === 0 ? 0 : 1;
