/**
 * Drops workers with pending promises, collects garbage, triggers what the promises wait for, and prints the outcome of
 * each: the argument is the workers' progress mode.
 */
import { assert } from "@std/assert";
import process from "node:process";
import { setTimeout as pause } from "node:timers/promises";
import type { UcxListener } from "../../src/ucx/listen/listener.ts";
import type { UcxEndpoint } from "../../src/ucx/endpoint.ts";
import { progressModes } from "../../src/ucx/progress.ts";
import { Ucx } from "../../src/ucx/ucx.ts";
import type { UcxWorker } from "../../src/ucx/worker.ts";

/** Larger than UCX buffers unasked: it stays at the sender until the receiver requests it. */
const big = 1 << 20;

/** A kind of pending promise. */
interface Wait {
  /** Begins to wait, with a worker that is then dropped. @returns a promise that settles with the outcome */
  begin(worker: UcxWorker): Promise<{ readonly end: Promise<unknown> }>;
  /** Triggers what the promise waits for. @param to leads to that worker */
  happen(to: UcxEndpoint): Promise<unknown>;
}

/** The bytes sent. */
const sent = () => Uint8Array.of(1, 2, 3);

/** A wait that begins at once. */
function at(begin: (worker: UcxWorker) => Promise<unknown>): Wait["begin"] {
  return (worker) => Promise.resolve({ end: begin(worker) });
}

async function received(worker: UcxWorker, tag: bigint, bytes: number): Promise<Uint8Array> {
  const into = new Uint8Array(new ArrayBuffer(bytes));
  await worker.recv(into, { tag });
  return into;
}

async function firstMessage(worker: UcxWorker): Promise<Uint8Array | null> {
  for await (const message of worker.messages()) return await message.bytes();
  return null;
}

/** As a program would write it: its variables live as long as it waits, and no longer. */
async function untilClosed(worker: UcxWorker, listener: UcxListener, connected: () => void): Promise<Uint8Array> {
  const endpoint = await worker.connect(listener);
  connected();
  await endpoint.closed;
  worker.abort();
  return sent();
}

const waits = (other: UcxWorker): Readonly<Record<string, Wait>> => {
  let port = 0;
  const listener = other.listen();
  /** An endpoint whose peer is notified when it ends. */
  const connected = (worker: UcxWorker) => worker.connect(listener);
  const endAccepted = async () => await (await listener.accept())?.close({ force: true });
  return {
    recv: {
      begin: at((worker) => received(worker, 1n, 3)),
      happen: (to) => to.send(sent(), { tag: 1n }),
    },
    recvMany: {
      begin: at(async (worker) => await (await worker.recvMany())[0]?.toTypedArray()),
      happen: (to) => to.sendMany([sent(), new Uint8Array(1)]),
    },
    messages: {
      begin: at(firstMessage),
      happen: (to) => to.sendMessage(sent()),
    },
    recvArray: {
      begin: at(async (worker) => await (await worker.recvArray()).toTypedArray()),
      happen: (to) => to.sendArray(sent()),
    },
    readable: {
      begin: async (worker) => {
        const { readable } = await worker.connect(other.address);
        return { end: readable.getReader().read().then(({ value }) => value) };
      },
      happen: async (to) => {
        const writer = to.writable.getWriter();
        await writer.write(sent());
      },
    },
    send: {
      begin: async (worker) => {
        const to = await worker.connect(other.address);
        return { end: to.send(new Uint8Array(new ArrayBuffer(big)).fill(7), { tag: 5n }).then(sent) };
      },
      happen: async () => assert((await received(other, 5n, big)).every((byte) => byte === 7)),
    },
    close: {
      begin: async (worker) => {
        const to = await worker.connect(other.address);
        void to.send(new Uint8Array(new ArrayBuffer(big)).fill(7), { tag: 6n });
        return { end: worker.close().then(sent) };
      },
      happen: async () => assert((await received(other, 6n, big)).every((byte) => byte === 7)),
    },
    accept: {
      begin: (worker) => {
        const listener = worker.listen();
        ({ port } = listener);
        return Promise.resolve({ end: listener.accept().then(sent) });
      },
      happen: () => other.connect({ host: "127.0.0.1", port }),
    },
    closed: {
      begin: async (worker) => {
        const endpoint = await connected(worker);
        await pause(30); // the worker sleeps
        return { end: endpoint.closed.then(sent) };
      },
      happen: endAccepted,
    },
    "closed, in an async function that has the worker": {
      begin: async (worker) => {
        const { promise, resolve } = Promise.withResolvers<void>();
        const end = untilClosed(worker, listener, resolve);
        await Promise.race([promise, end]); // a connection that ends while it is made is an error
        return { end };
      },
      happen: endAccepted,
    },
    "closed of a reader": {
      begin: async (worker) => ({ end: (await connected(worker)).readable.getReader().closed.then(sent, sent) }),
      happen: endAccepted,
    },
    "closed of a writer": {
      begin: async (worker) => ({ end: (await connected(worker)).writable.getWriter().closed.then(sent, sent) }),
      happen: endAccepted,
    },
    "a region": {
      begin: (worker) => {
        const memory = new Uint8Array(new ArrayBuffer(3));
        region = worker.register(memory);
        return Promise.resolve({ end: written.then(() => memory) });
      },
      happen: async (to) => {
        if (region === null) throw new Error("no region was registered");
        await to.put(sent(), to.remote(region.key));
        await to.flush();
        region.close();
        region = null;
        resolveWritten();
      },
    },
    "the worker of a context that was dropped": {
      begin: async () => {
        const worker = Ucx.open({ config: { TLS: "sm,tcp,self" } }).createWorker();
        const to = await worker.connect(other.address);
        return { end: to.send(new Uint8Array(new ArrayBuffer(big)).fill(7), { tag: 8n }).then(sent) };
      },
      happen: async () => assert((await received(other, 8n, big)).every((byte) => byte === 7)),
    },
  };
};

/** Memory for remote writes, which references its worker; and a promise that settles once it is written. */
let region: ReturnType<UcxWorker["register"]> | null = null;
const { promise: written, resolve: resolveWritten } = Promise.withResolvers<void>();

async function collect(): Promise<void> {
  const collectGarbage: unknown = Reflect.get(globalThis, "gc");
  if (typeof collectGarbage !== "function") throw new Error("this script needs gc()");
  for (let round = 0; round < 4; round++) {
    collectGarbage();
    await pause(15); // workers fall asleep meanwhile
  }
}

const [given] = process.argv.slice(2);
const mode = progressModes.find((one) => one === given) ?? "adaptive";
const ucx = Ucx.open({ config: { TLS: "sm,tcp,self" } });
const other = ucx.createWorker();

/** A separate function, so that nothing stays on the stack. */
async function begin(wait: Wait): Promise<{ readonly to: UcxEndpoint; readonly end: Promise<unknown> }> {
  const worker = ucx.createWorker({ progress: mode });
  const to = await other.connect(worker.address);
  const { end } = await wait.begin(worker);
  return { to, end };
}

const outcomes: Record<string, unknown> = {};
for (const [what, wait] of Object.entries(waits(other))) {
  const { to, end } = await begin(wait);
  await collect();
  const late = () => pause(5000, "nothing", { ref: false });
  const happened = Promise.race([wait.happen(to).then(() => ""), late()]).catch((error) => String(error));
  const outcome = await Promise.race([end.catch((error) => String(error)), late()]);
  outcomes[what] = outcome instanceof Uint8Array ? [...outcome, await happened] : outcome;
}
console.log(JSON.stringify(outcomes));
process.exit(0);
