/**
 * Another library's array is called for its memory, and may close what it is sent through: then nothing begins. It
 * ended the process (a send by a handle that was gone), or never settled.
 */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { liveExports, type Sendable, StridedMemoryView, Ucx, type UcxEndpoint, type UcxWorker } from "../../mod.ts";
import type { UcxActiveMessage } from "../../src/ucx/active_messages/active_messages.ts";
import { patiently } from "../support/child.ts";
import { unwritten } from "./unwritten.ts";

interface Scene {
  readonly endpoint: UcxEndpoint;
  readonly back: UcxEndpoint;
  readonly worker: UcxWorker;
  readonly other: UcxWorker;
}

/** What calls an array for its memory. */
const calls: Readonly<Record<string, (scene: Scene, array: Sendable) => unknown>> = {
  send: ({ endpoint }, array) => endpoint.send(array),
  "send with a timeout": ({ endpoint }, array) => endpoint.send(array, { timeout: 9000 }),
  sendSync: ({ endpoint }, array) => endpoint.sendSync(array),
  sendMany: ({ endpoint }, array) => endpoint.sendMany([new Uint8Array(3), array, new Uint8Array(3)]),
  sendMessage: ({ endpoint }, array) => endpoint.sendMessage(array),
  "sendMessage of a list": ({ endpoint }, array) => endpoint.sendMessage([array, new Uint8Array(3)]),
  sendArray: ({ endpoint }, array) => endpoint.sendArray(array),
  "rawStream.send": ({ endpoint }, array) => endpoint.rawStream.send(array),
  put: ({ endpoint, other }, array) => {
    const region = other.register(new Uint8Array(64));
    return endpoint.put(array, endpoint.remote(region.key));
  },
  get: ({ endpoint, other }, array) => {
    const region = other.register(new Uint8Array(64));
    return endpoint.get(array, endpoint.remote(region.key));
  },
  "endpoint.recv": ({ endpoint }, array) => endpoint.recv(array),
  "endpoint.recvSync": ({ endpoint }, array) => endpoint.recvSync(array),
  "rawStream.recvAll": ({ endpoint }, array) => endpoint.rawStream.recvAll(array),
};

/** The same; an endpoint's end does not concern them. */
const callsOfWorker: typeof calls = {
  "worker.recv": ({ worker }, array) => worker.recv(array),
  "worker.recv with a timeout": ({ worker }, array) => worker.recv(array, { timeout: 9000 }),
  "worker.recvSync": ({ worker }, array) => worker.recvSync(array),
  register: ({ worker }, array) => worker.register(array),
  "recv of a message that was taken": async ({ worker, back }, array) => {
    await back.send(new Uint8Array(8), { tag: 5n });
    const message = await eventually(() => worker.take(5n));
    return await message.recv(array);
  },
};

/** What the array does when it is called. */
const ends: Readonly<Record<string, (scene: Scene) => unknown>> = {
  "close by force": ({ endpoint }) => endpoint.close({ force: true }),
  close: ({ endpoint }) => endpoint.close(),
};
const endsOfWorker: typeof ends = {
  abort: ({ worker }) => worker.abort(),
  "close the worker": ({ worker }) => worker.close(),
};

async function eventually<T>(ask: () => T | null): Promise<T> {
  for (let turns = 0; turns < 5000; turns++) {
    const answer = ask();
    if (answer !== null) return answer;
    await pause(1);
  }
  throw new Error("nothing has arrived");
}

const leftOut = [
  // It blocks until there is a message, while the event loop, which a close needs, stands still.
  ...["endpoint.recvSync: close", "endpoint.recvSync: close the worker", "worker.recvSync: close the worker"],
  // A worker is still open while it closes.
  ...["register: close the worker", "recv of a message that was taken: close the worker"],
];

const table = [
  ...Object.entries(calls).flatMap(([call, begin]) =>
    Object.entries({ ...ends, ...endsOfWorker }).map(([what, end]) => ({ name: `${call}: ${what}`, begin, end }))
  ),
  ...Object.entries(callsOfWorker).flatMap(([call, begin]) =>
    Object.entries(endsOfWorker).map(([what, end]) => ({ name: `${call}: ${what}`, begin, end }))
  ),
].filter(({ name }) => !leftOut.includes(name));

test(
  "what is closed while an array is called for its memory begins nothing, and keeps nothing",
  patiently,
  async () => {
    const ucx = Ucx.open();
    for (const { name, begin, end } of table) {
      const before = liveExports();
      const worker = ucx.createWorker();
      const other = ucx.createWorker();
      const [endpoint, back] = await Promise.all([worker.connect(other.address), other.connect(worker.address)]);
      await Promise.all([endpoint.flush(), back.flush()]); // UCX prints that it cannot connect to a worker that is gone
      const scene: Scene = { endpoint, back, worker, other };
      const memory = StridedMemoryView.fromTypedArray(new Uint8Array(8));
      let calls = 0;
      const ended: Promise<unknown>[] = [];
      const array = {
        __dlpack_device__: () => [1, 0],
        __dlpack__: () => {
          if (calls++ === 0) ended.push(Promise.resolve(end(scene)));
          return memory.toDlpack();
        },
      };
      const settled = (async () => await begin(scene, array))().then(() => "done", (error: unknown) => error);
      const error = await Promise.race([settled, pause(5000, "never settled", { ref: false })]);
      assert(error instanceof TypeError && /closed|aborted/.test(error.message), `${name}: ${error}`);
      assertEquals(calls, 1, name);
      await Promise.all(ended);
      await Promise.all([worker.close(), other.close()]);
      assertEquals(liveExports(), before, name);
      memory.close();
    }
    ucx.close();
  },
);

test("a message that is received while an array is called for its memory is received once", async () => {
  using ucx = Ucx.open();
  for (const isLarge of [false, true]) { // large data stay at the sender
    for (const isList of [false, true]) {
      await using worker = ucx.createWorker();
      await using other = ucx.createWorker();
      const [endpoint, back] = await Promise.all([worker.connect(other.address), other.connect(worker.address)]);
      const data = new Uint8Array(isLarge ? 4 << 20 : 8).fill(7);
      const sent = endpoint.sendMessage(data);
      for await (const message of back.messages()) {
        const inner = new Uint8Array(data.length);
        const outer = StridedMemoryView.fromTypedArray(new Uint8Array(data.length));
        let received: Promise<void> | undefined;
        const array = {
          __dlpack_device__: () => [1, 0],
          __dlpack__: () => {
            received ??= message.recv(inner);
            return outer.toDlpack();
          },
        };
        const failure = await message.recv(isList ? [array] : array).then(() => null, (error: unknown) => error);
        assert(failure instanceof TypeError && failure.message.includes("twice"), String(failure));
        await received;
        assertEquals(inner, data);
        break;
      }
      await sent;
    }
  }
  assertEquals(liveExports(), 0);
});

// Its data were given back to UCX a second time, which ended the process.
test("a message that is released, or whose worker ends, while its receive waits for a stream is released once", async () => {
  const ends: Readonly<Record<string, (worker: UcxWorker, messages: readonly UcxActiveMessage[]) => unknown>> = {
    release: (_, messages) => messages.forEach((message) => message.release()),
    abort: (worker) => worker.abort(),
    close: (worker) => worker.close(),
  };
  for (const [name, end] of Object.entries(ends)) {
    using ucx = Ucx.open();
    const worker = ucx.createWorker();
    const other = ucx.createWorker();
    const [endpoint, back] = await Promise.all([worker.connect(other.address), other.connect(worker.address)]);
    const sizes = [8, 4000, 1 << 20]; // copied when it arrives, lent by UCX, still at the sender
    for (const size of sizes) endpoint.sendMessage(new Uint8Array(size).fill(7)).catch(() => {});
    const messages: UcxActiveMessage[] = [];
    for await (const message of back.messages()) if (messages.push(message) === sizes.length) break;
    const waiting = messages.map((message) => ({ ...unwritten(message.length), message }));
    const received = Promise.allSettled(waiting.map(({ message, buffer }) => message.recv(buffer)));
    await end(other, messages);
    for (const { finishWriting } of waiting) finishWriting();
    const settled = await received;
    assertEquals(settled[1]?.status, "rejected", name);
    for (const [i, one] of settled.entries()) {
      if (one.status === "fulfilled") assertEquals(waiting[i]?.buffer.bytes().at(-1), 7, name);
      else assert(one.reason instanceof TypeError && /released meanwhile|closed/.test(one.reason.message), name);
    }
    for (const one of [worker, other]) one.abort();
  }
});
