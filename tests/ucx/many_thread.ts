/** A thread of `many_test.ts`: it has its own UCX context, and exchanges messages with all other threads. */
import { assertEquals } from "@std/assert";
import { once } from "node:events";
import { parentPort, workerData } from "node:worker_threads";
import { Ucx } from "../../src/ucx/ucx.ts";
import { assertContent, contentOf } from "../support/ucx_messages.ts";

const messages = 200;
const sizes = [0, 8, 1000, 9000, 100_000];
const { number, count }: { number: number; count: number } = workerData;

if (parentPort === null) throw new TypeError("this is a thread");
const ucx = Ucx.open();
const worker = ucx.createWorker();
parentPort.postMessage(worker.address);
const [addresses]: [Uint8Array[]] = await once(parentPort, "message") as [Uint8Array[]]; // the addresses of all threads
const others = addresses.map((_, i) => i).filter((i) => i !== number);
let received = 0;
await Promise.all(others.map(async (other) => {
  const endpoint = await worker.connect(addresses[other] ?? new Uint8Array(0));
  for (let i = 0; i < messages; i++) {
    const size = sizes[i % sizes.length] ?? 0;
    const into = new Uint8Array(size);
    const tag = (from: number, to: number) => BigInt(from * count + to);
    const [got] = await Promise.all([
      worker.recv(into, { tag: tag(other, number) }),
      endpoint.send(contentOf(number * 1000 + i, size), { tag: tag(number, other) }),
    ]);
    assertEquals(got.length, size);
    assertContent(into, other * 1000 + i);
    received++;
  }
}));
await worker.close();
ucx.close();
parentPort.postMessage(received);
