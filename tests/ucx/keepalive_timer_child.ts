/**
 * Lets workers idle, and prints as JSON whether UCX has made timers, they have stopped, stay stopped, and the outcome
 * at the end. The first argument selects how the workers connect:
 *
 * - `address`: two workers of this process, by address; then by an address without an identity, until the
 *   endpoint is closed
 * - `host`: two workers of this process, by a listener
 * - `process`: a worker and one of another process, by address; then the other process is killed
 * - `client`: a listener here and a worker of another process; then the other process is killed
 * - `unchecked`: two workers of this process, by an address without an identity
 *
 * At the end: whether a timer runs while a peer is unidentified and after it has closed, or how long, in
 * milliseconds, it took to report the death.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import process from "node:process";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { trailerBytes } from "../../src/ucx/address.ts";
import { Ucx } from "../../src/ucx/ucx.ts";
import type { UcxEndpoint } from "../../src/ucx/endpoint.ts";
import { until } from "../support/until.ts";

const [mode] = process.argv.slice(2);

/** The intervals of all timers that are in a set of another library. */
function intervals(): number[] {
  return readdirSync("/proc/self/fd").flatMap((fd) => {
    try {
      if (readlinkSync(`/proc/self/fd/${fd}`) !== "anon_inode:[timerfd]") return [];
      const text = readFileSync(`/proc/self/fdinfo/${fd}`, "utf8");
      const [, seconds] = /^it_interval: \((\d+), /m.exec(text) ?? [];
      return [Number(seconds)];
    } catch {
      return []; // the descriptor of this listing
    }
  });
}

const isRunning = () => intervals().some((seconds) => seconds > 0);

const made = intervals().length; // by the runtime
const ucx = Ucx.open();
const [one, other] = [ucx.createWorker(), ucx.createWorker()];
let child: ChildProcess | undefined;

/** Starts the other process, and writes a line to it. @returns its worker's address */
async function start(what: string, line: string): Promise<string> {
  const flags = process.versions["bun"] === undefined ? ["run", "-A", "--no-check", "--quiet"] : [];
  const script = fileURLToPath(new URL("./peer.ts", import.meta.url));
  child = spawn(process.execPath, [...flags, script, what], { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout ?? process.stdin });
  const [address] = await once(lines, "line");
  child.stdin?.write(`${line}\n`);
  return String(address);
}

async function connect(): Promise<UcxEndpoint> {
  switch (mode) {
    case "host": {
      const listener = other.listen();
      const [endpoint] = await Promise.all([one.connect(listener), listener.accept()]);
      return endpoint;
    }
    case "process": {
      const address = await start("idle", one.address.toHex());
      const endpoint = await one.connect(Uint8Array.fromHex(address));
      await endpoint.flush();
      return endpoint;
    }
    case "client": {
      const listener = one.listen();
      await start("call", `${listener.host} ${listener.port}`);
      const endpoint = await listener.accept();
      if (endpoint === null) throw new Error("no client has connected");
      await endpoint.recv(new Uint8Array(1));
      return endpoint;
    }
    case "unchecked":
      return await one.connect(other.address.slice(0, -trailerBytes), { unchecked: true });
    default:
      return await one.connect(other.address);
  }
}

const endpoint = await connect();
if (child === undefined) await Promise.all([other.recv(new Uint8Array(4)), endpoint.send(new Uint8Array(4))]);
const receive = endpoint.recv(new Uint8Array(4)).catch(() => {});
// Where processes are slow to connect a timer may have been stopped by now, but not closed.
const atFirst = intervals().length > made;
if (mode === "unchecked") await pause(1300); // one wakeup
else await until(() => !isRunning());
const rested = !isRunning();
await pause(1200);
const stillRested = !isRunning();
let end: boolean[] | number | null = null;
if (mode === "address") {
  const stranger = await one.connect(other.address.slice(0, -trailerBytes), { unchecked: true });
  await pause(1300); // one wakeup
  const withIt = isRunning();
  await stranger.close({ force: true });
  await until(() => !isRunning());
  end = [withIt, isRunning()];
}
if (child !== undefined) {
  const start = performance.now();
  child.kill("SIGKILL");
  await receive;
  end = performance.now() - start;
}
console.log(JSON.stringify({ atFirst, rested, stillRested, end }));
await Promise.all([one.abort(), other.abort()]);
ucx.close();
process.exit(0);
