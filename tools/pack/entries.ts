/**
 * The files that the package is made from, those that programs import and those that they run, by their names in it.
 *
 * @module
 */
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";

/** The repository's root. */
export const root: string = fileURLToPath(new URL("../..", import.meta.url));

/** A subpath of the package. */
export interface Entry {
  /** As in package.json: `.`, `./cuda`. */
  readonly subpath: string;
  /** The source, from the repository's root. */
  readonly source: string;
  /** The file in the package, without its extension. */
  readonly name: string;
}

/** The subpaths, which are the same for JSR and npm: deno.json says what each is made from. */
export function entries(): readonly Entry[] {
  const { exports } = JSON.parse(readFileSync(`${root}/deno.json`, "utf8")) as { exports: Record<string, string> };
  return Object.entries(exports).map(([subpath, source]) => ({
    subpath,
    source: source.replace(/^\.\//, ""),
    name: basename(source, ".ts"),
  }));
}

/** Files that are run, not imported, by their names in the package. */
export const programs: Readonly<Record<string, string>> = { cli: "src/cli/main.ts" };
