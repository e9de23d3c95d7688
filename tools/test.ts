/**
 * Runs every test under Deno and under Bun, and adds up both: the last line is `N passed, N failed, N skipped`.
 *
 * Usage: test.ts [--runs=K] [path ...]      --runs: every property on K times as many generated cases
 *
 * @module
 */
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
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

/** How one runtime did. */
interface Outcome {
  readonly runtime: string;
  readonly passed: number;
  readonly failed: readonly Failure[];
  readonly skipped: readonly string[];
}

/** Runs a command, letting it print. */
function run(command: string, args: readonly string[]): Promise<number> {
  const env = {
    ...process.env,
    CAUSEWAY_SETUP: "done",
    // For tests of one runtime with the other.
    CAUSEWAY_DENO: process.execPath,
    CAUSEWAY_BUN: bun,
    ...(values.runs === undefined ? {} : { CAUSEWAY_RUNS: values.runs }),
  };
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const child = spawn(command, args, { stdio: "inherit", env });
  child.once("error", reject);
  child.once("exit", (code) => resolve(code ?? 1));
  return promise;
}

/** Reads the results that a runtime wrote down in JUnit's format. */
function read(runtime: string, report: string, exitCode: number): Outcome {
  const passed: string[] = [];
  const failed: Failure[] = [];
  const skipped: string[] = [];
  if (!existsSync(report)) {
    return { runtime, passed: 0, failed: [{ name: `the runtime itself: exit code ${exitCode}` }], skipped };
  }
  const cases = /<testcase name="(?<name>[^"]*)"[^>]*?(?:\/>|>(?<body>.*?)<\/testcase>)/gs;
  for (const { groups } of readFileSync(report, "utf8").matchAll(cases)) {
    const { name = "", body = "" } = groups ?? {};
    const failure = /<(?:failure|error)[^>]*>(?<why>[^<]*)/.exec(body);
    if (failure !== null) failed.push({ name: unescape(name), why: unescape(failure.groups?.["why"] ?? "") });
    else (body.includes("<skipped") ? skipped : passed).push(unescape(name));
  }
  // A module that does not load, or a runtime that dies, fails no test by name.
  if (exitCode !== 0 && failed.length === 0) failed.push({ name: `the runtime itself: exit code ${exitCode}` });
  if (exitCode === 0 && passed.length === 0) failed.push({ name: "no test ran" });
  return { runtime, passed: passed.length, failed, skipped };
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

const report = (runtime: string) => join(scratch, `${runtime}.xml`);
const outcomes: Outcome[] = [];
try {
  console.log("\n== Deno ==");
  const deno = ["test", "-A", "--no-check", "--quiet", `--junit-path=${report("deno")}`];
  const targets = paths.length > 0 ? paths : ["tests"];
  outcomes.push(read("deno", report("deno"), await run(process.execPath, [...deno, ...targets])));
  console.log("\n== Bun ==");
  const options = ["test", "--timeout", "600000", "--reporter=junit", `--reporter-outfile=${report("bun")}`];
  outcomes.push(read("bun", report("bun"), await run(bun, [...options, ...targets])));
} finally {
  rmSync(scratch, { recursive: true });
}

console.log();
for (const { runtime, passed, failed, skipped } of outcomes) {
  console.log(`${runtime}: ${passed} passed, ${failed.length} failed, ${skipped.length} skipped`);
  for (const { name, why } of failed) console.log(`  failed: ${name}${why ? `\n${shortened(why)}` : ""}`);
  for (const [reason, count] of reasons(skipped)) console.log(`  ${count} skipped: ${reason}`);
}
const sum = (count: (outcome: Outcome) => number) => outcomes.reduce((total, outcome) => total + count(outcome), 0);
const failures = sum(({ failed }) => failed.length);
console.log(
  `${sum(({ passed }) => passed)} passed, ${failures} failed, ${sum(({ skipped }) => skipped.length)} skipped`,
);
process.exit(failures === 0 ? 0 : 1);
