/**
 * C libraries that the tests compile themselves.
 *
 * @module
 */
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { scratchFolder } from "./scratch.ts";

/** What is missing for `compiled`, or null. */
export const missingCompiler: string | null = spawnSync("cc", ["--version"]).status === 0
  ? null
  : "no C compiler: apt-get install gcc";

/**
 * Compiles C source to a shared library in a new temporary folder.
 *
 * @param name file name
 * @returns its path
 */
export function compiled(source: string, name: string): string {
  const folder = scratchFolder();
  const file = join(folder, `${name}.c`);
  const library = join(folder, name);
  writeFileSync(file, source);
  const { status, stderr } = spawnSync("cc", ["-shared", "-fPIC", "-O1", "-o", library, file], { encoding: "utf8" });
  if (status !== 0) throw new Error(`cc cannot compile ${file}:\n${stderr}`);
  return library;
}
