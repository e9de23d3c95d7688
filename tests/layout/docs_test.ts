/**
 * Runs the examples of docs/layout.md and of the doc comments: `expression; // value` and `expression; // throws Kind:
 * part`.
 */
import { assert } from "@std/assert";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

const room = new URL("../../src/layout/", import.meta.url);

interface Example {
  where: string;
  code: string;
}

function examplesIn(where: string, text: string): Example[] {
  return [...text.matchAll(/^```ts\n([^]*?)^```$/gm)].map(([, code = ""], index) => ({
    where: `${where}, example ${index + 1}`,
    code,
  }));
}

function docComments(source: string): string {
  return [...source.matchAll(/\/\*\*([^]*?)\*\//g)].map(([, comment = ""]) => comment.replaceAll(/^ *\* ?/gm, "")).join(
    "\n",
  );
}

/** The example as a program that fails where a comment is wrong. */
function toProgram(code: string): string {
  const lines = code.split("\n").map((line) => {
    const [, expression, value] = /^(?!const |import |\/\/)(.*); \/\/ (.+)$/.exec(line) ?? [];
    if (expression === undefined || value === undefined) {
      return line.replace('"@causeway/causeway/layout"', JSON.stringify(new URL("mod.ts", room).href));
    }
    const [, kind, part = ""] = /^throws (\w+): (.+)$/.exec(value) ?? [];
    if (kind === undefined) return `assert.deepStrictEqual(${expression}, ${value});`;
    return `assert.throws(() => ${expression}, (error) => error instanceof ${kind} && error.message.includes(${
      JSON.stringify(part)
    }));`;
  });
  return ['import assert from "node:assert/strict";', ...lines].join("\n");
}

const examples = [
  ...examplesIn("docs/layout.md", readFileSync(new URL("../../docs/layout.md", import.meta.url), "utf8")),
  ...readdirSync(room).flatMap((file) =>
    examplesIn(`src/layout/${file}`, docComments(readFileSync(new URL(file, room), "utf8")))
  ),
];

test("there are examples to run, and all of them check something", () => {
  assert(examples.length > 30);
  for (const { where, code } of examples) assert(toProgram(code).includes("assert."), where);
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
    writeFileSync(file, toProgram(code));
    await import(pathToFileURL(file).href);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
