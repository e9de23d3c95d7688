/**
 * One of two programs in separate networks, connected by one link. The first argument selects its role:
 *
 * - `server`, its address: prints the port it listens at, and echoes each message
 * - `client`, the server's address and port, a number of messages: sends them and compares the answers, one every 5 ms
 * - `cut`, the same: sends one message; then it reads that the link is cut, and prints how every operation ends
 */
import { assert, assertEquals } from "@std/assert";
import { once } from "node:events";
import process from "node:process";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { UcxError } from "../../src/ucx/error.ts";
import { Ucx } from "../../src/ucx/ucx.ts";
import { assertContent, contentOf } from "../support/ucx_messages.ts";

const [role, host = "", port = "0", count = "0"] = process.argv.slice(2);
const sizes = [1, 1000, 20_000, 200_000];
const most = 200_000;

const ucx = Ucx.open({ config: { TLS: "tcp" } });
const worker = ucx.createWorker();

/** Sends a message and compares the answer. */
async function sendOne(endpoint: Awaited<ReturnType<typeof worker.connect>>, i: number): Promise<void> {
  const size = sizes[i % sizes.length] ?? 0;
  const into = new Uint8Array(size);
  const answer = endpoint.recv(into);
  await endpoint.send(contentOf(i, size));
  assertEquals(await answer, { length: size, tag: 0n });
  assertContent(into, i);
}

if (role === "server") {
  const listener = await worker.listen({ host });
  console.log(listener.port);
  for await (const endpoint of listener) {
    const into = new Uint8Array(most);
    const answerAll = async () => {
      for (;;) {
        const { length } = await endpoint.recv(into);
        await endpoint.send(into.subarray(0, length));
      }
    };
    await answerAll().catch(() => {}); // until the other side closes
  }
}
const endpoint = await worker.connect({ host, port: Number(port) }, { timeout: 20_000 });
if (role === "client") {
  console.log("connected");
  for (let i = 0; i < Number(count); i++) {
    await sendOne(endpoint, i);
    await pause(5);
  }
  await endpoint.close();
  console.log(JSON.stringify({ answered: Number(count) }));
} else {
  await sendOne(endpoint, 3);
  const lines = createInterface({ input: process.stdin });
  console.log("ready");
  await once(lines, "line");
  const start = performance.now();
  const how = async (name: string, work: Promise<unknown>): Promise<[string, string, number]> => {
    const end = await work.then(() => "done", (error: unknown) => error);
    const status = end instanceof UcxError ? end.statusName : `${end}`;
    return [name, status, performance.now() - start];
  };
  const options = { timeout: 500 };
  const limited = [
    how("send", endpoint.send(new Uint8Array(8 << 20), { tag: 1n, ...options })),
    how("recv", endpoint.recv(new Uint8Array(8), { tag: 1n, ...options })),
    how("flush", endpoint.flush(options)),
  ];
  for (const [name, status, after] of await Promise.all(limited)) {
    assertEquals(status, "UCS_ERR_TIMED_OUT", name);
    assert(after < 1500, `${name} after ${after} ms`);
  }
  // The message sent is not acknowledged, so the system retries for minutes: the close has to be by force.
  const before = performance.now();
  await endpoint.close({ force: true });
  await worker.close();
  console.log(JSON.stringify({ closed: performance.now() - before }));
}
process.exit(0);
