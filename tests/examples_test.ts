/** Every example in the README and in doc comments runs, and prints what its comments say. */
import { assert, assertEquals } from "@std/assert";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const run = "deno" in process.versions ? ["run", "--quiet", "--no-lock", "--no-prompt", "--allow-ffi"] : [];

interface Example {
  readonly name: string;
  readonly code: string;
}

/** The blocks marked `ts` of a text; those marked `ts ignore` need a machine that the reader has and we may not. */
function examplesOf(file: string, text: string): Example[] {
  const blocks = [...text.matchAll(/^```ts\n(?<code>.*?)^```$/gms)];
  return blocks.map(({ groups }, i) => ({ name: `${file}, example ${i + 1}`, code: groups?.["code"] ?? "" }));
}

/** The doc comments of a source file, without their stars. */
function comments(text: string): string {
  return [...text.matchAll(/\/\*\*(?<body>.*?)\*\//gs)]
    .map(({ groups }) => (groups?.["body"] ?? "").replace(/^\s*\* ?/gm, "")).join("\n");
}

const sources = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".ts") && !file.startsWith("layout")) // the layout room runs its own
  .map((file) => join(root, "src", file));
const examples = [
  ...examplesOf("README.md", readFileSync(join(root, "README.md"), "utf8")),
  ...[join(root, "mod.ts"), ...sources].flatMap((file) =>
    examplesOf(relative(root, file), comments(readFileSync(file, "utf8")))
  ),
];

/** What the comments behind console.log say will be printed, with spaces and line breaks made one. */
function promised(code: string): string {
  return [...code.matchAll(/^\s*console\.log\(.*\);\s*\/\/ (?<out>.*)$/gm)].map(({ groups }) => groups?.["out"] ?? "")
    .join(" ");
}

/** Prints differ between the runtimes in line breaks, trailing commas, and in the length after an array's name. */
function plain(text: string): string {
  return text.replace(/Array\(\d+\)/g, "Array").replace(/,(?=\s*[\]}])/g, "").replace(/\s+/g, " ").trim();
}

test("there are examples to run", () => {
  assert(examples.filter(({ name }) => name.startsWith("README.md")).length >= 2);
  assert(examples.some(({ name }) => name.startsWith("mod.ts")));
});

for (const { name, code } of examples) {
  test(`${name}: runs and prints what it says`, () => {
    const folder = mkdtempSync(join(tmpdir(), "causeway-example-"));
    try {
      const file = join(folder, "example.ts");
      const main = pathToFileURL(join(root, "mod.ts")).href;
      writeFileSync(file, code.replace(/from "(@causeway\/causeway|causeway)"/g, `from "${main}"`));
      const printed = execFileSync(process.execPath, [...run, file], { encoding: "utf8", timeout: 60_000 });
      assertEquals(plain(printed), plain(promised(code)));
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
}
