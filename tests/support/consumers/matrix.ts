/**
 * One test for each Python library: it runs the matrix in a separate process, prints the outcomes, and fails where
 * something is wrong.
 *
 * @module
 */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { patiently, runScript } from "../child.ts";
import { needs } from "../needs.ts";
import { findPythonOrSystem } from "../python.ts";
import type { Cell, Event, Matrix, Trial } from "./consumers.ts";
import { failures, report } from "./consumers_report.ts";
import { libraries, type Library, type Place } from "./libraries.ts";

const script = new URL("./consumers_child.ts", import.meta.url);

/** How often a library may end the process before the remaining trials are skipped. */
const deaths = 10;

/** Runs all trials; one that ends the process is skipped in the next run. */
async function runAll(
  library: Library,
  place: Place,
  env: Readonly<Record<string, string | undefined>>,
): Promise<Matrix> {
  const cells: Cell[] = [];
  const asked = new Set<string>();
  let version = "";
  for (let i = 0; i <= deaths; i++) {
    const done = cells.map(({ convention, direction, dtype }): Trial => ({ convention, direction, dtype }));
    const args = [library.name, place, JSON.stringify(done)];
    const { code, signal, stdout, stderr } = await runScript(script, { args, env, timeout: 280_000 });
    let last: Trial | undefined;
    for (const line of stdout.split("\n")) {
      if (!line.startsWith("matrix ")) continue;
      const event = JSON.parse(line.slice("matrix ".length)) as Event; // as the script prints it
      if ("version" in event) version = event.version;
      if ("trial" in event) last = event.trial;
      if ("cell" in event) cells.push(event.cell);
      if ("asked" in event) event.asked.forEach((name) => asked.add(name));
    }
    if (code === 0) break;
    if (signal === null || last === undefined) {
      throw new Error(`${script} ended with ${signal ?? code}\n${stdout}\n${stderr}`);
    }
    const why = `${signal}: ${stderr.split("\n").find((line) => /\w/.test(line)) ?? ""}`;
    cells.push({ ...last, outcomes: [{ part: "all", result: "died", why }] });
  }
  return { version, asked: [...asked], cells: cells.filter(({ outcomes }) => outcomes.length > 0) };
}

/** Registers the tests. @param missing what is missing to run any of them, or null */
export function testConsumers(place: Place, missing: string | null): void {
  for (const library of libraries.filter(({ known }) => known.some((one) => one.place === place))) {
    const python = missing === null ? findPythonOrSystem(...library.modules) : missing;
    const where = place === "gpu" ? "device" : "host";
    const title = `${library.name} and we exchange ${where} arrays: each type, part, convention and direction`;
    const [name, { skip }] = needs(typeof python === "string" ? python : null, title);
    test(name, { skip, ...patiently }, async () => {
      if (typeof python === "string") throw new Error(python);
      const env = { CAUSEWAY_PYTHON: python.executable, VIRTUAL_ENV: undefined };
      const matrix = await runAll(library, place, env);
      console.log(report(library, place, matrix).join("\n"));
      assertEquals(failures(library, place, matrix), []);
    });
  }
}
