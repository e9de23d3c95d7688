/**
 * Another floor of bench/ucx.ts: the same two processes send one byte back and forth over a Unix socket of the
 * runtime's own (`node:net`), each sleeping in its event loop until the byte comes. Reads and prints what `ucx_peer.ts`
 * does.
 *
 * @module
 */
import { rmSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import type { Job } from "./ucx_peer.ts";

const { role, count, gap = 0 }: Job = JSON.parse(process.argv[2] ?? "{}");
/** Round trips that are not counted. */
const warmUp = 50;

const path = join(tmpdir(), `causeway-bench-${process.pid}.socket`);
const accepted = Promise.withResolvers<Socket>();
const server = createServer(accepted.resolve);
if (role === "server") await new Promise<void>((resolve) => server.listen(path, resolve));
console.log(path);
const line = await createInterface({ input: process.stdin })[Symbol.asyncIterator]().next();
const socket = role === "server" ? await accepted.promise : connect(line.value ?? "");

let arrived = Promise.withResolvers<void>();
socket.on("data", () => arrived.resolve());
const byte = new Uint8Array(1);
const times: number[] = [];
for (let i = 0; i < warmUp + count; i++) {
  if (role === "client") await pause(gap);
  const start = performance.now();
  if (role === "client") socket.write(byte);
  await arrived.promise;
  arrived = Promise.withResolvers();
  if (role === "server") socket.write(byte);
  if (i >= warmUp) times.push((performance.now() - start) / 2 * 1000);
}
console.log(JSON.stringify({ measured: times.toSorted((a, b) => a - b)[count >> 1] }));
await new Promise<void>((resolve) => socket.end(resolve));
rmSync(path, { force: true });
process.exit(0);
