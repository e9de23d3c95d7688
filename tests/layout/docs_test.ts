/** Runs the examples of docs/layout.md and of the room's doc comments. */
import { assert } from "@std/assert";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { layoutExamples, toProgram } from "../support/layout_examples.ts";

const examples = layoutExamples();
const places = { layout: new URL("../../src/layout/mod.ts", import.meta.url).href, assert: "node:assert/strict" };

test("there are examples to run, and all of them check something", () => {
  assert(examples.length > 30);
  for (const { where, code } of examples) assert(toProgram(code, places).includes("assert."), where);
});

test("a wrong comment in an example fails", async () => {
  let failed = false;
  await run('import { slice } from "@causeway/causeway/layout";\nslice(1).start; // 2\n').catch(() => failed = true);
  assert(failed);
});

for (const { where, code } of examples) test(`${where} does what its comments say`, () => run(code));

async function run(code: string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "causeway-docs-"));
  try {
    const file = join(folder, "example.ts");
    writeFileSync(file, toProgram(code, places));
    await import(pathToFileURL(file).href);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
