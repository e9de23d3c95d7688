/** All tests of a process get one Python, whatever they ask for and in any order: a process can load only one. */
import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { patiently, runScript } from "../support/child.ts";
import { check, fc } from "../support/property.ts";
import { choosePython, findPython, type PythonInstallation } from "../support/python.ts";

const names = ["numpy", "torch", "cupy", "numba", "jax", "tvm_ffi", "nanoarrow"];

/** An interpreter with some packages, and a library. */
function installation(executable: string, packages: readonly string[]): PythonInstallation {
  const library = fileURLToPath(import.meta.url); // any existing file
  return {
    executable,
    version: "3.12.0",
    isFreeThreaded: false,
    library,
    path: [],
    packages: Object.fromEntries(packages.map((name) => [name, "2.0"])),
  };
}

test("the Python with most of the packages is chosen, and the first of several such", () => {
  const candidate = fc.option(fc.subarray(names), { nil: null });
  check(
    fc.property(fc.array(candidate, { maxLength: 5 }), (all) => {
      const chosen = choosePython(
        all.map((has, i) => has === null ? `p${i} is not there` : installation(`p${i}`, has)),
      );
      const most = Math.max(...all.map((has) => has?.length ?? -1));
      const expected = all.findIndex((has) => has?.length === most);
      if (most < 0) assertStringIncludes(String(chosen), "no Python to load");
      else assertEquals(typeof chosen === "string" ? chosen : chosen.executable, `p${expected}`);
    }),
    200,
  );
  assertThrows(() => findPython("somethingElse"), TypeError, "add it to what tests want");
});

test("every caller gets the same Python, or an error that says what it lacks", patiently, async () => {
  const folder = mkdtempSync(join(tmpdir(), "causeway-choice-"));
  try {
    await check(
      fc.asyncProperty(
        fc.tuple(fc.subarray(names), fc.subarray(names)),
        fc.array(fc.subarray(names), { minLength: 4, maxLength: 12 }),
        async ([first, second], lists) => {
          const prefixes = [first, second].map((has, i) => {
            const bin = join(folder, `venv${i}`, "bin");
            mkdirSync(bin, { recursive: true });
            const answer = JSON.stringify(installation(join(bin, "python3"), has));
            writeFileSync(join(bin, "python3"), `#!/bin/sh\necho '${answer}'\n`);
            chmodSync(join(bin, "python3"), 0o755);
            return join(folder, `venv${i}`);
          });
          const env = {
            CAUSEWAY_PYTHON: undefined,
            VIRTUAL_ENV: prefixes[0],
            PATH: `${prefixes[1]}/bin:${process.env["PATH"]}`,
          };
          const { stdout, stderr } = await runScript(new URL("./choice_child.ts", import.meta.url), {
            args: [JSON.stringify(lists)],
            env,
          });
          const [printed = "", found = "null"] = stdout.trimEnd().split("\n").slice(-2);
          const chosen = /^Python [\d.]+, (\S+): (.*); without (.*)$/.exec(printed);
          assertEquals(chosen?.length, 4, stdout + stderr);
          const [, executable = "", has = ""] = chosen ?? [];
          const hasAll = (packages: readonly string[]) => packages.every((name) => ` ${has}`.includes(` ${name} `));
          assertEquals(JSON.parse(found), lists.map((packages) => hasAll(packages) ? executable : null));
        },
      ),
      3,
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
});
