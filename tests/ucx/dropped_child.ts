/**
 * Drops workers with connections, untaken messages and abandoned receives, and prints the system resources that the
 * process then holds: the argument selects the dropped objects, `workers` or `contexts` with their workers.
 */
import { spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import process from "node:process";
import { setTimeout as pause } from "node:timers/promises";
import { trailerBytes, withTrailer } from "../../src/ucx/address.ts";
import { type ProgressMode, progressModes } from "../../src/ucx/progress.ts";
import { Ucx } from "../../src/ucx/ucx.ts";
import { isBefore } from "../../src/ucx/version.ts";
import { UcxError } from "../../src/ucx/error.ts";
import type { UcxEndpoint } from "../../src/ucx/endpoint.ts";
import type { UcxWorker } from "../../src/ucx/worker.ts";
import { until } from "../support/until.ts";
import { atomicIfSupported } from "./atomic.ts";
import { identityOf } from "./identity.ts";
import { openFiles } from "../support/open_files.ts";

/** Pairs of workers that exist at once: Deno waits for the descriptors of 32 at most. */
const pairs = 12;
/** Larger than UCX buffers unasked: it stays at the sender. */
const big = 1 << 20;
const memory = () => new Uint8Array(new ArrayBuffer(big));

/** Another process. */
const child = spawn("sleep", ["1000"], { stdio: "ignore" });
const livingProcess = identityOf(child.pid ?? 0);

/** The system resources that a process holds. */
interface Sample {
  readonly descriptors: number;
  readonly threads: number;
  readonly mappings: number;
  /** In bytes. */
  readonly resident: number;
}

function sample(): Sample {
  return {
    descriptors: openFiles(),
    threads: readdirSync("/proc/self/task").length,
    mappings: readFileSync("/proc/self/maps", "utf8").split("\n").length,
    resident: Number(readFileSync("/proc/self/statm", "utf8").split(" ")[1]) * 4096,
  };
}

/** Collects garbage until a condition holds, or until a limit. */
async function collect(due: () => boolean): Promise<void> {
  const collectGarbage: unknown = Reflect.get(globalThis, "gc");
  if (typeof collectGarbage !== "function") throw new Error("this script needs gc()");
  for (let round = 0; round < 8 || (!due() && round < 300); round++) {
    useStack(100);
    collectGarbage();
    await pause(20); // finalisers run in separate tasks, and workers fall asleep
  }
}

/** Overwrites what earlier calls left on the stack. */
function useStack(deep: number): number {
  return deep === 0 ? 0 : 1 + useStack(deep - 1);
}

/** An operation that was abandoned: its promise is dropped. */
async function abandoned(operation: Promise<unknown>): Promise<void> {
  try {
    await operation;
  } catch (error) {
    if (error instanceof UcxError || error instanceof DOMException) return;
    throw error;
  }
  throw new Error("an abandoned operation was completed");
}

/** Two workers connected to each other, with an operation of every kind in flight. */
async function used(ucx: Ucx, progress: ProgressMode): Promise<UcxWorker[]> {
  const [one, other] = [ucx.createWorker({ progress }), ucx.createWorker({ progress })];
  const listener = one.listen();
  const [byHost, accepted] = await Promise.all([other.connect(listener), listener.accept()]);
  if (accepted === null) throw new Error("the listener was closed");
  const [brief, taken] = await Promise.all([other.connect(listener), listener.accept()]);
  await listener.close(); // an open listener is not garbage
  // A promise that was awaited, or may have been, keeps nothing alive once it has settled.
  const over = [brief, taken].map(async (endpoint) => {
    endpoint?.writable.getWriter().closed.catch(() => {});
    endpoint?.readable.getReader().closed.catch(() => {});
    await endpoint?.closed;
  });
  await brief.close();
  await Promise.all(over);
  const late = await one.connect(other.address);
  await late.close();
  await late.closed; // nor does awaiting a settled promise
  const [there, back] = [await one.connect(other.address), await other.connect(one.address)];
  await one.connect(withTrailer(other.address.subarray(0, -trailerBytes), livingProcess)); // its process is watched
  await exchange(there, other);
  await exchange(back, one);
  await exchange(byHost, one);
  const region = other.register(new Uint8Array(new ArrayBuffer(4096)));
  await there.put(new Uint8Array(100), there.remote(region.key));
  await atomicIfSupported(there.atomic("add", there.remote(region.key), 8, 1n));
  const timeout = 5;
  await Promise.all([
    abandoned(one.recv(new Uint8Array(8), { tag: 99n, timeout })),
    abandoned(one.recv(new Uint8Array(8), { tag: 99n, signal: AbortSignal.timeout(5) })),
    abandoned(accepted.rawStream.recvAll(new Uint8Array(8), { timeout })), // UCX cannot cancel it
    abandoned(one.recvMany({ tag: 98n, timeout })),
    ...(givesUp ? [there.send(memory(), { tag: 97n, timeout }), there.sendMessage(memory(), { timeout })] : [])
      .map(abandoned), // never received
    abandoned((async () => {
      for await (const message of other.messages({ timeout })) message.length; // taken, and not received
    })()),
  ]);
  return [one, other];
}

/** Sends messages that are never received; one of them is taken. */
async function exchange(from: UcxEndpoint, to: UcxWorker): Promise<void> {
  for (const size of [1, 100, 8192]) {
    await from.send(new Uint8Array(size), { tag: 1n });
    await from.sendMessage(new Uint8Array(size), { header: "unasked" });
  }
  await from.flush();
  await until(() => to.take(1n) !== null);
}

/** Uses many workers, all existing at once. @param ucx their context; null gives each pair its own */
async function many(ucx: Ucx | null): Promise<{ readonly workers: UcxWorker[]; readonly contexts: Ucx[] }> {
  const workers: UcxWorker[] = [];
  const contexts: Ucx[] = [];
  for (let i = 0; i < pairs; i++) {
    const mode = progressModes[i % progressModes.length];
    const context = ucx ?? openUcx();
    if (ucx === null) contexts.push(context);
    workers.push(...await used(context, mode ?? "adaptive"));
  }
  return { workers, contexts };
}

/** Closes many, in a separate function like the one that drops them, so that nothing stays on the stack. */
async function manyClosed(ucx: Ucx | null): Promise<void> {
  const { workers, contexts } = await many(ucx);
  for (const worker of workers) worker.abort();
  for (const context of contexts) context.close();
}

/** Drops many. @returns the resources of the process while they exist */
async function manyDropped(ucx: Ucx | null): Promise<Sample> {
  const { workers, contexts } = await many(ucx);
  const most = sample();
  workers.length = contexts.length = 0;
  return most;
}

function openUcx(): Ucx {
  return Ucx.open({ config: { TLS: "sm,tcp,self" } });
}

const [what = ""] = process.argv.slice(2);
const ucx = openUcx();
const context = what === "contexts" ? null : ucx;
/** Whether large sends are given up: newer versions of UCX forget their memory, and the context has to stay. */
const givesUp = context !== null || isBefore(ucx.version, 14);
/** Rounds that close all before the first measurement: an allocator that has grown does not shrink at once. */
const roundsClosed = isBefore(ucx.version, 14) ? what === "contexts" ? 2 : 3 : 10; // newer ones grow for longer
/** Rounds that drop all: 120 workers, or 24 contexts with 48. */
const roundsDropped = what === "contexts" ? 2 : 5;
for (let i = 0; i < roundsClosed; i++) {
  await manyClosed(context);
  await collect(() => true);
}
const before = sample();
let most = before;
for (let i = 0; i < roundsDropped; i++) {
  const meanwhile = await manyDropped(context);
  if (meanwhile.descriptors > most.descriptors) most = meanwhile;
  // A look at each of thousands of descriptors takes as long as collecting them: they are counted first.
  const areFew = () => readdirSync("/proc/self/fd").length <= before.descriptors + 4;
  await collect(() => areFew() && sample().descriptors <= before.descriptors);
}
const after = sample();
// The process continues as before.
const [worker] = await used(ucx, "adaptive");
await worker?.close({ timeout: 100 }); // the messages sent are never received
console.log(JSON.stringify({ before, most, after }));
child.kill("SIGKILL");
process.exit(0);
