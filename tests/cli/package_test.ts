/** The scripts of package.json, as `bun run` calls them. */
import { assert, assertEquals } from "@std/assert";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { findBun } from "../../tools/bun.ts";

test("bun run uses the Bun that runs, not the package of that name, which Deno installs without its program", () => {
  // `deno task` puts node_modules/.bin/bun there; a script that says just "bun" finds that one first, and fails.
  const cwd = fileURLToPath(new URL("../..", import.meta.url));
  // As a user calls it: npx, which may have started these tests, leaves its own variable.
  const { status, stdout, stderr } = spawnSync("env", ["-u", "npm_execpath", findBun(), "run", "causeway", "--help"], {
    cwd,
    encoding: "utf8",
    timeout: 60_000,
  });
  assertEquals(status, 0, stderr);
  assert(stdout.includes("doctor"), stdout);
});
