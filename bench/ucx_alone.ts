/**
 * Costs of messages that UCX's own benchmark does not measure: while idle, and for the timers and the HTTP server of
 * the same thread. Two workers of this process.
 *
 * @module
 */
import process from "node:process";
import { setTimeout as pause } from "node:timers/promises";
import { type ProgressMode, progressModes } from "../src/ucx/progress.ts";
import { Ucx, type UcxEndpoint, type UcxWorker } from "../src/ucx/mod.ts";
import { serveHttp } from "../tests/support/http_server.ts";

/** A measurement: its name, and what it prints. */
export interface Alone {
  readonly name: string;
  measure(): Promise<string>;
}

interface Pair {
  readonly alice: UcxWorker;
  readonly bob: UcxWorker;
  readonly there: UcxEndpoint;
  readonly back: UcxEndpoint;
}

async function withPair<T>(progress: ProgressMode, tls: string, act: (pair: Pair) => Promise<T>): Promise<T> {
  using ucx = Ucx.open({ config: { TLS: tls } });
  await using alice = ucx.createWorker({ progress });
  await using bob = ucx.createWorker({ progress });
  const [there, back] = [await alice.connect(bob.address), await bob.connect(alice.address)];
  return await act({ alice, bob, there, back });
}

/** Sends `bytes` bytes there and back `times` times. */
async function pingPong({ alice, bob, there, back }: Pair, times: number, bytes = 8): Promise<void> {
  const [out, into] = [new Uint8Array(bytes), new Uint8Array(bytes)];
  for (let i = 0; i < times; i++) {
    await Promise.all([there.send(out), bob.recv(into)]);
    await Promise.all([back.send(out), alice.recv(into)]);
  }
}

/** Posts receives on tags that are never sent. @returns the controller that aborts them */
function waitForNothing(worker: UcxWorker, count: number): AbortController {
  const end = new AbortController();
  const { signal } = end;
  for (let i = 1; i <= count; i++) worker.recv(new Uint8Array(8), { tag: BigInt(i), signal }).catch(() => {});
  return end;
}

/** Processor usage while idle, in percent. */
function idle(progress: ProgressMode): Promise<string> {
  return withPair(progress, "sm", async (pair) => {
    const waiting = waitForNothing(pair.bob, 1000);
    await pingPong(pair, 10);
    const used = await usedWhileIdle();
    waiting.abort();
    return used;
  });
}

/** Processor usage of this process in ten seconds in which it does nothing, once what it did before is over. */
async function usedWhileIdle(): Promise<string> {
  await pause(3000); // the engine's garbage collector, UCX's last look at peers
  const [start, before] = [performance.now(), process.cpuUsage()];
  await pause(10_000);
  const { user, system } = process.cpuUsage(before);
  return `${((user + system) / (performance.now() - start) / 10).toFixed(2)}% of a processor`;
}

/** Activity beside messages: reports how long after its last run, or after the request, it ran. */
type Beside = (took: (ms: number) => void, isOver: () => boolean) => Promise<void>;

/** A timer of 1 ms: from one firing to the next. */
const timer: Beside = async (took, isOver) => {
  let last = performance.now();
  while (!isOver()) {
    await new Promise((resolve) => setTimeout(resolve, 1));
    const now = performance.now();
    took(now - last);
    last = now;
  }
};

/** Requests to a server of this thread, one after the other. */
const requests: Beside = async (took, isOver) => {
  await using server = serveHttp("here");
  while (!isOver()) {
    const start = performance.now();
    await (await fetch(server.url)).text();
    took(performance.now() - start);
  }
};

/** The times of an activity while messages go back and forth without a pause. */
function beside(what: Beside, progress: ProgressMode, tls: string, bytes: number): Promise<string> {
  return withPair(progress, tls, async (pair) => {
    const times: number[] = [];
    let isOver = false;
    const done = what((ms) => times.push(ms), () => isOver);
    let roundTrips = 0;
    for (const end = performance.now() + 2000; performance.now() < end; roundTrips++) await pingPong(pair, 1, bytes);
    isOver = true;
    await done;
    const sorted = times.toSorted((one, other) => one - other);
    const at = (share: number) => (sorted[Math.floor(sorted.length * share)] ?? NaN).toFixed(2);
    return `${at(0.5)} ms, p99 ${at(0.99)} ms, beside ${Math.round(roundTrips / 2)} round trips a second`;
  });
}

/** All measurements. */
export const alone: readonly Alone[] = [
  { name: "idle with nothing open: the runtime itself", measure: usedWhileIdle },
  { name: "idle with 1,000 receives pending, event", measure: () => idle("event") },
  { name: "idle with 1,000 receives pending, adaptive", measure: () => idle("adaptive") },
  ...Object.entries({ "a timer of 1 ms": timer, "a request over HTTP": requests }).flatMap(([name, what]) =>
    progressModes.flatMap((mode) =>
      ["sm", "tcp"].flatMap((tls) =>
        [8, 1 << 20].map((bytes) => ({
          name: `${name} beside messages of ${bytes} bytes over ${tls}, ${mode}`,
          measure: () => beside(what, mode, tls, bytes),
        }))
      )
    )
  ),
];
