/**
 * Finds Bun: the one from the project's development dependencies, or the one on PATH.
 *
 * @module
 */
import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";

/**
 * The package's own installer would pick one of these; it is not run, so that no dependency runs code at install time.
 */
const binaries = ["@oven/bun-linux-x64", "@oven/bun-linux-x64-baseline", "@oven/bun-linux-aarch64"];

/**
 * A Bun that starts on this machine.
 *
 * @throws {Error} if there is none; the message says how to get it
 */
export function findBun(): string {
  const require = createRequire(import.meta.resolve("bun/package.json"));
  const packaged = binaries.flatMap((name) => {
    try {
      return [require.resolve(`${name}/bin/bun`)];
    } catch {
      return []; // built for another machine, and so not installed
    }
  });
  const bun = [...packaged, "bun"].find((path) => spawnSync(path, ["--version"], { stdio: "ignore" }).status === 0);
  if (bun === undefined) throw new Error("No Bun was found: run `deno install`, or put bun on PATH");
  return bun;
}
