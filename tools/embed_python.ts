/**
 * Embeds the Python files of `src/python/guest` in a TypeScript module, which programs load without reading a file.
 *
 * Usage: embed_python.ts [--check]      --check: writes nothing, and fails if the module is out of date
 *
 * @module
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

/** The folder of the Python files, from the repository's root. */
export const guestFolder = "src/python/guest";
/** The module generated from them. */
export const guestModule = "src/python/guest_source.ts";

/** A constant of the module, and the files joined into its source, in the order in which they run. */
interface Source {
  readonly name: string;
  readonly about: string;
  readonly files: readonly string[];
}

const sources: readonly Source[] = [
  {
    name: "guestSource",
    about: "Run once, in a namespace of its own.",
    files: [
      "exceptions.py",
      "release_counters.py",
      "dlpack_structs.py",
      "arrow_structs.py",
      "interpreter_api.py",
      "cuda_order.py",
      "exports.py",
      "arrow_requests.py",
      "arrow_times.py",
      "arrow_arrays.py",
      "arrow_streams.py",
      "vortex_arrays.py",
      "device_memory.py",
      "copies.py",
      "call_frames.py",
      "javascript_functions.py",
      "awaited_functions.py",
      "async_calls.py",
      "array_members.py",
      "array.py",
      "numpy_array.py",
      "foreign_arrays.py",
      "conversions.py",
    ],
  },
  {
    name: "exchangeApiSource",
    about: "Run in the same namespace before the first array goes to Python.",
    files: ["exchange_api.py"],
  },
  {
    name: "prepareProcessSource",
    about: "Run in `__main__` when the interpreter was started.",
    files: ["scripts/prepare_process.py"],
  },
  {
    name: "describeInstallationSource",
    about: "Run by an interpreter in a process of its own.",
    files: ["scripts/describe_installation.py"],
  },
  {
    name: "listPackagesSource",
    about: "Run by an interpreter in a process of its own, with the names of packages as arguments.",
    files: ["scripts/list_packages.py"],
  },
];

/** A file as part of a joined source, without its docstring and relative imports, which mean nothing there. */
export function asPart(text: string): string {
  return text.replace(/^"""[^]*?"""\n+/, "").replace(/^ *from \.\w+ import (\([^)]*\)|.*)\n/gm, "");
}

/** The module's text, from the files under a repository's root. */
export function embed(root: string): string {
  const listed = new Set(sources.flatMap(({ files }) => files));
  const found = readdirSync(join(root, guestFolder), { recursive: true, encoding: "utf8" });
  const left = found.filter((file) => file.endsWith(".py") && !file.endsWith("__init__.py") && !listed.has(file));
  if (left.length > 0) throw new Error(`Cannot embed ${left.join(", ")}: add it to a source in tools/embed_python.ts`);
  const constants = sources.map(({ name, about, files }) => {
    const parts = files.map((file) => asPart(readFileSync(join(root, guestFolder, file), "utf8")));
    const source = parts.join("\n").replace(/[\\`]|\$\{/g, "\\$&");
    return `/** ${about} */\nexport const ${name} = \`\n${source}\`;\n`;
  });
  return `/**
 * Python's sources: made of ${guestFolder}/*.py by tools/embed_python.ts. Change those, and run \`deno task embed\`.
 *
 * @module
 */

${constants.join("\n")}`;
}

/** Writes the module under a repository's root. */
export function writeGuestModule(root: string): void {
  writeFileSync(join(root, guestModule), embed(root));
}

/** Whether the module under a repository's root matches its Python files. */
export function isUpToDate(root: string): boolean {
  const path = join(root, guestModule);
  return existsSync(path) && readFileSync(path, "utf8") === embed(root);
}

if (import.meta.main) {
  const root = fileURLToPath(new URL("..", import.meta.url));
  if (!process.argv.includes("--check")) writeGuestModule(root);
  else if (!isUpToDate(root)) {
    console.error(`${guestModule} is not what ${guestFolder} says: run \`deno task embed\``);
    process.exit(1);
  }
}
