/**
 * One of two processes that exchange many messages of random sizes from and to memory of every place of their GPUs, all
 * derived from the same seed: by tag, active ones, arrays, puts and gets. The first starts the second, and sends; the
 * second checks every byte. Prints by how many bytes each has grown from the second quarter of the messages to the
 * last: the process, and the GPU's memory in use. Arguments: role, `real` or `simulated`, the GPU of the second, seed,
 * number of messages.
 */
import { assert, assertEquals } from "@std/assert";
import process from "node:process";
import { createInterface } from "node:readline";
import { Cuda, type MemoryBuffer, StridedMemoryView, Ucx, type UcxEndpoint } from "../../mod.ts";
import { startScript } from "../support/child.ts";
import { collectGarbage } from "../support/collect.ts";
import { contentOf, numbers } from "../support/ucx_messages.ts";
import type { UcxActiveMessage } from "../../src/ucx/active_messages/active_messages.ts";
import type { UcxRemoteKey } from "../../src/ucx/remote_memory.ts";
import { assertBytes, bytesOf, type Place, placesOf, write } from "./ucx_behaviours.ts";

const [role = "", which = "", ordinal = "0", seed = "0", count = "0"] = process.argv.slice(2);
const perBatch = 100;
const batches = Math.max(8, Math.ceil(Number(count) / perBatch));
const largest = 4 << 20;
/** Tags of messages that report that a batch has arrived, and that all of it was correct. */
const [done, right] = [98n, 99n];
const tags = 4;
const ways = ["tag", "tag", "active", "array", "put", "get"] as const;

/** A message: where it is sent from and received into, by their numbers among the places. */
interface Message {
  readonly way: typeof ways[number];
  readonly tag: bigint;
  readonly size: number;
  readonly start: number;
  readonly from: number;
  readonly to: number;
}

/** The source of all bytes: a message is a part of it. */
const pool = contentOf(Number(seed), largest + 65_536);
const contentOfMessage = ({ start, size }: Message) => pool.subarray(start, start + size);

function sizeOf(below: (limit: number) => number): number {
  const chance = below(1000);
  if (chance < 10) return below(largest) + 1;
  if (chance < 200) return below(200_000) + 1;
  return below(8000) + 1;
}

function planOf(batch: number, places: number): Message[] {
  const below = numbers(Number(seed) * 1_000_003 + batch);
  return Array.from({ length: perBatch }, () => ({
    way: ways[below(ways.length)] ?? "tag",
    tag: BigInt(below(tags)),
    size: sizeOf(below),
    start: below(65_536),
    from: below(places),
    to: below(places),
  }));
}

const cuda = which === "real" ? Cuda.open() : Cuda.simulate({ schedule: "latest", devices: 2 });
const device = cuda.device(role === "first" ? 0 : Number(ordinal));
const stream = device.createStream({ nonBlocking: true });
const ucx = Ucx.open();
const worker = ucx.createWorker();
const places = placesOf(device, ucx);

const placeOf = (index: number): Place["resource"] => {
  const place = places[index];
  assert(place !== undefined);
  return place.resource;
};

/** New memory of a place, in which other bytes are still being written. */
function memoryFor({ size }: Message, place: number): MemoryBuffer {
  const buffer = placeOf(place).allocate(size, { stream });
  write(buffer, new Uint8Array(size).fill(0xee), stream);
  return buffer;
}

const nameOf = ({ way, from, to, size }: Message) =>
  `${way} ${places[from]?.name} to ${places[to]?.name}, ${size} bytes`;

/** Memory that the first process puts to and gets from, for messages of all sizes in turn. */
const tableSize = largest;

async function send(message: Message, endpoint: UcxEndpoint, remote: UcxRemoteKey): Promise<void> {
  using memory = memoryFor(message, message.from);
  write(memory, contentOfMessage(message), stream); // only the message waits for it
  const { way, tag, size } = message;
  if (way === "tag") await endpoint.send(memory, { tag });
  else if (way === "active") await endpoint.sendMessage(memory, { header: `${tag}` });
  else if (way === "array") {
    await endpoint.sendArray(StridedMemoryView.fromBuffer(memory, { shape: [size], dtype: "uint8" }));
  } else { // what was put is what is got
    await endpoint.put(memory, remote, 0);
    await endpoint.flush();
    using got = memoryFor(message, message.to);
    await endpoint.get(got, remote, 0);
    assertBytes(bytesOf(got, stream), contentOfMessage(message), nameOf(message));
  }
}

async function sendBatch(batch: number, endpoint: UcxEndpoint, remote: UcxRemoteKey): Promise<void> {
  const underWay = new Set<Promise<void>>();
  let written = Promise.resolve(); // puts and gets share memory: one after the other
  for (const message of planOf(batch, places.length)) {
    const isRemote = message.way === "put" || message.way === "get";
    const sent = isRemote
      ? (written = written.then(() => send(message, endpoint, remote)))
      : send(message, endpoint, remote);
    const one = sent.finally(() => underWay.delete(one));
    underWay.add(one);
    if (underWay.size >= 16) await Promise.race(underWay);
  }
  await Promise.all(underWay);
  await endpoint.send(Uint8Array.of(batch), { tag: done });
  await worker.recv(new Uint8Array(1), { tag: right });
}

async function receiveBatch(
  batch: number,
  endpoint: UcxEndpoint,
  messages: AsyncIterator<UcxActiveMessage>,
): Promise<void> {
  const plan = planOf(batch, places.length);
  const tagged = plan.filter(({ way }) => way === "tag").map(async (message) => {
    using memory = memoryFor(message, message.to);
    assertEquals(await worker.recv(memory, { tag: message.tag }), { length: message.size, tag: message.tag });
    assertBytes(bytesOf(memory, stream), contentOfMessage(message), nameOf(message));
  });
  const active = async () => {
    for (const message of plan.filter(({ way }) => way === "active")) {
      const { value, done } = await messages.next();
      assert(done !== true);
      assertEquals([value.text, value.length], [`${message.tag}`, message.size]);
      using memory = memoryFor(message, message.to);
      await value.recv(memory);
      assertBytes(bytesOf(memory, stream), contentOfMessage(message), nameOf(message));
    }
  };
  const arrays = async () => {
    for (const message of plan.filter(({ way }) => way === "array")) {
      using array = await endpoint.recvArray({ place: placeOf(message.to) });
      assertEquals(array.shape, [message.size]);
      assertBytes(bytesOf(array.buffer, stream), contentOfMessage(message), nameOf(message));
    }
  };
  await Promise.all([...tagged, active(), arrays()]);
  await worker.recv(new Uint8Array(1), { tag: done });
  assertEquals(worker.probe(0n, 0n), null, "a message arrived twice");
}

/**
 * Runs all batches. @returns by how many bytes the least that this process and its GPU's memory in use had in the last
 * quarter exceeds the most that they had in the second: pools grow and shrink by tens of megabytes in between
 */
async function all(one: (batch: number) => Promise<void>): Promise<{ resident: number; device: number }> {
  const samples: { resident: number; device: number }[] = [];
  for (let batch = 0; batch < batches; batch++) {
    await one(batch);
    if (Math.floor((batch * 16) / batches) >= samples.length) { // after every sixteenth, or every batch
      await collectGarbage();
      device.synchronize();
      samples.push({ resident: process.memoryUsage.rss(), device: -device.memoryInfo().free });
    }
  }
  const [quarter, half] = [samples.length >> 2, samples.length >> 1];
  const grown = (what: "resident" | "device") => {
    const [early, late] = [samples.slice(quarter, half), samples.slice(-quarter)];
    return Math.min(...late.map((one) => one[what])) - Math.max(...early.map((one) => one[what]));
  };
  return { resident: grown("resident"), device: grown("device") };
}

if (role === "first") {
  const args = ["second", which, ordinal, seed, count];
  const child = startScript(new URL(import.meta.url), { args, timeout: 3_600_000 }, ["pipe", "pipe", "inherit"]);
  assert(child.stdin !== null && child.stdout !== null);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async (): Promise<string> => {
    const { value, done } = await lines.next();
    if (done === true) return await ended;
    if (value.startsWith("{")) return value;
    console.error(value); // UCX warns on the standard output
    return await next();
  };
  const ended = new Promise<string>((resolve) => {
    child.once("close", (code, signal) => resolve(signal ?? `exit code ${code}`));
  });
  void ended.then((how) => {
    if (how === "exit code 0") return;
    console.error(`The second process ended with ${how}`);
    process.exit(3);
  });
  const { address, key }: { address: string; key: string } = JSON.parse(await next());
  child.stdin.write(`${worker.address.toHex()}\n`);
  const endpoint = await worker.connect(Uint8Array.fromHex(address));
  using remote = endpoint.remote(Uint8Array.fromHex(key));
  await worker.recv(new Uint8Array(1), { tag: right }); // it is connected, too
  const sender = await all((batch) => sendBatch(batch, endpoint, remote));
  const receiver = JSON.parse(await next());
  const transports = endpoint.transports();
  remote.close();
  await worker.close();
  assertEquals(await ended, "exit code 0");
  console.log(JSON.stringify({ sender, receiver, transports }));
} else {
  const table = placeOf(Math.max(0, places.findIndex(({ name }) => name === "device"))).allocate(tableSize, {
    stream,
  });
  stream.synchronize();
  const region = worker.register(table);
  console.log(JSON.stringify({ address: worker.address.toHex(), key: region.key.toHex() }));
  const input = createInterface({ input: process.stdin });
  input.once("close", () => process.exit(1)); // the first process is gone: do not outlive it
  const line: string = await new Promise((resolve) => input.once("line", resolve));
  const endpoint = await worker.connect(Uint8Array.fromHex(line));
  const messages = endpoint.messages()[Symbol.asyncIterator]();
  await endpoint.send(new Uint8Array(1), { tag: right });
  const grown = await all(async (batch) => {
    await receiveBatch(batch, endpoint, messages);
    await endpoint.send(Uint8Array.of(batch), { tag: right });
  });
  console.log(JSON.stringify(grown));
  region.close();
  await worker.close();
}
process.exit(0);
