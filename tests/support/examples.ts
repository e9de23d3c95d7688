/**
 * Examples in texts: found, run in a separate process, and compared with what their comments say.
 *
 * @module
 */
import { assertEquals } from "@std/assert";
import { execFile, execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";

const root = fileURLToPath(new URL("../..", import.meta.url));
const run = "deno" in process.versions ? ["run", "--quiet", "--no-lock", "--no-prompt", "--allow-ffi"] : [];

/** A block of code in a text. */
export interface Example {
  readonly name: string;
  readonly code: string;
}

/**
 * The blocks of a text marked `ts`, or `ts` and a requirement that the reader's machine meets and ours may not.
 *
 * @param need `torch` for those marked `ts torch`
 */
export function examplesOf(file: string, text: string, need?: string): Example[] {
  const mark = need === undefined ? "ts" : `ts ${need}`;
  const blocks = [...text.matchAll(new RegExp(`^\`\`\`${mark}\\n(?<code>.*?)^\`\`\`$`, "gms"))];
  return blocks.map(({ groups }, i) => ({ name: `${file}, example ${i + 1}`, code: groups?.["code"] ?? "" }));
}

/** Fails unless an example printed what its comments say. */
export function assertPrinted({ code }: Example, printed: string): void {
  assertEquals(plain(printed), plain(promised(code)));
}

/** The doc comments of a source file, without their stars. */
export function comments(text: string): string {
  return [...text.matchAll(/\/\*\*(?<body>.*?)\*\//gs)]
    .map(({ groups }) => (groups?.["body"] ?? "").replace(/^\s*\* ?/gm, "")).join("\n");
}

/** What the comments behind console.log say will be printed, joined by spaces. */
function promised(code: string): string {
  return [...code.matchAll(/^\s*console\.log\(.*\);\s*\/\/ (?<out>.*)$/gm)].map(({ groups }) => groups?.["out"] ?? "")
    .join(" ");
}

/** Normalizes output: the runtimes differ in line breaks, trailing commas, and in the length after an array's name. */
function plain(text: string): string {
  return text.replace(/Array\(\d+\)/g, "Array").replace(/,(?=\s*[\]}])/g, "").replace(/\s+/g, " ").trim();
}

/** The file behind an import: the package's, or a subpath's. */
function entry(subpath: string | undefined): string {
  return pathToFileURL(join(root, subpath === undefined ? "mod.ts" : `src/public/${subpath}.ts`)).href;
}

/** Writes an example to a file, and returns the arguments that run it. The caller removes the folder. */
function written({ code }: Example, permissions: readonly `--allow-${string}`[]) {
  // npm packages resolve only from within the repository: here, from a folder that git ignores.
  const base = code.includes('from "apache-arrow"') ? join(root, ".cache") : tmpdir();
  mkdirSync(base, { recursive: true });
  const folder = mkdtempSync(join(base, "causeway-example-"));
  const file = join(folder, "example.ts");
  // A folder of its own for what it writes: the other runtime may be running the same example.
  const text = code.replace(/from "(?:@causeway\/)?causeway(?:\/(\w+))?"/g, (_, name) => `from "${entry(name)}"`)
    .replaceAll('"/tmp/', `"${folder}/`);
  writeFileSync(file, text);
  return { folder, args: [...run, ...run.length === 0 ? [] : permissions, file] };
}

/**
 * Runs an example, which must print what its comments say. `env` is added to the inherited environment. Its working
 * directory is this repository, whose files it may read if `permissions` allow it.
 */
export function runExample(
  example: Example,
  env: Readonly<Record<string, string | undefined>> = {},
  permissions: readonly `--allow-${string}`[] = [],
): void {
  const { folder, args } = written(example, permissions);
  try {
    const options = { cwd: root, encoding: "utf8", timeout: 60_000, env: { ...process.env, ...env } } as const;
    assertPrinted(example, execFileSync(process.execPath, args, options));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/**
 * As {@linkcode runExample}, for an example that talks to this process, or to another one: it does not block this
 * process.
 *
 * @param signal ends it; its output is not checked then
 */
export async function runExampleBeside(
  example: Example,
  env: Readonly<Record<string, string | undefined>> = {},
  permissions: readonly `--allow-${string}`[] = [],
  signal: AbortSignal | null = null,
): Promise<void> {
  const { folder, args } = written(example, permissions);
  const limits = { timeout: 60_000, ...signal === null ? {} : { signal } };
  const options = { cwd: root, encoding: "utf8", env: { ...process.env, ...env }, ...limits } as const;
  try {
    const { stdout } = await promisify(execFile)(process.execPath, args, options);
    assertPrinted(example, stdout);
  } catch (error) {
    if (signal?.aborted !== true) throw error;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
