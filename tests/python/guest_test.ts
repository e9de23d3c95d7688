/** The Python files in plain Python: their tests are written in Python, too, and need nothing of Causeway. */
import { assert, assertEquals } from "@std/assert";
import { spawnSync } from "node:child_process";
import process from "node:process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { patiently } from "../support/child.ts";
import { needs } from "../support/needs.ts";
import { findPython } from "../support/python.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const found = findPython();
const missing = typeof found === "string" ? found : null;
const executable = typeof found === "string" ? "" : found.executable;

const hasNumpy = missing === null && spawnSync(executable, ["-c", "import numpy"]).status === 0;
const noNumpy = missing ?? (hasNumpy ? null : `${executable} has no NumPy: install it there, or set CAUSEWAY_PYTHON`);

/** Runs tests written in Python. */
function runPython(files: string, least: number): void {
  const args = ["-m", "unittest", "discover", "-s", "tests/python", "-p", files];
  const env = { ...process.env, PYTHONDONTWRITEBYTECODE: "1" };
  const { status, stderr } = spawnSync(executable, args, { cwd: root, encoding: "utf8", env });
  assertEquals(status, 0, stderr);
  const [, count] = /^Ran (\d+) tests/m.exec(stderr) ?? [];
  assert(Number(count) >= least, stderr);
}

const title = "in plain Python, counters, DLPack, Arrow, copies, elements and calls work as documented";
test(needs(missing, title)[0], { skip: missing !== null, ...patiently }, () => runPython("guest_*.py", 50));

const withNumpy = "in plain Python with NumPy, an array of ours is a NumPy array, and consumers get its memory";
test(needs(noNumpy, withNumpy)[0], { skip: noNumpy !== null, ...patiently }, () => runPython("with_numpy.py", 10));
