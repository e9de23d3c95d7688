/**
 * Runs every test under Deno and under Bun, and adds up both: the last line is `N passed, N failed, N skipped`.
 *
 * Each folder of tests runs in a separate process in each runtime, with one more process at a time than there are
 * processors: so no processor waits for the other runtime, and no process retains what all earlier tests left behind
 * (Bun collects the garbage of all files of a process together, which made some tests a hundred times slower).
 *
 * Usage: `test.ts [--runs=K] [--check] [path ...]`. `--runs`: every property on K times as many generated cases;
 * `--check`: `deno task check` runs beside the tests.
 *
 * @module
 */
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir, totalmem } from "node:os";
import { join, resolve, sep } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { findBun } from "./bun.ts";

const { values, positionals: paths } = parseArgs({
  allowPositionals: true,
  options: { runs: { type: "string" }, check: { type: "boolean", default: false } },
});
if (values.runs !== undefined && !(Number(values.runs) > 0)) {
  console.error(`Expected --runs=K with a positive number K, got --runs=${values.runs}`);
  process.exit(2);
}
const bun = findBun();
const scratch = mkdtempSync(join(tmpdir(), "causeway-test-"));

/** A failed test, and why: what it threw, which may be the whole output of a process. */
interface Failure {
  readonly name: string;
  readonly why?: string;
}

/** How long a test took. */
interface Duration {
  readonly name: string;
  readonly seconds: number;
}

/** The results of one runtime, or of the tests of one path in it. */
interface Outcome {
  readonly passed: readonly string[];
  readonly failed: readonly Failure[];
  readonly skipped: readonly string[];
  readonly durations: readonly Duration[];
}

/** How a process ended. */
interface Ended {
  /** The exit code, or the signal that ended it. */
  readonly how: string;
  readonly ok: boolean;
  /** The last lines that it printed. */
  readonly last: string;
}

/** Runs a command, and prints its output, each line after a label. */
function run(label: string, command: string, args: readonly string[]): Promise<Ended> {
  const env = {
    ...process.env,
    CAUSEWAY_SETUP: "done",
    // For tests of one runtime with the other.
    CAUSEWAY_DENO: process.execPath,
    CAUSEWAY_BUN: bun,
    ...(values.runs === undefined ? {} : { CAUSEWAY_RUNS: values.runs }),
  };
  const { promise, resolve, reject } = Promise.withResolvers<Ended>();
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], env });
  const last: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on("line", (line) => {
      console.log(`${label} | ${line}`);
      if (last.push(line) > 20) last.shift();
    });
  }
  child.once("error", reject);
  child.once("close", (code, signal) => {
    resolve({
      how: signal === null ? `exit code ${code}` : `ended by ${signal}`,
      ok: code === 0,
      last: last.join("\n"),
    });
  });
  return promise;
}

/** Reads the results that a runtime wrote in JUnit's format. */
function read(path: string, report: string, { how, ok, last }: Ended): Outcome {
  const passed: string[] = [];
  const failed: Failure[] = [];
  const skipped: string[] = [];
  const durations: Duration[] = [];
  const cases = /<testcase name="(?<name>[^"]*)"(?<rest>[^>]*?)(?:\/>|>(?<body>.*?)<\/testcase>)/gs;
  for (const { groups } of (existsSync(report) ? readFileSync(report, "utf8") : "").matchAll(cases)) {
    const { name = "", rest = "", body = "" } = groups ?? {};
    durations.push({ name: unescape(name), seconds: Number(/\btime="([^"]*)"/.exec(rest)?.[1] ?? 0) });
    const failure = /<(?:failure|error)[^>]*>(?<why>[^<]*)/.exec(body);
    if (failure !== null) failed.push({ name: unescape(name), why: unescape(failure.groups?.["why"] ?? "") });
    else (body.includes("<skipped") ? skipped : passed).push(unescape(name));
  }
  // A module that does not load, or a runtime that dies, fails no test by name.
  if (!ok && failed.length === 0) failed.push({ name: `${path}: ${how}`, why: last });
  if (ok && passed.length + skipped.length === 0) failed.push({ name: `${path}: no test ran`, why: last });
  return { passed, failed, skipped, durations };
}

function unescape(text: string): string {
  const characters: { readonly [entity: string]: string } = { lt: "<", gt: ">", quot: '"', apos: "'", amp: "&" };
  return text.replace(/&(#\d+|\w+);/g, (whole, entity: string) => {
    if (entity.startsWith("#")) return String.fromCodePoint(Number(entity.slice(1)));
    return characters[entity] ?? whole;
  });
}

/** The first and last lines of a text, indented: an error says first what went wrong, a process says it last. */
function shortened(text: string): string {
  const lines = text.trim().split("\n").map((line) => `    ${line.slice(0, 200)}`);
  const left = lines.length - 24;
  if (left > 0) lines.splice(12, left, `    (${left} lines)`);
  return lines.join("\n");
}

/** How many tests were skipped for each reason, which stands at the end of their names. */
function reasons(names: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const name of names) {
    const reason = /\(skipped: (?<reason>.*)\)$/s.exec(name)?.groups?.["reason"] ?? name;
    counts.set(reason, (counts.get(reason) ?? 0) + 1);
  }
  return counts;
}

/** The test files in a folder. */
function testsIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith("_test.ts"));
}

/**
 * Folders of tests and test files beside them, so that no long one runs alone at the end: first the files, some of
 * which are among the longest, then the folders, the largest first.
 */
function allPaths(): string[] {
  const byPath = Map.groupBy(testsIn("tests"), (name) => name.split(sep, 1)[0] ?? name);
  const sizeOf = ([name, files]: [string, string[]]) => name.endsWith(".ts") ? 1e9 : files.length;
  return [...byPath].toSorted((one, other) => sizeOf(other) - sizeOf(one)).map(([name]) => `tests/${name}`);
}

const commands = {
  deno: (report: string) => [process.execPath, "test", "-A", "--no-check", "--quiet", `--junit-path=${report}`],
  bun: (report: string) => [bun, "test", "--timeout", "600000", "--reporter=junit", `--reporter-outfile=${report}`],
} as const;
const runtimes = ["deno", "bun"] as const;

let reports = 0;

/** How long each process took. */
const processes: Duration[] = [];

/**
 * Writes one module that imports all tests of a folder. Deno reloads their imports for each file that it is passed, a
 * quarter of a second each time; Bun loads them once.
 */
function joined(folder: string, report: string): string {
  const path = `${report}_test.ts`;
  const files = testsIn(folder).toSorted().map((name) => pathToFileURL(resolve(folder, name)));
  writeFileSync(path, files.map((file) => `import ${JSON.stringify(file.href)};\n`).join(""));
  return path;
}

/** Runs the tests of a path under one runtime. */
async function testUnder(runtime: keyof typeof commands, path: string): Promise<Outcome> {
  const report = join(scratch, `${reports++}.xml`);
  const [command = "", ...args] = commands[runtime](report);
  const isJoined = runtime === "deno" && statSync(path).isDirectory();
  const what = isJoined ? joined(path, report) : `./${path}`;
  const label = `${runtime.padEnd(4)} ${path.replace(/^tests\//, "")}`;
  const begun = performance.now();
  const ended = await run(label, command, [...args, what]);
  processes.push({ name: label, seconds: (performance.now() - begun) / 1000 });
  return read(path, report, ended);
}

/** Why the static checks fail, if they do. */
async function check(): Promise<Failure[]> {
  const { ok, how, last } = await run("check", process.execPath, ["task", "--quiet", "check"]);
  return ok ? [] : [{ name: `deno task check: ${how}`, why: last }];
}

/** Memory that one test process may need, in bytes. */
const memoryOfOne = 3 * 2 ** 30;

const outcomes = { deno: [] as Outcome[], bun: [] as Outcome[] };
const waiting = (paths.length > 0 ? paths : allPaths()).flatMap((path) =>
  runtimes.map((runtime) => async () => void outcomes[runtime].push(await testUnder(runtime, path)))
);
const unchecked: Failure[] = [];
// First, so that it does not run alone at the end.
if (values.check) waiting.unshift(async () => void unchecked.push(...await check()));
// One more than there are processors: tests waiting for a peer's death or a timeout leave their processor to another.
const atOnce = Math.max(1, Math.min(availableParallelism() + 1, Math.floor(totalmem() / memoryOfOne)));
const start = performance.now();
try {
  const worker = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await next();
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
} finally {
  rmSync(scratch, { recursive: true });
}
const seconds = Math.round((performance.now() - start) / 1000);

/** All outcomes of a runtime, merged into one. */
function together(parts: readonly Outcome[]): Outcome {
  return {
    passed: parts.flatMap(({ passed }) => passed),
    failed: parts.flatMap(({ failed }) => failed),
    skipped: parts.flatMap(({ skipped }) => skipped),
    durations: parts.flatMap(({ durations }) => durations),
  };
}

const sums = runtimes.map((runtime) => ({ runtime, ...together(outcomes[runtime]) }));
for (const { runtime, durations } of sums) {
  console.log(`\nThe slowest of ${runtime}, in seconds:`);
  const slowest = durations.toSorted((one, other) => other.seconds - one.seconds).slice(0, 10);
  for (const { name, seconds } of slowest) console.log(`${seconds.toFixed(1).padStart(7)}  ${name}`);
}
const taken = processes.toSorted((one, other) => other.seconds - one.seconds);
console.log(
  `\nProcesses, in seconds: ${taken.map(({ name, seconds }) => `${name} ${Math.round(seconds)}`).join(", ")}`,
);
console.log(`All of them in ${seconds} s, ${atOnce} at a time.`);
for (const { runtime, passed, failed, skipped } of sums) {
  console.log(`${runtime}: ${passed.length} passed, ${failed.length} failed, ${skipped.length} skipped`);
  for (const { name, why } of failed) console.log(`  failed: ${name}${why ? `\n${shortened(why)}` : ""}`);
  for (const [reason, count] of reasons(skipped)) console.log(`  ${count} skipped: ${reason}`);
}
for (const { name, why } of unchecked) console.log(`failed: ${name}\n${shortened(why ?? "")}`);
const sum = (key: "passed" | "failed" | "skipped") => sums.reduce((total, one) => total + one[key].length, 0);
const failed = sum("failed") + unchecked.length;
console.log(`${sum("passed")} passed, ${failed} failed, ${sum("skipped")} skipped`);
process.exit(failed === 0 ? 0 : 1);
