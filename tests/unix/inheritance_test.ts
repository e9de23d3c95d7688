/**
 * Processes that this one starts inherit nothing of UCX's: they would hold its ports and its connections. What was
 * there before is inherited as it was.
 */
import { assert, assertEquals } from "@std/assert";
import { spawnSync } from "node:child_process";
import process from "node:process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { isBun } from "../support/child.ts";

const script = fileURLToPath(new URL("./inheritance_child.ts", import.meta.url));

// A listener's port stayed taken, and a peer was not missed, for as long as a child lived.
test("children inherit no descriptor of UCX, and those that were passed to this process", () => {
  const flags = isBun ? [] : ["run", "-A", "--no-check", "--quiet", "--no-lock", "--node-modules-dir=manual"];
  // What this process has been passed itself is not passed on: it might have any number.
  const only = 'for fd in /proc/$$/fd/*; do fd=${fd##*/}; [ $fd -gt 9 ] && eval "exec $fd>&-"; done';
  const passing = `exec 5</dev/null 9</dev/null; ${only}; exec "$@"`;
  const command = ["-c", passing, "bash", process.execPath, ...flags, script];
  const { stdout, stderr } = spawnSync("bash", command, { encoding: "utf8" });
  assert(stdout !== "", stderr);
  const { before, opened, after, leaked } = JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
  assert(isBun || (before.includes(5) && before.includes(9)), `${before}`); // Bun keeps them from its children
  assert(opened > 10, `UCX has opened ${opened}`);
  assertEquals([after, leaked], [before, false]);
});
