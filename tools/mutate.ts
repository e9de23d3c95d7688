/**
 * Breaks one protective line at a time, as tests/mutations.ts lists them, and runs the tests that must notice, on six
 * times as many generated cases as usual. The working tree is not touched: each worker has a copy.
 *
 * Usage: mutate.ts [--jobs n] [pattern ...]      pattern: only mutations whose label, file, text or reason contains it
 *
 * @module
 */
import { spawn } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { basename, join, relative } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { mutations } from "../tests/mutations.ts";
import { mutate, type Mutation } from "../tests/mutations/mutation.ts";
import { guestFolder, writeGuestModule } from "./embed_python.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const isBun = process.versions["bun"] !== undefined;
/** A mutant may loop forever. The tests run here take seconds, and more on a loaded machine. */
const timeout = 240_000;

type Verdict = "killed" | "hung" | "survived" | "stale";

/** Copies the part of the tree that a test may read: all but installed files and git's own. */
function copyTree(): string {
  const copy = mkdtempSync(join(tmpdir(), "causeway-mutate-"));
  const left = new Set(["node_modules", ".git", ".venv", ".gpu", ".cache", "coverage", "api", "dist"]);
  cpSync(root, copy, { recursive: true, filter: (path) => !left.has(relative(root, path)) });
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  return copy;
}

/** The result of a test run: `ok` is null if it timed out. */
interface Run {
  readonly ok: boolean | null;
  readonly log: string;
}

/** Runs test files in a copy, one after another, until one fails. */
async function passes(copy: string, tests: readonly string[]): Promise<Run> {
  let run: Run = { ok: true, log: "" };
  for (const test of tests) {
    run = await passesOne(copy, test);
    if (run.ok !== true) break;
  }
  return run;
}

function passesOne(copy: string, test: string): Promise<Run> {
  const args = isBun
    ? ["test", "--bail", "--timeout", "600000"]
    : ["test", "-A", "--no-check", "--quiet", "--fail-fast"];
  const env = { CAUSEWAY_RUNS: "6", ...process.env, CAUSEWAY_CACHE: "off", NO_COLOR: "1" };
  const child = spawn(process.execPath, [...args, `./${test}`], { cwd: copy, env, timeout });
  let log = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => log += text);
  child.stderr.setEncoding("utf8").on("data", (text: string) => log += text);
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve({ ok: child.killed ? null : code === 0, log }));
  });
}

async function judge(copy: string, mutation: Mutation): Promise<Verdict> {
  const path = join(copy, mutation.file);
  const source = readFileSync(path, "utf8");
  const mutant = mutate(source, mutation);
  if (mutant === null) return "stale";
  const write = (text: string) => {
    writeFileSync(path, text);
    if (mutation.file.startsWith(guestFolder)) writeGuestModule(copy); // the tests load this module
  };
  write(mutant);
  try {
    const { ok } = await passes(copy, mutation.tests);
    return ok === null ? "hung" : ok ? "survived" : "killed";
  } finally {
    write(source);
  }
}

function oneLine(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > 90 ? `${line.slice(0, 87)}...` : line;
}

const args = process.argv.slice(2);
const jobsAt = args.indexOf("--jobs");
const jobs = jobsAt < 0 ? Math.min(2, availableParallelism()) : Number(args.splice(jobsAt, 2)[1]);
if (!Number.isInteger(jobs) || jobs < 1) throw new RangeError("--jobs expects a number of at least 1");
const chosen = mutations.filter(({ label, file, text, why }) =>
  args.length === 0 || args.some((pattern) => `${label} ${file} ${text} ${why}`.includes(pattern))
);
if (chosen.length === 0) throw new RangeError(`No mutation matches ${args.join(" ")}`);

const copies = Array.from({ length: Math.min(jobs, chosen.length) }, copyTree);
const verdicts = new Map<Mutation, Verdict>();
try {
  const [first = ""] = copies;
  const { ok, log } = await passes(first, [...new Set(chosen.flatMap(({ tests }) => tests))]);
  if (ok !== true) throw new Error(`The tests fail on the tree as it is:\n${log}`);
  const queue = [...chosen];
  await Promise.all(copies.map(async (copy) => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const verdict = await judge(copy, next);
      verdicts.set(next, verdict);
      console.log(`${verdict.padEnd(8)} ${next.file.padEnd(38)} ${oneLine(next.text)}`);
    }
  }));
} finally {
  for (const copy of copies) rmSync(copy, { recursive: true });
}

const bad = chosen.filter((one) => !["killed", "hung"].includes(verdicts.get(one) ?? "stale"));
for (const one of bad) {
  console.log(
    `\n${verdicts.get(one)}: ${one.file}\n  - ${one.text}\n  + ${one.becomes}\n  ${one.why}\n  ${one.tests.join(" ")}`,
  );
}
const runtime = isBun ? "Bun" : "Deno";
const files = new Set(chosen.map(({ file }) => basename(file)));
console.log(
  `\n${runtime}: ${chosen.length - bad.length} of ${chosen.length} mutants of ${files.size} files are noticed`,
);
process.exit(bad.length === 0 ? 0 : 1);
