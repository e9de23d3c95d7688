/**
 * One of the two processes of bench/ucx.ts: prints its address, reads the other's, measures with it, and prints the
 * measurement as JSON.
 *
 * @module
 */
import process from "node:process";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { type ProgressMode, Ucx, type UcxEndpoint, type UcxWorker } from "../src/ucx/mod.ts";
import { allocator } from "./ucx_memory.ts";

/** A measurement. */
export interface Job {
  readonly role: "client" | "server";
  readonly test: "latency" | "rate";
  /** `bare`: by `ucx_bare.ts`. `socket` and `watch`: by `ucx_socket.ts` and `ucx_watch.ts`, without UCX. */
  readonly how: "sync" | "awaited" | "bare" | "socket" | "watch";
  readonly progress: ProgressMode;
  readonly bytes: number;
  /** Round trips, or messages. */
  readonly count: number;
  /** Kind of memory of the messages: a GPU's, from a pool or not; managed, page-locked, or pageable host memory. */
  readonly memory: "host" | "pinned" | "managed" | "pool" | "device";
  /** How the two connect: by the addresses of their workers, or by a port on which the server listens. */
  readonly by: "address" | "listener";
  /** Whether endpoints detect the peer's exit. */
  readonly errors: "peer" | "none";
  /** Receives pending on other tags meanwhile, on both sides. */
  readonly pending: number;
  /** Milliseconds between two round trips: both sides sleep meanwhile. Back to back if not given. */
  readonly gap?: number;
  /** Messages in flight where the rate is measured: 64 if not given. */
  readonly window?: number;
}

const batches = 100;
/** Round trips with a gap that are not counted. */
const warmUp = 50;

/**
 * Half round trips, in microseconds: the median over batches. Like C, what is awaited posts its receive while its send
 * is in flight.
 */
async function latency(endpoint: UcxEndpoint, worker: UcxWorker, job: Job): Promise<number> {
  const { role, how, count } = job;
  const allocate = allocator(job);
  const [out, into] = [allocate(), allocate()];
  const isClient = role === "client";
  const awaited = async (times: number) => {
    let sent = Promise.resolve();
    for (let i = 0; i < times; i++) {
      if (isClient) {
        await sent;
        sent = endpoint.send(out);
      }
      await worker.recv(into);
      if (!isClient) {
        await sent;
        sent = endpoint.send(out);
      }
    }
    await sent;
  };
  const sync = (times: number) => {
    for (let i = 0; i < times; i++) {
      if (isClient) endpoint.sendSync(out);
      worker.recvSync(into);
      if (!isClient) endpoint.sendSync(out);
    }
  };
  const run = async (times: number) => how === "sync" ? sync(times) : await awaited(times);
  const each = Math.max(1, Math.floor(count / batches));
  await run(each * 20);
  const times: number[] = [];
  for (let i = 0; i < batches; i++) {
    const start = performance.now();
    await run(each);
    times.push((performance.now() - start) / each / 2 * 1000);
  }
  return times.toSorted((a, b) => a - b)[batches / 2] ?? NaN;
}

/** Half round trips between workers that have slept, in microseconds: the median. */
async function asleep(endpoint: UcxEndpoint, worker: UcxWorker, job: Job): Promise<number> {
  const { role, count, gap } = job;
  const allocate = allocator(job);
  const [out, into] = [allocate(), allocate()];
  const times: number[] = [];
  for (let i = 0; i < warmUp + count; i++) {
    if (role === "client") await pause(gap);
    const start = performance.now();
    if (role === "client") await endpoint.send(out);
    await worker.recv(into);
    if (role === "server") await endpoint.send(out);
    if (i >= warmUp) times.push((performance.now() - start) / 2 * 1000);
  }
  return times.toSorted((a, b) => a - b)[count >> 1] ?? NaN;
}

/** Messages a second, from the client to the server. */
async function rate(endpoint: UcxEndpoint, worker: UcxWorker, job: Job): Promise<number> {
  const { role, how, count, window = 64 } = job;
  const one = allocator(job)(); // the same for all, as in C
  const done = new Uint8Array(1);
  let start = 0;
  for (const messages of [Math.ceil(count / 5 / window) * window, Math.ceil(count / window) * window]) { // the first: warm up
    start = performance.now();
    if (how === "sync") {
      for (let n = 0; n < messages; n++) {
        if (role === "client") endpoint.sendSync(one);
        else worker.recvSync(one);
      }
    } else {
      // A window's worth in flight at any time.
      await Promise.all(Array.from({ length: window }, async (_, lane) => {
        for (let n = lane; n < messages; n += window) {
          if (role === "client") await endpoint.send(one);
          else await worker.recv(one);
        }
      }));
    }
    // The client waits until everything has arrived.
    if (role === "client") await worker.recv(done, { tag: 1n });
    else await endpoint.send(done, { tag: 1n });
  }
  return Math.ceil(count / window) * window / (performance.now() - start) * 1000;
}

const job: Job = JSON.parse(process.argv[2] ?? "{}");
const ucx = Ucx.open();
const worker = ucx.createWorker({ progress: job.progress });
const { errors } = job;
const listener = job.by === "listener" && job.role === "server" ? await worker.listen({ errors }) : null;
console.log(listener === null ? worker.address.toHex() : listener.port);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const said = (await lines.next()).value ?? "";

/** The endpoint to the other process. */
async function meet(): Promise<UcxEndpoint> {
  if (job.by === "address") return await worker.connect(Uint8Array.fromHex(said), { errors });
  if (listener === null) return await worker.connect({ host: "127.0.0.1", port: Number(said) }, { errors });
  const endpoint = await listener.accept();
  if (endpoint === null) throw new TypeError("The listener was closed");
  return endpoint;
}

const endpoint = await meet();
const end = new AbortController();
for (let i = 0; i < job.pending; i++) {
  worker.recv(new Uint8Array(8), { tag: BigInt(100 + i), signal: end.signal }).catch(() => {});
}
const measure = job.gap !== undefined ? asleep : job.test === "latency" ? latency : rate;
const measured = await measure(endpoint, worker, job);
console.log(JSON.stringify({ measured, transports: endpoint.transports(), version: ucx.version }));
end.abort();
await worker.close();
ucx.close();
process.exit(0);
