/**
 * One test for each library of Python: it runs the matrix in a process of its own, prints what came of it, and fails where
 * something is wrong.
 *
 * @module
 */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { patiently, runScriptForJson } from "../support/child.ts";
import { needs } from "../support/needs.ts";
import { askPython, findPython, type PythonInstallation } from "../support/python.ts";
import type { Matrix } from "./consumers.ts";
import { failures, report } from "./consumers_report.ts";
import { libraries, type Library, type Place } from "./libraries.ts";

const script = new URL("./consumers_child.ts", import.meta.url);

/** The interpreter for a library: where a virtualenv lacks it, the system's may have it. */
function pythonWith({ modules }: Library): PythonInstallation | string {
  const found = findPython(...modules);
  if (typeof found !== "string") return found;
  const system = askPython("/usr/bin/python3", modules);
  return typeof system === "string" ? found : system;
}

/** Registers the tests. @param missing what is missing to run any of them, or null */
export function testConsumers(place: Place, missing: string | null): void {
  for (const library of libraries.filter(({ known }) => known.some((one) => one.place === place))) {
    const python = missing === null ? pythonWith(library) : missing;
    const where = place === "gpu" ? "device" : "host";
    const title = `${library.name} and we exchange ${where} arrays: each type, part, convention and direction`;
    const [name, { skip }] = needs(typeof python === "string" ? python : null, title);
    test(name, { skip, ...patiently }, async () => {
      if (typeof python === "string") throw new Error(python);
      const env = { CAUSEWAY_PYTHON: python.executable, VIRTUAL_ENV: undefined };
      const args = [library.name, place];
      const matrix = await runScriptForJson(script, { args, env, timeout: 280_000 }) as Matrix; // as the script prints it
      console.log(report(library, place, matrix).join("\n"));
      assertEquals(failures(library, place, matrix), []);
    });
  }
}
