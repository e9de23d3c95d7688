/**
 * Runs every test under Deno and under Bun, side by side where there are processors for both, and adds up both: the last
 * line is `N passed, N failed, N skipped`.
 *
 * Usage: test.ts [--runs=K] [path ...]      --runs: every property on K times as many generated cases
 *
 * @module
 */
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { findBun } from "./bun.ts";

const { values, positionals: paths } = parseArgs({ allowPositionals: true, options: { runs: { type: "string" } } });
if (values.runs !== undefined && !(Number(values.runs) > 0)) {
  console.error(`Expected --runs=K with a positive number K, got --runs=${values.runs}`);
  process.exit(2);
}
const bun = findBun();
const scratch = mkdtempSync(join(tmpdir(), "causeway-test-"));

/** A test that failed, and why: what it threw, which may be all that a process has printed. */
interface Failure {
  readonly name: string;
  readonly why?: string;
}

/** How long a test took. */
interface Duration {
  readonly name: string;
  readonly seconds: number;
}

/** How one runtime did. */
interface Outcome {
  readonly runtime: string;
  readonly seconds: number;
  readonly passed: number;
  readonly failed: readonly Failure[];
  readonly skipped: readonly string[];
  readonly durations: readonly Duration[];
}

/** Runs a command, and prints what it prints, each line after the runtime's name. */
function run(runtime: string, command: string, args: readonly string[]): Promise<number> {
  const env = {
    ...process.env,
    CAUSEWAY_SETUP: "done",
    // For tests of one runtime with the other.
    CAUSEWAY_DENO: process.execPath,
    CAUSEWAY_BUN: bun,
    ...(values.runs === undefined ? {} : { CAUSEWAY_RUNS: values.runs }),
  };
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], env });
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on("line", (line) => console.log(`${runtime.padEnd(4)} | ${line}`));
  }
  child.once("error", reject);
  child.once("close", (code) => resolve(code ?? 1));
  return promise;
}

/** Reads the results that a runtime wrote down in JUnit's format. */
function read(runtime: string, seconds: number, report: string, exitCode: number): Outcome {
  const passed: string[] = [];
  const failed: Failure[] = [];
  const skipped: string[] = [];
  const durations: Duration[] = [];
  if (!existsSync(report)) failed.push({ name: `the runtime itself: exit code ${exitCode}` });
  const cases = /<testcase name="(?<name>[^"]*)"(?<rest>[^>]*?)(?:\/>|>(?<body>.*?)<\/testcase>)/gs;
  for (const { groups } of (existsSync(report) ? readFileSync(report, "utf8") : "").matchAll(cases)) {
    const { name = "", rest = "", body = "" } = groups ?? {};
    durations.push({ name: unescape(name), seconds: Number(/\btime="([^"]*)"/.exec(rest)?.[1] ?? 0) });
    const failure = /<(?:failure|error)[^>]*>(?<why>[^<]*)/.exec(body);
    if (failure !== null) failed.push({ name: unescape(name), why: unescape(failure.groups?.["why"] ?? "") });
    else (body.includes("<skipped") ? skipped : passed).push(unescape(name));
  }
  // A module that does not load, or a runtime that dies, fails no test by name.
  if (exitCode !== 0 && failed.length === 0) failed.push({ name: `the runtime itself: exit code ${exitCode}` });
  if (exitCode === 0 && passed.length === 0) failed.push({ name: "no test ran" });
  return { runtime, seconds, passed: passed.length, failed, skipped, durations };
}

function unescape(text: string): string {
  const characters: { readonly [entity: string]: string } = { lt: "<", gt: ">", quot: '"', apos: "'", amp: "&" };
  return text.replace(/&(#\d+|\w+);/g, (whole, entity: string) => {
    if (entity.startsWith("#")) return String.fromCodePoint(Number(entity.slice(1)));
    return characters[entity] ?? whole;
  });
}

/** The first and the last lines of a text, indented: it says first what went wrong, and a process says so last. */
function shortened(text: string): string {
  const lines = text.trim().split("\n").map((line) => `    ${line.slice(0, 200)}`);
  const left = lines.length - 24;
  if (left > 0) lines.splice(12, left, `    (${left} lines)`);
  return lines.join("\n");
}

/** How many tests were skipped for want of what, which stands at the end of their names. */
function reasons(names: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const name of names) {
    const reason = /\(skipped: (?<reason>.*)\)$/s.exec(name)?.groups?.["reason"] ?? name;
    counts.set(reason, (counts.get(reason) ?? 0) + 1);
  }
  return counts;
}

const targets = paths.length > 0 ? paths : ["tests"];

/** Runs the tests under one runtime. */
async function testUnder(runtime: string, command: string, args: (report: string) => string[]): Promise<Outcome> {
  const start = performance.now();
  const report = join(scratch, `${runtime}.xml`);
  const code = await run(runtime, command, [...args(report), ...targets]);
  return read(runtime, (performance.now() - start) / 1000, report, code);
}

const underDeno = () =>
  testUnder("deno", process.execPath, (report) => ["test", "-A", "--no-check", "--quiet", `--junit-path=${report}`]);
const underBun = () =>
  testUnder("bun", bun, (report) => [
    "test",
    "--timeout",
    "600000",
    "--reporter=junit",
    `--reporter-outfile=${report}`,
  ]);

const outcomes: Outcome[] = [];
try {
  // Tests run one after the other in each of them, on one processor and a little more.
  if (availableParallelism() >= 2) outcomes.push(...await Promise.all([underDeno(), underBun()]));
  else outcomes.push(await underDeno(), await underBun());
} finally {
  rmSync(scratch, { recursive: true });
}

for (const { runtime, durations } of outcomes) {
  console.log(`\nThe slowest of ${runtime}, in seconds:`);
  const slowest = durations.toSorted((one, other) => other.seconds - one.seconds).slice(0, 10);
  for (const { name, seconds } of slowest) console.log(`${seconds.toFixed(1).padStart(7)}  ${name}`);
}
console.log();
for (const { runtime, seconds, passed, failed, skipped } of outcomes) {
  const time = `in ${seconds.toFixed(0)} s`;
  console.log(`${runtime}: ${passed} passed, ${failed.length} failed, ${skipped.length} skipped, ${time}`);
  for (const { name, why } of failed) console.log(`  failed: ${name}${why ? `\n${shortened(why)}` : ""}`);
  for (const [reason, count] of reasons(skipped)) console.log(`  ${count} skipped: ${reason}`);
}
const sum = (count: (outcome: Outcome) => number) => outcomes.reduce((total, outcome) => total + count(outcome), 0);
const failures = sum(({ failed }) => failed.length);
console.log(
  `${sum(({ passed }) => passed)} passed, ${failures} failed, ${sum(({ skipped }) => skipped.length)} skipped`,
);
process.exit(failures === 0 ? 0 : 1);
