/** Where shared memory is short, as in containers, the error of a worker says so, and what to do helps. */
import { assertEquals, assertStringIncludes } from "@std/assert";
import { spawnSync } from "node:child_process";
import process from "node:process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { isBun, patiently } from "../support/child.ts";
import { needs } from "../support/needs.ts";

const mounts = spawnSync("unshare", ["-m", "true"]).status === 0 ? null : "mounting needs root and unshare";
const [title, { skip }] = needs(mounts, "a worker for which /dev/shm has no room is an error that says what to do");

test(title, { skip, ...patiently }, () => {
  const child = fileURLToPath(new URL("./full_shm_child.ts", import.meta.url));
  const flags = isBun ? "" : "run -A --no-check --quiet --no-lock --node-modules-dir=manual";
  const script = `mount -t tmpfs -o size=64k none /dev/shm && '${process.execPath}' ${flags} '${child}'`;
  const env = { ...process.env, UCX_LOG_LEVEL: "fatal" };
  const { status, stdout, stderr } = spawnSync("unshare", ["-m", "bash", "-c", script], { encoding: "utf8", env });
  assertStringIncludes(stdout, "Is /dev/shm full? A worker takes some 4 MB of it");
  assertEquals(status, 0, stderr);
});
