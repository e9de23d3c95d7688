/**
 * The process that dies in `death_child.ts`: many workers, so that each use of an endpoint has its own.
 * Prints how to reach each worker, by its address or the port of its listener, and the key of remote memory; reads as
 * many addresses, connects back where it does not listen, and serves until it is killed. Worker n receives messages
 * with tag 1 and active messages, and answers each with tag 300 + n; it sends messages with tag 200 + n, and active
 * ones, as long as they are received. What else it does depends on its use; the first argument has the names of the
 * uses, the third whether each worker listens.
 */
import process from "node:process";
import { createInterface } from "node:readline";
import { setInterval } from "node:timers";
import type { UcxEndpoint } from "../../src/ucx/endpoint.ts";
import { UcxError } from "../../src/ucx/error.ts";
import { Ucx } from "../../src/ucx/ucx.ts";
import type { UcxWorker } from "../../src/ucx/worker.ts";
import { assertContent, contentOf } from "../support/ucx_messages.ts";

const names: string[] = JSON.parse(process.argv[2] ?? "[]");
const size = Number(process.argv[3]);
const byListener: boolean[] = JSON.parse(process.argv[4] ?? "[]");

const ucx = Ucx.open();
const workers = names.map(() => ucx.createWorker());
const table = contentOf(3, size);
const home = workers[0] ?? ucx.createWorker();
const region = home.register(table);
const listeners = workers.map((worker, i) => byListener[i] ? worker.listen() : null);
console.log(JSON.stringify({
  reached: workers.map(({ address }, i) => listeners[i]?.port ?? address.toHex()),
  key: region.key.toHex(),
}));
const input = createInterface({ input: process.stdin });
input.once("close", () => process.exit(1)); // the parent is gone: do not outlive it
const line: string = await new Promise((resolve) => input.once("line", resolve));
const addresses: string[] = JSON.parse(line);
const forever: Promise<unknown>[] = [];
const bytes = contentOf(2, size);

interface Lane {
  readonly worker: UcxWorker;
  readonly endpoint: UcxEndpoint;
  readonly number: number;
  /** Checks the received data, and acknowledges them. */
  answer(received: Uint8Array): Promise<void>;
}

/** The other side of some uses of an endpoint, for ever. */
const serving: Readonly<Record<string, (lane: Lane) => Promise<never>>> = {
  async sendMany({ worker, answer }) {
    for (;;) {
      const [first, second, third] = await worker.recvMany({ tag: 2n });
      for (const view of [first, second]) assertContent(view?.buffer.bytes() ?? new Uint8Array(1), 1);
      await answer(third?.buffer.bytes() ?? new Uint8Array(1));
      for (const view of [first, second, third]) view?.close();
    }
  },
  async recvMany({ endpoint, number }) {
    for (;;) await endpoint.sendMany([bytes, bytes.subarray(0, 100), bytes], { tag: BigInt(400 + number) });
  },
  async sendArray({ worker, endpoint, answer }) {
    const each = async (from: UcxWorker | UcxEndpoint): Promise<never> => {
      for (;;) {
        using array = await from.recvArray();
        await answer(array.buffer.bytes());
      }
    };
    return await Promise.race([each(worker), each(endpoint)]);
  },
  async recvArray({ endpoint }) {
    for (;;) await endpoint.sendArray(bytes);
  },
  async readable({ endpoint }) {
    const writer = endpoint.writable.getWriter();
    for (;;) await writer.write(bytes);
  },
  async writable({ endpoint, answer }) {
    const reader = endpoint.readable.getReader({ mode: "byob" });
    for (;;) {
      const whole = new Uint8Array(size);
      for (let at = 0; at < size;) {
        const { value } = await reader.read(new Uint8Array(size - at));
        whole.set(value ?? new Uint8Array(), at);
        at += value?.length ?? 0;
      }
      await answer(whole);
    }
  },
  async "rawStream.send"({ endpoint, answer }) {
    for (const into = new Uint8Array(size);;) {
      await endpoint.rawStream.recvAll(into);
      await answer(into);
    }
  },
  async "rawStream.recvAll"({ endpoint }) {
    for (;;) await endpoint.rawStream.send(bytes);
  },
};

for (const [i, worker] of workers.entries()) {
  const accepted = await listeners[i]?.[Symbol.asyncIterator]().next();
  const endpoint: UcxEndpoint = accepted?.value ?? await worker.connect(Uint8Array.fromHex(addresses[i] ?? ""));
  await endpoint.send(Uint8Array.of(i), { tag: BigInt(100 + i) });
  const answer = async (received: Uint8Array) => {
    assertContent(received, 1);
    await endpoint.send(Uint8Array.of(1), { tag: BigInt(300 + i) });
  };
  forever.push((async () => {
    for (const into = new Uint8Array(size);;) {
      const { length } = await worker.recv(into, { tag: 1n });
      await answer(into.subarray(0, length));
    }
  })());
  forever.push((async () => {
    for (;;) await endpoint.send(bytes, { tag: BigInt(200 + i) });
  })());
  forever.push((async () => {
    for (;;) await endpoint.sendMessage(bytes, { header: `${i}` });
  })());
  const serve = serving[names[i] ?? ""];
  if (serve !== undefined) forever.push(serve({ worker, endpoint, number: i, answer }));
  for (const messages of [worker.messages(), endpoint.messages()]) {
    forever.push((async () => {
      for await (const message of messages) await answer(await message.bytes());
    })());
  }
}
for (const end of forever) {
  end.catch((error: unknown) => {
    if (!(error instanceof UcxError)) throw error; // else the other side has closed that endpoint
  });
}
setInterval(() => {}, 1000); // stay alive until killed, even with nothing else to do
