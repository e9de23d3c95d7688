/**
 * Examples in texts: found, run in a process of their own, and compared with what their comments say.
 *
 * @module
 */
import { assertEquals } from "@std/assert";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const run = "deno" in process.versions ? ["run", "--quiet", "--no-lock", "--no-prompt", "--allow-ffi"] : [];

/** A block of code in a text. */
export interface Example {
  readonly name: string;
  readonly code: string;
}

/**
 * The blocks of a text that are marked `ts`, or `ts` and what they need: a machine that the reader has and we may not.
 *
 * @param need `torch` for those marked `ts torch`
 */
export function examplesOf(file: string, text: string, need?: string): Example[] {
  const mark = need === undefined ? "ts" : `ts ${need}`;
  const blocks = [...text.matchAll(new RegExp(`^\`\`\`${mark}\\n(?<code>.*?)^\`\`\`$`, "gms"))];
  return blocks.map(({ groups }, i) => ({ name: `${file}, example ${i + 1}`, code: groups?.["code"] ?? "" }));
}

/** Fails unless what an example has printed is what its comments say. */
export function assertPrinted({ code }: Example, printed: string): void {
  assertEquals(plain(printed), plain(promised(code)));
}

/** The doc comments of a source file, without their stars. */
export function comments(text: string): string {
  return [...text.matchAll(/\/\*\*(?<body>.*?)\*\//gs)]
    .map(({ groups }) => (groups?.["body"] ?? "").replace(/^\s*\* ?/gm, "")).join("\n");
}

/** What the comments behind console.log say will be printed, with spaces and line breaks made one. */
function promised(code: string): string {
  return [...code.matchAll(/^\s*console\.log\(.*\);\s*\/\/ (?<out>.*)$/gm)].map(({ groups }) => groups?.["out"] ?? "")
    .join(" ");
}

/** Prints differ between the runtimes in line breaks, trailing commas, and in the length after an array's name. */
function plain(text: string): string {
  return text.replace(/Array\(\d+\)/g, "Array").replace(/,(?=\s*[\]}])/g, "").replace(/\s+/g, " ").trim();
}

/** The file behind a name that programs import: of the package, or of a subpath. */
function entry(subpath: string | undefined): string {
  return pathToFileURL(join(root, subpath === undefined ? "mod.ts" : `src/public/${subpath}.ts`)).href;
}

/**
 * Runs an example, which must print what its comments say. `env` is set besides what is inherited. Its folder is this
 * repository's, whose files it may read if that is said.
 */
export function runExample(
  example: Example,
  env: Readonly<Record<string, string>> = {},
  permissions: readonly `--allow-${string}`[] = [],
): void {
  const folder = mkdtempSync(join(tmpdir(), "causeway-example-"));
  try {
    const file = join(folder, "example.ts");
    writeFileSync(
      file,
      example.code.replace(/from "(?:@causeway\/)?causeway(?:\/(\w+))?"/g, (_, name) => `from "${entry(name)}"`),
    );
    const printed = execFileSync(process.execPath, [...run, ...run.length === 0 ? [] : permissions, file], {
      cwd: root,
      encoding: "utf8",
      timeout: 60_000,
      env: { ...process.env, ...env },
    });
    assertPrinted(example, printed);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
