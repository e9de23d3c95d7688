/**
 * A program that echoes messages, each as the kind that it received, and one that checks the echo: every kind of
 * message, in one process or in two.
 *
 * @module
 */
import { assertEquals } from "@std/assert";
import { Buffer } from "node:buffer";
import type { UcxEndpoint } from "../../src/ucx/endpoint.ts";
import type { UcxListener } from "../../src/ucx/listen/listener.ts";
import type { UcxWorker } from "../../src/ucx/worker.ts";
import type { UcxActiveMessage } from "../../src/ucx/active_messages/active_messages.ts";
import { Bordered, contentOf, memoryKinds } from "../support/ucx_messages.ts";

/** Tags of messages that announce how the next message is sent, and of messages that carry keys. */
const [orders, keys] = [1n, 2n];
const tag = 3n;

/** Content of all messages; the longest is all of it. */
const pool = contentOf(0, 1 << 24);

/** Announces to the other side how to receive the next message. */
interface Order {
  readonly kind: keyof typeof kinds;
  readonly bytes: number;
  /** The number of parts of a message of several parts. */
  readonly parts: number;
}

/** How a kind of message is sent and received. */
interface Kind {
  send(endpoint: UcxEndpoint, bytes: Uint8Array<ArrayBuffer>, order: Order): Promise<unknown>;
  receive(endpoint: UcxEndpoint, order: Order, worker: UcxWorker): Promise<Uint8Array<ArrayBuffer>>;
}

/** Every kind. */
export const kinds = {
  tag: {
    send: (endpoint, bytes) => endpoint.send(bytes, { tag }),
    async receive(endpoint, { bytes }) {
      const into = new Uint8Array(bytes);
      assertEquals(await endpoint.recv(into, { tag }), { length: bytes, tag });
      return into;
    },
  },
  parts: {
    send: (endpoint, bytes, { parts }) => endpoint.sendMany(Array.from({ length: parts }, () => bytes), { tag }),
    async receive(endpoint, { bytes, parts }) {
      const views = await endpoint.recvMany({ tag });
      assertEquals(views.map((view) => view.nbytes), Array.from({ length: parts }, () => bytes));
      const [first = new Uint8Array(0), ...others] = views.map((view) => view.buffer.bytes().slice());
      for (const other of others) assertSame(other, first);
      for (const view of views) view.close();
      return first;
    },
  },
  message: {
    send: (endpoint, bytes) => endpoint.sendMessage(bytes, { header: "echo" }),
    async receive(endpoint) {
      return await (await nextMessage(endpoint)).bytes();
    },
  },
  /** Gathered from several pieces of memory, and scattered to others. */
  pieces: {
    async send(endpoint, bytes) {
      const pieces = piecesOf(bytes.length, [0.3, 0.3, 0.9, 1]);
      for (const { at, memory } of pieces) memory.bytes.set(bytes.subarray(at, at + memory.bytes.length));
      await endpoint.sendMessage(pieces.map(({ memory: { memory } }) => memory), { header: "echo" });
      for (const { memory } of pieces) memory.close();
    },
    async receive(endpoint, { bytes }) {
      const message = await nextMessage(endpoint);
      assertEquals(message.length, bytes);
      const pieces = piecesOf(bytes, [0.1, 0.8, 0.8, 1]);
      await message.recv(pieces.map(({ memory: { memory } }) => memory));
      const whole = new Uint8Array(bytes);
      for (const { at, memory } of pieces) {
        memory.assertUntouched(memory.bytes.length);
        whole.set(memory.bytes, at);
        memory.close();
      }
      return whole;
    },
  },
  array: {
    send: (endpoint, bytes) => endpoint.sendArray(bytes),
    async receive(endpoint) {
      using array = await endpoint.recvArray();
      return array.buffer.bytes().slice();
    },
  },
  stream: {
    async send(endpoint, bytes) {
      const writer = endpoint.writable.getWriter();
      await writer.write(bytes);
      writer.releaseLock();
    },
    async receive(endpoint, { bytes }) {
      const reader = endpoint.readable.getReader({ mode: "byob" });
      const whole = new Uint8Array(bytes);
      for (let at = 0; at < bytes;) {
        const { value } = await reader.read(new Uint8Array(bytes - at));
        whole.set(value ?? new Uint8Array(0), at);
        at += value?.length ?? 0;
      }
      reader.releaseLock();
      return whole;
    },
  },
  "raw stream": {
    send: (endpoint, bytes) => endpoint.rawStream.send(bytes),
    async receive(endpoint, { bytes }) {
      const into = new Uint8Array(bytes);
      await endpoint.rawStream.recvAll(into);
      return into;
    },
  },
  /** Written to memory that the other side names, and read from there. */
  remote: {
    async send(endpoint, bytes) {
      const key = new Uint8Array(4096);
      const { length } = await endpoint.recv(key, { tag: keys });
      using remote = endpoint.remote(key.subarray(0, length));
      await endpoint.put(bytes, remote);
      await endpoint.flush();
      const check = new Uint8Array(bytes.length);
      await endpoint.get(check, remote);
      assertSame(check, bytes);
      await endpoint.send(Uint8Array.of(1), { tag });
    },
    async receive(endpoint, { bytes }, worker) {
      const table = new Uint8Array(new ArrayBuffer(bytes));
      using region = worker.register(table);
      await endpoint.send(region.key, { tag: keys });
      await endpoint.recv(new Uint8Array(1), { tag });
      return table;
    },
  },
} as const satisfies Readonly<Record<string, Kind>>;

async function nextMessage(endpoint: UcxEndpoint): Promise<UcxActiveMessage> {
  const { value, done } = await endpoint.messages()[Symbol.asyncIterator]().next();
  if (done) throw new TypeError("the endpoint has ended");
  assertEquals(value.text, "echo");
  return value;
}

/** Pieces of memory of every kind, the first at offset 0, each of which ends at a fraction of all bytes. */
function piecesOf(
  bytes: number,
  ends: readonly number[],
): { readonly at: number; readonly memory: Bordered }[] {
  const offsets = [0, ...ends.map((end) => Math.floor(bytes * end))];
  return ends.map((_, i) => {
    const [at = 0, end = 0] = offsets.slice(i);
    return { at, memory: new Bordered(memoryKinds[i % memoryKinds.length] ?? "array", end - at) };
  });
}

function assertSame(bytes: Uint8Array, expected: Uint8Array): void {
  assertEquals(Buffer.compare(bytes, expected), 0, `the bytes received differ from the ${expected.length} sent`);
}

function way(kind: Order["kind"]): Kind {
  return kinds[kind];
}

/** Sends bytes as ordered, and checks the echo. */
export async function echo(endpoint: UcxEndpoint, worker: UcxWorker, order: Order): Promise<void> {
  await endpoint.send(new TextEncoder().encode(JSON.stringify(order)), { tag: orders });
  const content = pool.subarray(0, order.bytes);
  await way(order.kind).send(endpoint, content, order);
  assertSame(await way(order.kind).receive(endpoint, order, worker), content);
}

/** Echoes one connection after the other, each until it ends, and returns when the listener closes. */
export async function serveEcho(listener: UcxListener, worker: UcxWorker): Promise<void> {
  for await (const endpoint of listener) {
    for (;;) {
      const text = new Uint8Array(1000);
      const received = await endpoint.recv(text, { tag: orders }).catch(() => null);
      if (received === null) break; // the client has closed
      const order: Order = JSON.parse(new TextDecoder().decode(text.subarray(0, received.length)));
      const bytes = await way(order.kind).receive(endpoint, order, worker);
      await way(order.kind).send(endpoint, bytes, order);
    }
    await endpoint.close();
  }
}

/** Runs all kinds at all sizes, each kind over its own connection. @returns how many messages were echoed */
export async function echoAll(
  worker: UcxWorker,
  to: { readonly host: string; readonly port: number },
  sizes: readonly number[],
  counts: readonly number[],
): Promise<number> {
  let done = 0;
  for (const kind of Object.keys(kinds) as (keyof typeof kinds)[]) {
    const endpoint = await worker.connect(to);
    for (const bytes of sizes) {
      for (const parts of kind === "parts" ? counts : [1]) {
        await echo(endpoint, worker, { kind, bytes, parts });
        done++;
      }
    }
    await endpoint.close();
  }
  return done;
}
