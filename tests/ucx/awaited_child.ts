/**
 * Drops workers while somebody waits for something of them, collects garbage, has it happen, and prints what of it came.
 * The argument is how they wait.
 */
import process from "node:process";
import { setTimeout as pause } from "node:timers/promises";
import type { UcxEndpoint } from "../../src/ucx/endpoint.ts";
import type { ProgressMode } from "../../src/ucx/progress.ts";
import { Ucx } from "../../src/ucx/ucx.ts";
import type { UcxWorker } from "../../src/ucx/worker.ts";

/** More than UCX takes in on its own: what is sent stays at the sender until it is asked for. */
const big = 1 << 20;

/** Something to wait for. */
interface Wait {
  /** Begins it with a worker that nobody else has. @returns what it brings, in the end */
  begin(worker: UcxWorker, other: UcxWorker): Promise<{ readonly end: Promise<unknown>; readonly back?: UcxEndpoint }>;
  /** Has it happen, by the other worker. */
  happen(to: UcxEndpoint, other: UcxWorker): Promise<unknown>;
}

const bytes = () => Uint8Array.of(1, 2, 3);

async function received(into: Uint8Array, receive: Promise<unknown>): Promise<Uint8Array> {
  await receive;
  return into;
}

const waits: Readonly<Record<string, Wait>> = {
  recv: {
    begin: (worker) => {
      const into = new Uint8Array(3);
      return Promise.resolve({ end: received(into, worker.recv(into)) });
    },
    happen: (to) => to.send(bytes()),
  },
  recvMany: {
    begin: (worker) => Promise.resolve({ end: worker.recvMany().then(([part]) => part?.toArray()) }),
    happen: (to) => to.sendMany([bytes()]),
  },
  messages: {
    begin: (worker) =>
      Promise.resolve({
        end: (async () => {
          for await (const message of worker.messages()) return await message.bytes();
        })(),
      }),
    happen: (to) => to.sendMessage(bytes()),
  },
  recvArray: {
    begin: (worker) => Promise.resolve({ end: worker.recvArray().then((array) => array.toArray()) }),
    happen: (to) => to.sendArray(bytes()),
  },
  "an endpoint's stream": {
    begin: async (worker, other) => {
      const endpoint = await worker.connect(other.address);
      return { end: endpoint.readable.getReader().read().then(({ value }) => value), back: endpoint };
    },
    happen: async (to) => {
      const writer = to.writable.getWriter();
      await writer.write(bytes());
      writer.releaseLock();
    },
  },
  send: {
    begin: async (worker, other) => {
      const endpoint = await worker.connect(other.address);
      return { end: endpoint.send(new Uint8Array(big).fill(7), { tag: 5n }).then(() => bytes()) };
    },
    happen: async (_, other) => {
      const into = await received(new Uint8Array(big), other.recv(new Uint8Array(big), { tag: 5n }));
      return into.length;
    },
  },
  close: {
    begin: async (worker, other) => {
      const endpoint = await worker.connect(other.address);
      void endpoint.send(new Uint8Array(big), { tag: 6n });
      return { end: worker.close().then(() => bytes()) };
    },
    happen: (_, other) => other.recv(new Uint8Array(big), { tag: 6n }),
  },
  accept: {
    begin: (worker) => {
      const listener = worker.listen();
      port = listener.port;
      return Promise.resolve({ end: listener.accept().then(() => bytes()) });
    },
    happen: (_, other) => other.connect({ host: "127.0.0.1", port }),
  },
};
let port = 0;

async function collect(): Promise<void> {
  const collectGarbage: unknown = Reflect.get(globalThis, "gc");
  if (typeof collectGarbage !== "function") throw new Error("this script needs gc()");
  for (let round = 0; round < 8; round++) {
    collectGarbage();
    await pause(15); // workers fall asleep meanwhile
  }
}

const [mode = ""] = process.argv.slice(2);
const ucx = Ucx.open({ config: { TLS: "sm,tcp,self" } });
const other = ucx.createWorker();

/** In a function of its own: nothing stays on the stack. */
async function begin({ begin }: Wait) {
  const worker = ucx.createWorker({ progress: mode as ProgressMode }); // the test's argument
  const to = await other.connect(worker.address);
  const { end } = await begin(worker, other);
  return { to, end: end.then((value) => Array.from(value as Iterable<number>)) }; // all of them bring bytes
}

for (const [what, wait] of Object.entries(waits)) {
  const { to, end } = await begin(wait);
  await collect();
  const happened = wait.happen(to, other).catch((error) => String(error));
  const late = pause(5000, "nothing", { ref: false });
  console.log(JSON.stringify({ what, brought: await Promise.race([end, late]) }));
  await Promise.race([happened, late]);
}
process.exit(0);
