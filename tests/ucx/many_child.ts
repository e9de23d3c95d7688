/**
 * One process of `many_test.ts`. A server prints its port, and echoes each message of the given number of
 * clients. A process of clients has many workers, and connects each with all servers.
 * Arguments: `server`, the number of connections; or `clients`, the number of workers, and the ports.
 */
import { assertEquals } from "@std/assert";
import process from "node:process";
import type { UcxEndpoint } from "../../src/ucx/endpoint.ts";
import { Ucx } from "../../src/ucx/ucx.ts";
import type { UcxWorker } from "../../src/ucx/worker.ts";
import { assertContent, contentOf } from "../support/ucx_messages.ts";

const [role, count = "0", ...ports] = process.argv.slice(2);
const rounds = 3;
const sizes = [1, 3000, 40_000];

/** All clients' messages arrive at one worker: each client first sends its tag. */
async function serve(endpoint: UcxEndpoint): Promise<void> {
  const messages = endpoint.messages()[Symbol.asyncIterator]();
  const { value: first } = await messages.next();
  const tag = BigInt(first?.text ?? "");
  for (let round = 0; round < rounds; round++) {
    const into = new Uint8Array(40_000);
    const { length } = await endpoint.recv(into, { tag });
    await endpoint.send(into.subarray(0, length), { tag });
  }
  await messages.next(); // until the client is done, and closes
}

async function use(worker: UcxWorker, port: number, tag: bigint): Promise<void> {
  await using endpoint = await worker.connect({ host: "127.0.0.1", port }, { timeout: 30_000 });
  await endpoint.sendMessage(new Uint8Array(0), { header: `${tag}` });
  for (let round = 0; round < rounds; round++) {
    const size = sizes[round] ?? 0;
    const into = new Uint8Array(size);
    const answer = endpoint.recv(into, { tag });
    await endpoint.send(contentOf(Number(tag) + round, size), { tag });
    assertEquals(await answer, { length: size, tag });
    assertContent(into, Number(tag) + round);
  }
}

using ucx = Ucx.open();
if (role === "server") {
  await using worker = ucx.createWorker();
  const listener = await worker.listen();
  console.log(listener.port);
  const served: Promise<void>[] = [];
  for await (const endpoint of listener) if (served.push(serve(endpoint)) === Number(count)) break;
  await Promise.all(served);
} else {
  const workers = Array.from({ length: Number(count) }, () => ucx.createWorker());
  await Promise.all(
    workers.flatMap((worker, i) =>
      ports.map((port, server) => use(worker, Number(port), BigInt((process.pid % 10_000 * 1000 + i) * 10 + server)))
    ),
  );
  await Promise.all(workers.map((worker) => worker.close()));
  console.log(JSON.stringify(workers.length * ports.length));
}
