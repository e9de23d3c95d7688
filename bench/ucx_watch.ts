/**
 * A third floor of bench/ucx.ts: the same two processes send one byte back and forth through pipes that they watch as a
 * worker that sleeps watches UCX (`native/readable_watch.ts`), without UCX. Prints and reads as `ucx_peer.ts` does.
 *
 * @module
 */
import { execFileSync } from "node:child_process";
import { openSync, readSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { watchReadable } from "../src/native/mod.ts";
import type { Job } from "./ucx_peer.ts";

const { role, count, gap = 0 }: Job = JSON.parse(process.argv[2] ?? "{}");
/** Round trips that are not counted. */
const warmUp = 50;

/** Each process reads from a pipe of its own. */
const path = join(tmpdir(), `causeway-bench-${process.pid}.pipe`);
execFileSync("mkfifo", [path]);
console.log(path);
const line = await createInterface({ input: process.stdin })[Symbol.asyncIterator]().next();
// For both directions: to open one end alone waits for the other.
const [from, to] = [openSync(path, "r+"), openSync(line.value ?? "", "r+")];

const byte = new Uint8Array(1);
let arrived = Promise.withResolvers<void>();
const watch = watchReadable([from], () => {
  readSync(from, byte);
  arrived.resolve();
  watch.start();
});
watch.start();
const times: number[] = [];
for (let i = 0; i < warmUp + count; i++) {
  if (role === "client") await pause(gap);
  const start = performance.now();
  if (role === "client") writeSync(to, byte);
  await arrived.promise;
  arrived = Promise.withResolvers();
  if (role === "server") writeSync(to, byte);
  if (i >= warmUp) times.push((performance.now() - start) / 2 * 1000);
}
console.log(JSON.stringify({ measured: times.toSorted((a, b) => a - b)[count >> 1] }));
rmSync(path);
process.exit(0);
