/** Many of everything: clients, servers, endpoints of one worker, pending receives, threads. */
import { assert, assertEquals } from "@std/assert";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { Ucx } from "../../src/ucx/ucx.ts";
import { patiently, runScriptForJson, startScript } from "../support/child.ts";
import { scaled } from "../support/property.ts";
import { assertContent, contentOf } from "../support/ucx_messages.ts";

test("four servers answer a hundred clients each, every client with its own messages", patiently, async () => {
  const script = new URL("./many_child.ts", import.meta.url);
  const servers = Array.from({ length: 4 }, () => {
    const child = startScript(script, { args: ["server", "100"] }, ["ignore", "pipe", "inherit"]);
    assert(child.stdout !== null);
    const port = once(createInterface({ input: child.stdout }), "line").then(([line]) => String(line));
    return { child, port, ended: once(child, "close") };
  });
  const ports = await Promise.all(servers.map(({ port }) => port));
  const args = ["clients", "25", ...ports];
  const answered = await Promise.all(Array.from({ length: 4 }, () => runScriptForJson(script, { args })));
  assertEquals(answered, [100, 100, 100, 100]);
  for (const { ended } of servers) assertEquals(await ended, [0, null]);
});

test("a thousand endpoints of one worker each carry their messages, and close", patiently, async () => {
  const count = 1000;
  using ucx = Ucx.open();
  await using one = ucx.createWorker();
  await using other = ucx.createWorker();
  const endpoints = await Promise.all(Array.from({ length: count }, () => one.connect(other.address)));
  const memory = endpoints.map(() => new Uint8Array(100));
  const receives = memory.map((into, i) => other.recv(into, { tag: BigInt(i) }));
  await Promise.all(endpoints.map((endpoint, i) => endpoint.send(contentOf(i, 100), { tag: BigInt(i) })));
  assertEquals((await Promise.all(receives)).map(({ tag }) => Number(tag)), endpoints.map((_, i) => i));
  for (const [i, into] of memory.entries()) assertContent(into, i);
  await Promise.all(endpoints.map((endpoint) => endpoint.close()));
  assertEquals(new Set(await Promise.all(endpoints.map(({ closed }) => closed))), new Set([null]));
});

test(
  "with 10,000 receives pending on other tags messages are exchanged, and each receive gets its own later",
  patiently,
  async () => {
    const count = 10_000;
    using ucx = Ucx.open({ config: { TLS: "sm" } });
    await using alice = ucx.createWorker();
    await using bob = ucx.createWorker();
    const [there, back] = [await alice.connect(bob.address), await bob.connect(alice.address)];
    const memory = Array.from({ length: count }, () => new Uint8Array(8));
    const receives = memory.map((into, i) => bob.recv(into, { tag: BigInt(i + 1) }));
    for (let i = 0; i < scaled(1000); i++) {
      const [ping, pong] = [new Uint8Array(8), new Uint8Array(8)];
      const received = alice.recv(pong);
      await Promise.all([there.send(contentOf(i, 8)), bob.recv(ping)]);
      await back.send(ping);
      await received;
      assertContent(pong, i);
    }
    // The last first: no receive blocks another.
    await Promise.all(memory.map((_, i) => there.send(contentOf(count - i, 8), { tag: BigInt(count - i) })));
    assertEquals((await Promise.all(receives)).map(({ tag }) => Number(tag)), memory.map((_, i) => i + 1));
    for (const [i, into] of memory.entries()) assertContent(into, i + 1);
  },
);

test(
  "four threads of a process each drive a worker of their own, and exchange messages with all others",
  patiently,
  async () => {
    const count = 4;
    const threads = Array.from(
      { length: count },
      (_, number) => new Worker(new URL("./many_thread.ts", import.meta.url), { workerData: { number, count } }),
    );
    const failed = Promise.race(threads.map(async (thread) => {
      const [error] = await once(thread, "error");
      throw error;
    }));
    failed.catch(() => {});
    /** The next message of every thread. */
    const nextMessages = () =>
      Promise.race([Promise.all(threads.map(async (one) => (await once(one, "message"))[0])), failed]);
    const addresses = await nextMessages();
    const results = nextMessages();
    for (const thread of threads) thread.postMessage(addresses);
    assertEquals(await results, threads.map(() => (count - 1) * 200));
    await Promise.all(threads.map((thread) => thread.terminate()));
  },
);
