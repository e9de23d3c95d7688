/**
 * One of the two processes of bench/ucx.ts: prints its address, reads the other's, measures with it, and prints what it
 * measured, as JSON.
 *
 * @module
 */
import process from "node:process";
import { createInterface } from "node:readline";
import { type ProgressMode, Ucx, type UcxEndpoint, type UcxWorker } from "../src/ucx/mod.ts";

/** What is measured. */
export interface Job {
  readonly role: "client" | "server";
  readonly test: "latency" | "rate";
  readonly how: "sync" | "awaited";
  readonly progress: ProgressMode;
  readonly bytes: number;
  /** Round trips, or messages. */
  readonly count: number;
}

/** Messages on their way at a time, where the rate is measured. */
const window = 64;
const batches = 100;

/** Half round trips, in microseconds: the median over batches. */
async function latency(endpoint: UcxEndpoint, worker: UcxWorker, { role, how, bytes, count }: Job): Promise<number> {
  const [out, into] = [new Uint8Array(bytes).fill(1), new Uint8Array(bytes)];
  const isClient = role === "client";
  const awaited = async (times: number) => {
    for (let i = 0; i < times; i++) {
      if (isClient) await endpoint.send(out);
      await worker.recv(into);
      if (!isClient) await endpoint.send(out);
    }
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

/** Messages a second, from the client to the server. */
async function rate(endpoint: UcxEndpoint, worker: UcxWorker, { role, how, bytes, count }: Job): Promise<number> {
  const one = new Uint8Array(bytes);
  const memory = Array.from({ length: window }, () => new Uint8Array(bytes));
  const done = new Uint8Array(1);
  let start = 0;
  for (const messages of [window * 20, Math.ceil(count / window) * window]) {
    start = performance.now();
    if (how === "sync") {
      for (let n = 0; n < messages; n++) {
        if (role === "client") endpoint.sendSync(one);
        else worker.recvSync(one);
      }
    } else {for (let n = 0; n < messages; n += window) {
        if (role === "client") await Promise.all(memory.map((bytes) => endpoint.send(bytes)));
        else await Promise.all(memory.map((bytes) => worker.recv(bytes)));
      }}
    // The client waits until everything has arrived.
    if (role === "client") await worker.recv(done, { tag: 1n });
    else await endpoint.send(done, { tag: 1n });
  }
  return Math.ceil(count / window) * window / (performance.now() - start) * 1000;
}

const job: Job = JSON.parse(process.argv[2] ?? "{}");
const ucx = Ucx.open();
const worker = ucx.createWorker({ progress: job.progress });
console.log(worker.address.toHex());
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const endpoint = await worker.connect(Uint8Array.fromHex((await lines.next()).value ?? ""));
const measured = job.test === "latency" ? await latency(endpoint, worker, job) : await rate(endpoint, worker, job);
console.log(JSON.stringify({ measured, transports: endpoint.transports(), version: ucx.version }));
await worker.close();
ucx.close();
process.exit(0);
