/**
 * One of two processes that exchange many messages of every kind, derived from the same seed. The first starts the
 * second; each checks what it receives, and prints by how many bytes it has grown in the end since a warm-up.
 * Arguments: role, seed, number of messages, and a Python that has NumPy, if there is one.
 */
import { assert, assertEquals } from "@std/assert";
import { Buffer } from "node:buffer";
import process from "node:process";
import { createInterface } from "node:readline";
import { HostMemoryResource } from "../../src/memory/host_memory_resource.ts";
import { Cuda } from "../../src/cuda/mod.ts";
import { PinnedMemoryResource } from "../../src/memory/mod.ts";
import { Python } from "../../src/python/mod.ts";
import type { UcxActiveMessage } from "../../src/ucx/active_messages/active_messages.ts";
import type { UcxEndpoint } from "../../src/ucx/endpoint.ts";
import type { Sendable } from "../../src/ucx/message_memory.ts";
import type { UcxRemoteKey } from "../../src/ucx/remote_memory.ts";
import { Ucx } from "../../src/ucx/ucx.ts";
import { StridedMemoryView } from "../../src/view/strided_memory_view.ts";
import { startScript } from "../support/child.ts";
import { collectGarbage } from "../support/collect.ts";
import { contentOf, memoryKinds, numbers, turns } from "../support/ucx_messages.ts";

const [role = "", seed = "0", count = "0", python = ""] = process.argv.slice(2);
const perBatch = 500;
const batches = Math.ceil(Number(count) / perBatch);
const tags = 4;
/** Tags of messages that report that a batch has arrived, and that all of it was correct. */
const [done, right] = [98n, 99n];
const largest = 16 << 20;

/** The source of all bytes sent: a message is a part of it, identified by where it begins. */
const pool = contentOf(Number(seed), largest + 65_536);
/** Memory of the second process: first the part that the first puts to, then the part that it gets from. */
const tableSize = 1 << 20;

const ways = [
  ...["awaited", "awaited", "awaited", "in place"] as const,
  ...["active", "array", "parts", "stream"] as const,
  ...["put", "get"] as const,
];
/** Tags of messages of several parts begin here, after the others. */
const partTags = 8n;

/** Kinds of memory; NumPy's if there is Python. */
const kinds = [...memoryKinds, "pinned", "numpy"] as const;
type Kind = typeof kinds[number];

/** A message sent, written or read. */
interface Message {
  readonly way: typeof ways[number];
  readonly tag: bigint;
  readonly size: number;
  readonly start: number;
  readonly kind: Kind;
  /** The offset that it is put to, or got from. */
  readonly at: number;
}

function sizeOf(below: (limit: number) => number): number {
  const chance = below(5000);
  if (chance === 0) return below(largest + 1);
  if (chance < 50) return below(300_000);
  if (chance < 400) return below(10_000);
  return chance < 700 ? 0 : below(300);
}

function* planOf(batch: number): Generator<Message> {
  const below = numbers(Number(seed) * 1_000_003 + batch);
  let used = 0;
  for (let i = 0; i < perBatch; i++) {
    const way = ways[below(ways.length)] ?? "awaited";
    const wanted = sizeOf(below);
    const isRemote = way === "put" || way === "get";
    const size = isRemote ? Math.min(wanted, way === "put" ? tableSize - used : tableSize) : wanted;
    const at = way === "put" ? used : isRemote ? below(tableSize - size + 1) : 0;
    if (way === "put") used += size;
    const kind = kinds[below(kinds.length)] ?? "array";
    yield { way, tag: BigInt(below(tags)), size, start: below(65_536), kind, at };
  }
}

function contentOfMessage({ start, size }: Message): Uint8Array<ArrayBuffer> {
  return pool.subarray(start, start + size);
}

function check(bytes: Uint8Array, expected: Uint8Array, what: string): void {
  if (Buffer.compare(bytes, expected) !== 0) throw new Error(`${bytes.length} bytes are wrong: ${what}`);
}

const resource = new HostMemoryResource();

const pinned = new PinnedMemoryResource(Cuda.simulate().device(0));
const numpy = python === "" ? null : Python.open({ home: python }).import("numpy");

/** Memory of one kind, and its bytes. */
interface Memory {
  readonly memory: Sendable;
  readonly bytes: Uint8Array;
  /** Releases it. UCX keeps it alive until it is done. */
  close(): void;
}

function memoryOf(kind: Kind, size: number): Memory {
  if (kind === "numpy" && numpy !== null && size > 0) {
    const array = numpy.$get("empty").$call(size, "u1");
    const view = StridedMemoryView.from(array);
    const close = () => {
      view.close();
      array[Symbol.dispose]();
    };
    return { memory: array, bytes: view.buffer.bytes(), close };
  }
  if (kind === "array" || kind === "numpy") {
    const bytes = new Uint8Array(new ArrayBuffer(size));
    return { memory: bytes, bytes, close: () => {} };
  }
  const buffer = (kind === "pinned" ? pinned : resource).allocate(size);
  const memory = kind === "view" ? StridedMemoryView.fromBuffer(buffer, { shape: [size], dtype: "uint8" }) : buffer;
  return { memory, bytes: buffer.bytes(), close: () => buffer.close() };
}

/** Where the parts of a message begin and end. */
function partsOf(content: Uint8Array): Uint8Array[] {
  const count = content.length % 4 + 1;
  const each = Math.ceil(content.length / count);
  return Array.from({ length: count }, (_, i) => content.subarray(i * each, (i + 1) * each));
}

const ucx = Ucx.open();
const worker = ucx.createWorker();

/** Where messages go. */
interface Receiver {
  readonly endpoint: UcxEndpoint;
  readonly remote: UcxRemoteKey;
  readonly writer: WritableStreamDefaultWriter<Uint8Array>;
}

async function sendOne(
  message: Message,
  way: Exclude<Message["way"], "in place">,
  { endpoint, remote, writer }: Receiver,
): Promise<void> {
  const { tag, size, kind, at } = message;
  const content = contentOfMessage(message);
  if (way === "get") {
    const memory = memoryOf(kind, size);
    await endpoint.get(memory.memory, remote, tableSize + at);
    check(memory.bytes, pool.subarray(at, at + size), "got");
    memory.close();
    return;
  }
  if (way === "stream") return await writer.write(content);
  const given = kind === "array" ? null : memoryOf(kind, size);
  given?.bytes.set(content);
  const memory = given?.memory ?? content;
  const send = {
    awaited: () => endpoint.send(memory, { tag }),
    active: () => endpoint.sendMessage(memory, { header: `${tag}` }),
    array: () => endpoint.sendArray(kind === "buffer" || kind === "pinned" ? matrixOf(content) : memory),
    parts: () => endpoint.sendMany([memory, ...partsOf(content)], { tag: partTags + tag }),
    put: () => endpoint.put(memory, remote, at),
  };
  const sent = send[way]();
  given?.close(); // it lives until the message is sent
  await sent;
}

/** Bytes as a two-dimensional array. */
function matrixOf(bytes: Uint8Array<ArrayBuffer>): StridedMemoryView {
  const shape = bytes.length % 3 === 0 ? [3, bytes.length / 3] : [1, bytes.length];
  return StridedMemoryView.fromTypedArray(bytes, { shape });
}

/** Sends a batch, a few messages at a time, and waits for confirmation that it was right. */
async function sendBatch(batch: number, to: Receiver): Promise<void> {
  const { endpoint } = to;
  const underWay = new Set<Promise<void>>();
  for (const message of planOf(batch)) {
    if (message.way === "in place") {
      endpoint.sendSync(contentOfMessage(message), { tag: message.tag });
      continue;
    }
    const one = sendOne(message, message.way, to).finally(() => underWay.delete(one));
    underWay.add(one);
    if (underWay.size >= 32) await Promise.race(underWay);
  }
  await Promise.all(underWay);
  await endpoint.flush();
  await endpoint.send(Uint8Array.of(batch), { tag: done });
  await worker.recv(new Uint8Array(1), { tag: right });
}

const tagged: ReadonlySet<Message["way"]> = new Set(["awaited", "in place", "parts"]);

/** The source of messages. */
interface Sender {
  readonly endpoint: UcxEndpoint;
  readonly messages: AsyncIterator<UcxActiveMessage>;
  readonly reader: ReadableStreamBYOBReader;
}

/** Receives a batch: each tag's messages in the order sent, the tags in random order. */
async function receiveBatch(batch: number, from: Sender, table: Uint8Array): Promise<void> {
  const plan = [...planOf(batch)];
  const left = Array.from(
    { length: tags },
    (_, tag) => plan.filter((one) => tagged.has(one.way) && one.tag === BigInt(tag)),
  );
  const below = numbers(batch);
  const ends: Promise<void>[] = [];
  while (left.some(({ length }) => length > 0)) {
    const message = left[below(tags)]?.shift();
    if (message?.way === "parts") ends.push(receiveParts(message));
    else if (message !== undefined) ends.push(receiveOne(message, below(2) * 10));
    if (below(50) === 0) await turns(below(5)); // so that some arrive before they are received
  }
  ends.push(receiveActive(plan.filter(({ way }) => way === "active"), from));
  ends.push(receiveArrays(plan.filter(({ way }) => way === "array"), from));
  ends.push(read(plan.filter(({ way }) => way === "stream"), from));
  await Promise.all(ends);
  await worker.recv(new Uint8Array(1), { tag: done });
  for (const message of plan.filter(({ way }) => way === "put")) {
    check(table.subarray(message.at, message.at + message.size), contentOfMessage(message), "put");
  }
  assertEquals(worker.probe(0n, 0n), null, "a message arrived twice");
}

/** Receives active messages, in the order sent. */
async function receiveActive(expected: readonly Message[], { messages }: Sender): Promise<void> {
  for (const message of expected) {
    const { value: received, done } = await messages.next();
    assert(done !== true);
    assertEquals([received.text, received.length], [`${message.tag}`, message.size]);
    const { memory, bytes, close } = memoryOf(message.kind, message.size);
    await received.recv(memory);
    check(bytes, contentOfMessage(message), "active");
    close();
  }
}

/** Receives arrays, in the order sent. */
async function receiveArrays(expected: readonly Message[], { endpoint }: Sender): Promise<void> {
  for (const message of expected) {
    const place = message.kind === "pinned" ? { place: pinned } : {};
    using array = await endpoint.recvArray(place);
    assertEquals([array.dtype.name, array.nbytes], ["uint8", message.size]);
    check(array.buffer.bytes(), contentOfMessage(message), "array");
  }
}

/** Reads the bytes written, in order, in pieces of other sizes. */
async function read(expected: readonly Message[], { reader }: Sender): Promise<void> {
  const all = new Uint8Array(expected.reduce((sum, { size }) => sum + size, 0));
  for (let at = 0; at < all.length;) {
    const { value } = await reader.read(new Uint8Array(Math.min(all.length - at, at % 2 === 0 ? 70_001 : 501)));
    assert(value !== undefined);
    all.set(value, at);
    at += value.length;
  }
  let at = 0;
  for (const message of expected) check(all.subarray(at, at += message.size), contentOfMessage(message), "read");
}

async function receiveParts(message: Message): Promise<void> {
  const views = await worker.recvMany({ tag: partTags + message.tag });
  const content = contentOfMessage(message);
  const expected = [content, ...partsOf(content)];
  assertEquals(views.length, expected.length);
  for (const [i, view] of views.entries()) {
    check(view.buffer.bytes(), expected[i] ?? content, "part");
    view.close();
  }
}

async function receiveOne(message: Message, spare: number): Promise<void> {
  const { memory, bytes, close } = memoryOf(message.kind, message.size + spare);
  const { length, tag } = await worker.recv(memory, { tag: message.tag });
  assertEquals([length, tag], [message.size, message.tag]);
  check(bytes.subarray(0, length), contentOfMessage(message), `tag ${tag}`);
  close();
}

/** Runs all batches. @returns by how many bytes this process has grown since the warm-up */
async function all(one: (batch: number) => Promise<void>): Promise<number> {
  const [warm, end]: [number[], number[]] = [[], []];
  const last = Math.max(1, Math.floor(batches / 4));
  for (let batch = 0; batch < batches; batch++) {
    await one(batch);
    const measures = batch >= last && batch < 2 * last ? warm : batch >= batches - last ? end : null;
    if (measures === null || batch % Math.ceil(last / 10) !== 0) continue;
    await collectGarbage();
    measures.push(process.memoryUsage.rss());
  }
  return Math.min(...end) - Math.min(...warm);
}

if (role === "first") {
  const args = ["second", seed, count, python];
  const child = startScript(new URL(import.meta.url), { args, timeout: 3_600_000 }, ["pipe", "pipe", "inherit"]);
  assert(child.stdin !== null && child.stdout !== null);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  ended.then((code) => code === 0 || process.exit(3));
  const { address, key }: { address: string; key: string } = JSON.parse((await lines.next()).value ?? "");
  child.stdin.write(`${worker.address.toHex()}\n`);
  const endpoint = await worker.connect(Uint8Array.fromHex(address));
  const remote = endpoint.remote(Uint8Array.fromHex(key));
  await worker.recv(new Uint8Array(1), { tag: right }); // it is connected, too, so all messages take the same path
  const writer = endpoint.writable.getWriter();
  const sender = await all((batch) => sendBatch(batch, { endpoint, remote, writer }));
  const receiver = Number((await lines.next()).value);
  remote.close();
  await worker.close();
  assertEquals(await ended, 0);
  console.log(JSON.stringify({ sender, receiver }));
} else {
  const table = new Uint8Array(new ArrayBuffer(2 * tableSize));
  table.set(pool.subarray(0, tableSize), tableSize);
  const region = worker.register(table);
  console.log(JSON.stringify({ address: worker.address.toHex(), key: region.key.toHex() }));
  const input = createInterface({ input: process.stdin });
  const line: string = await new Promise((resolve) => input.once("line", resolve));
  input.once("close", () => process.exit(1)); // the first process is gone: do not outlive it
  const endpoint = await worker.connect(Uint8Array.fromHex(line));
  await endpoint.send(Uint8Array.of(1), { tag: right });
  const messages = endpoint.messages()[Symbol.asyncIterator]();
  const from = { endpoint, messages, reader: endpoint.readable.getReader({ mode: "byob" }) };
  const grown = await all(async (batch) => {
    await receiveBatch(batch, from, table);
    await endpoint.send(Uint8Array.of(1), { tag: right });
  });
  console.log(grown);
  await worker.close();
  ucx.close();
  process.exit(0);
}
ucx.close();
