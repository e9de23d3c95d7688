/**
 * How every use of an endpoint ends when the process at its other end is killed, or stopped for a while. The first
 * argument selects what happens to it, the second seeds when, and which endpoints are a listener's; prints how each use
 * ended.
 */
import { assert, assertEquals, assertInstanceOf } from "@std/assert";
import { spawn } from "node:child_process";
import { once } from "node:events";
import process from "node:process";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import type { UcxActiveMessage } from "../../src/ucx/active_messages/active_messages.ts";
import type { UcxEndpoint } from "../../src/ucx/endpoint.ts";
import { UcxError } from "../../src/ucx/error.ts";
import type { UcxRemoteKey } from "../../src/ucx/remote_memory.ts";
import { Ucx } from "../../src/ucx/ucx.ts";
import type { UcxWorker } from "../../src/ucx/worker.ts";
import { startScript } from "../support/child.ts";
import { assertContent, contentOf } from "../support/ucx_messages.ts";
import { atomicIfSupported, unsupported } from "./atomic.ts";

/** Larger than UCX buffers unasked. */
const size = 4 << 20;
/** How soon pending operations must end after a death, and how soon a worker must close, in milliseconds. */
const limit = 3000;
const closeLimit = 2000;

/** One worker of the other process, and the objects used to reach it. */
interface Lane {
  readonly number: number;
  readonly worker: UcxWorker;
  readonly endpoint: UcxEndpoint;
  readonly remote: UcxRemoteKey;
  /** An active message whose data are still at the other side, until it is received. */
  message: UcxActiveMessage | null;
}

/** The next message; after the last one, rejects with the reason why the endpoint is closed. */
async function nextMessage(lane: Pick<Lane, "endpoint" | "worker">): Promise<UcxActiveMessage> {
  const both = [lane.endpoint.messages(), lane.worker.messages()];
  const { value, done } = await Promise.race(both.map((one) => one[Symbol.asyncIterator]().next()));
  if (done) throw await lane.endpoint.closed ?? new TypeError("the endpoint was closed");
  return value;
}

/** The bytes sent, and the contents of the other side's memory. */
const [out, table] = [contentOf(1, size), contentOf(3, size)];

/** Reads bytes from the stream. */
async function read({ endpoint }: Lane): Promise<Uint8Array> {
  const reader = endpoint.readable.getReader({ mode: "byob" });
  try {
    const whole = new Uint8Array(size);
    for (let at = 0; at < size;) {
      const { value, done } = await reader.read(new Uint8Array(size - at));
      if (done) throw new TypeError("the stream is over");
      whole.set(value, at);
      at += value.length;
    }
    return whole;
  } finally {
    reader.releaseLock();
  }
}

async function write({ endpoint }: Lane): Promise<void> {
  const writer = endpoint.writable.getWriter();
  try {
    await writer.write(out);
  } finally {
    writer.releaseLock();
  }
}

/** Every use of an endpoint that can be pending. */
const ways: Readonly<Record<string, (lane: Lane) => Promise<unknown>>> = {
  send: ({ endpoint }) => endpoint.send(out, { tag: 1n }),
  async recv({ endpoint, number }) {
    const into = new Uint8Array(size);
    await endpoint.recv(into, { tag: BigInt(200 + number) });
    return into;
  },
  "recv of a message never sent": ({ endpoint }) => endpoint.recv(new Uint8Array(8), { tag: 7n }),
  sendMany: ({ endpoint }) => endpoint.sendMany([out, out.subarray(0, 8), out], { tag: 2n }),
  async recvMany({ endpoint, number }) {
    const views = await endpoint.recvMany({ tag: BigInt(400 + number) });
    return views.map((view) => {
      const bytes = view.buffer.bytes().slice();
      view.close();
      return bytes;
    });
  },
  // The second begins when the first has completed.
  async "two recvMany of messages never sent"({ endpoint }) {
    const both = [endpoint.recvMany({ tag: 7n }), endpoint.recvMany({ tag: 7n })];
    for (const end of await Promise.allSettled(both)) if (end.status === "rejected") throw end.reason;
  },
  sendMessage: ({ endpoint }) => endpoint.sendMessage(out, { header: "1" }),
  "message.bytes": async (lane) => {
    const message = lane.message ?? await nextMessage(lane);
    lane.message = null;
    return await message.bytes();
  },
  sendArray: ({ endpoint }) => endpoint.sendArray(new Float64Array(out.buffer)),
  async recvArray({ endpoint, worker }) {
    // Until the worker knows its endpoint back, messages are delivered to the worker.
    const end = new AbortController();
    const limits = { signal: end.signal };
    using array = await Promise.race([endpoint.recvArray(limits), worker.recvArray(limits)]).finally(() => end.abort());
    return array.buffer.bytes().slice();
  },
  readable: read,
  writable: write,
  "rawStream.send": ({ endpoint }) => endpoint.rawStream.send(out),
  async "rawStream.recvAll"({ endpoint }) {
    const into = new Uint8Array(size);
    await endpoint.rawStream.recvAll(into);
    return into;
  },
  put: ({ endpoint, remote }) => endpoint.put(table, remote),
  async get({ endpoint, remote }) {
    const into = new Uint8Array(size);
    await endpoint.get(into, remote);
    return into;
  },
  flush: async ({ endpoint, remote }) => {
    const put = endpoint.put(table, remote);
    put.catch(() => {}); // whichever completes first
    await endpoint.flush();
    await put;
  },
  "worker.flush": async ({ endpoint, remote, worker }) => {
    const put = endpoint.put(table, remote);
    put.catch(() => {}); // whichever completes first
    await worker.flush();
    await put;
  },
  atomic: ({ endpoint, remote }) => endpoint.atomic("add", remote, 0, 0n),
  close: async ({ endpoint }) => {
    const send = endpoint.send(out, { tag: 8n });
    send.catch(() => {}); // whichever completes first
    await endpoint.close();
    await send;
  },
};
const names = Object.keys(ways);

const ucx = Ucx.open();
const [mode = "", seed = "0"] = process.argv.slice(2);

/** The other process, and a worker for each use of it. */
interface Other {
  readonly pid: number;
  readonly ended: Promise<void>;
  readonly lanes: readonly Lane[];
}

/**
 * Starts the other process and connects a worker for each use with one of its workers: half of them by its listener,
 * the others by address, both ways.
 */
async function start(used: readonly string[]): Promise<Other> {
  const byListener = used.map((_, number) => (number + Number(seed)) % 2 === 0);
  const args = [JSON.stringify(used), `${size}`, JSON.stringify(byListener)];
  const child = startScript(new URL("./death_peer.ts", import.meta.url), { args }, ["pipe", "pipe", "inherit"]);
  const { stdin, stdout, pid } = child;
  assert(stdin !== null && stdout !== null && pid !== undefined);
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const line: string = await new Promise((resolve) => createInterface({ input: stdout }).once("line", resolve));
  const peer: { reached: (string | number)[]; key: string } = JSON.parse(line);
  const workers = used.map(() => ucx.createWorker());
  stdin.write(`${JSON.stringify(workers.map(({ address }) => address.toHex()))}\n`);
  const lanes = await Promise.all(workers.map(async (worker, number): Promise<Lane> => {
    const at = peer.reached[number] ?? "";
    const endpoint = await worker.connect(
      typeof at === "number" ? { host: "127.0.0.1", port: at } : Uint8Array.fromHex(at),
    );
    await worker.recv(new Uint8Array(1), { tag: BigInt(100 + number) });
    const remote = endpoint.remote(Uint8Array.fromHex(peer.key));
    return { number, worker, endpoint, remote, message: await nextMessage({ endpoint, worker }) };
  }));
  return { pid, ended, lanes };
}

/** Uses a lane in its way. */
async function use(lane: Lane): Promise<unknown> {
  return await ways[names[lane.number] ?? ""]?.(lane);
}

/** Uses a lane in its way again and again, until that fails. */
async function useForEver(lane: Lane): Promise<never> {
  for (;;) await use(lane);
}

/** How an operation ended, and how long after the death. */
interface End {
  readonly how: string;
  readonly after: number;
}

let died = Infinity;

async function endOf(work: () => Promise<unknown>): Promise<End> {
  const how = await work().then(() => "done", (error: unknown) => {
    if (error instanceof UcxError || error instanceof TypeError) return error.name;
    throw error;
  });
  return { how, after: performance.now() - died };
}

/** The same, or that it has not ended within the limit after the death. */
async function within(end: Promise<End>): Promise<End> {
  const timer = new AbortController();
  const late = pause(Math.max(0, died + limit - performance.now()), { how: "nothing", after: NaN }, timer);
  try {
    return await Promise.race([end, late.catch(() => ({ how: "nothing", after: NaN }))]);
  } finally {
    timer.abort();
  }
}

/** Wrong ends of operations that were pending or begun later, and of the workers: there should be none. */
async function wrongEnds(lanes: readonly Lane[], ends: readonly Promise<End>[]): Promise<string[]> {
  const wrong: string[] = [];
  for (const [i, end] of (await Promise.all(ends.map(within))).entries()) {
    if (end.how !== "UcxError") wrong.push(`pending ${names[i]}: ${end.how}`);
  }
  died = performance.now(); // the same limit for operations that begin now
  const later = lanes.flatMap((lane) =>
    names.map(async (name) => {
      const { how } = await within(endOf(() => ways[name]?.(lane) ?? Promise.resolve()));
      return how === "UcxError" || how === "TypeError" ? [] : [`later ${name} after ${names[lane.number]}: ${how}`];
    })
  );
  wrong.push(...(await Promise.all(later)).flat());
  for (const lane of lanes) wrong.push(...await wrongClose(lane));
  return wrong;
}

/** Closes a worker. */
async function wrongClose({ worker, remote, number }: Lane): Promise<string[]> {
  worker.register(new Uint8Array(new ArrayBuffer(64))).close(); // it works like any other
  const begun = performance.now();
  remote.close();
  await worker.close();
  const took = performance.now() - begun;
  return took < closeLimit ? [] : [`close after ${names[number]}: ${took} ms`];
}

/** How a call that waits in place ends when its peer is killed meanwhile: nothing else runs in this thread. */
async function inPlace(call: (lane: Lane) => unknown): Promise<string[]> {
  const { pid, ended, lanes: [lane] } = await start(["send"]);
  assert(lane !== undefined);
  const delay = 0.1 + Number(seed) % 20 / 100;
  const command = `sleep ${delay}; date +%s%N; kill -KILL ${pid}`;
  const { stdout } = spawn("sh", ["-c", command], { stdio: ["ignore", "pipe", "ignore"] });
  const printed = once(createInterface({ input: stdout }), "line");
  const { how } = await endOf(() => Promise.resolve().then(() => call(lane)));
  const over = performance.now();
  const after = over - (Number((await printed)[0]) / 1e6 - performance.timeOrigin);
  await ended;
  assert(after > 0, `it ended before the kill, ${how}`);
  const wrong = how === "UcxError" && after < limit ? [] : [`${mode}: ${how} after ${after} ms`];
  const later = await endOf(() => Promise.resolve().then(() => call(lane)));
  if (later.how !== "UcxError") wrong.push(`later ${mode}: ${later.how}`);
  return [...wrong, ...await wrongClose(lane)];
}

/** The use of a lane as it ends while the other side lives: a close waits for its sends, which are received. */
async function useOnce(lane: Lane): Promise<unknown> {
  const name = names[lane.number];
  if (name !== "close") return await (name === "atomic" ? atomicIfSupported(use(lane)) : use(lane));
  const send = lane.endpoint.send(out, { tag: 1n });
  await lane.endpoint.close();
  return await send;
}

/** A call that waits in place while the other process is stopped and resumed: it ends normally. */
async function inPlaceResumed(call: (lane: Lane) => Promise<void> | void): Promise<string[]> {
  const { pid, ended, lanes: [lane] } = await start(["send"]);
  assert(lane !== undefined);
  const { endpoint, remote, worker } = lane;
  process.kill(pid, "SIGSTOP");
  const delay = 1.5 + Number(seed) % 10 / 10; // longer than UCX's keep-alive interval
  const resumed = once(spawn("sh", ["-c", `sleep ${delay}; kill -CONT ${pid}`], { stdio: "ignore" }), "close");
  await call(lane);
  await resumed;
  assertEquals(await Promise.race([endpoint.closed, pause(0, "open")]), "open");
  remote.close();
  await endpoint.close({ force: true });
  process.kill(pid, "SIGKILL");
  await ended;
  await worker.close();
  return [];
}

/** Uses that never end while the other side lives. */
const endless: ReadonlySet<string> = new Set(["recv of a message never sent", "two recvMany of messages never sent"]);
/** Uses that the other side acknowledges once it has received and checked the data. */
const answered: ReadonlySet<string> = new Set([
  "send",
  "sendMany",
  "sendMessage",
  "sendArray",
  "writable",
  "rawStream.send",
]);
/** The content that the other uses end with. */
const contents: Readonly<Record<string, number>> = {
  recv: 2,
  recvMany: 2,
  "message.bytes": 2,
  recvArray: 2,
  readable: 2,
  "rawStream.recvAll": 2,
  get: 3,
};

function assertAllContent(got: unknown, number: number, name: string): void {
  const all: unknown[] = Array.isArray(got) ? got : [got];
  assertEquals(all.length, name === "recvMany" ? 3 : 1);
  for (const bytes of all) {
    assertInstanceOf(bytes, Uint8Array, name);
    assertContent(bytes, number);
  }
}

const scenarios: Readonly<Record<string, () => Promise<string[]>>> = {
  /** The other process has stopped answering when every operation begins, and is then killed. */
  async stopped() {
    const { pid, ended, lanes } = await start(names);
    process.kill(pid, "SIGSTOP");
    await pause(50);
    const ends = lanes.map((lane) => endOf(() => useForEver(lane)));
    await pause(200);
    process.kill(pid, "SIGKILL");
    died = performance.now();
    await ended;
    return await wrongEnds(lanes, ends);
  },

  /** Every operation is in flight again and again until the other process is killed. */
  async flowing() {
    const { pid, ended, lanes } = await start(names);
    const ends = lanes.map((lane) => endOf(() => useForEver(lane)));
    await pause(50 + Number(seed) % 200);
    process.kill(pid, "SIGKILL");
    died = performance.now();
    await ended;
    return await wrongEnds(lanes, ends);
  },

  sendSync: () => inPlace(({ endpoint }) => endpoint.sendSync(out, { tag: 8n })),
  recvSync: () => inPlace(({ endpoint }) => endpoint.recvSync(new Uint8Array(8), { tag: 7n })),

  resumedSendSync: () =>
    inPlaceResumed(async ({ endpoint, worker }) => {
      endpoint.sendSync(out, { tag: 1n });
      await worker.recv(new Uint8Array(1), { tag: 300n });
    }),
  resumedRecvSync: () =>
    inPlaceResumed(({ endpoint }) => {
      const into = new Uint8Array(size);
      endpoint.recvSync(into, { tag: 200n });
      assertContent(into, 2);
    }),

  /**
   * The other process stops for longer than UCX's keep-alive interval, in the middle of half of all uses and before the
   * other half, and is resumed: no message is lost, no operation fails.
   */
  async resumed() {
    const { pid, ended, lanes } = await start(names);
    const outcomes: Record<string, Promise<unknown>> = {};
    /** Uses the lanes whose completion is known, and waits for the other side's acknowledgement. */
    const begin = (half: number) => {
      for (const lane of lanes) {
        const { number, worker } = lane;
        const name = names[number] ?? "";
        if (endless.has(name) || (number + Number(seed)) % 2 !== half) continue;
        const answer = () => worker.recv(new Uint8Array(1), { tag: BigInt(300 + number) });
        outcomes[name] = answered.has(name) ? useOnce(lane).then(answer) : useOnce(lane);
      }
    };
    begin(0);
    await pause(Number(seed) % 5);
    process.kill(pid, "SIGSTOP");
    await pause(50);
    begin(1);
    await pause(1500 + Number(seed) % 1000);
    const before = performance.now();
    process.kill(pid, "SIGCONT");
    const got: Record<string, unknown> = {};
    for (const [name, outcome] of Object.entries(outcomes)) got[name] = await outcome;
    const took = performance.now() - before;
    assert(took < 5000, `${took} ms until all had ended`);
    for (const [name, number] of Object.entries(contents)) assertAllContent(got[name], number, name);
    for (const { endpoint, remote, number } of lanes) {
      const name = names[number] ?? "";
      if (name !== "close" && got[name] !== unsupported) {
        const check = new Uint8Array(size);
        await endpoint.get(check, remote);
        assertContent(check, 3); // the bytes put there
        assertEquals(await Promise.race([endpoint.closed, pause(0, "open")]), "open");
      }
      remote.close();
      await endpoint.close({ force: true });
    }
    process.kill(pid, "SIGKILL");
    await ended;
    for (const { worker } of lanes) await worker.close();
    return [];
  },
};

const scenario = scenarios[mode];
assert(scenario !== undefined);
console.log(JSON.stringify(await scenario()));
ucx.close();
