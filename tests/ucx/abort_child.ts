/**
 * Workers with a listener that are aborted while a client in another process connects to them: `abort_child.ts
 * [client]`. Both event loops are blocked now and then, as on a busy machine. Prints how many rounds the client has
 * survived.
 */
import { once } from "node:events";
import process from "node:process";
import { createInterface } from "node:readline";
import { setTimeout } from "node:timers/promises";
import { Ucx } from "../../src/ucx/mod.ts";
import { startScript } from "../support/child.ts";

const rounds = 25;
const secret = "a secret that only both sides know";
const jitter = setInterval(() => {
  const end = performance.now() + Math.random() * 4;
  while (performance.now() < end);
}, 1);
using ucx = Ucx.open();
if (process.argv[2] === "client") {
  await using worker = ucx.createWorker();
  for await (const line of createInterface({ input: process.stdin })) {
    const to = { host: "127.0.0.1", port: Number(line), secret };
    await worker.connect(to, { timeout: 300 }).then((endpoint) => endpoint.close({ force: true }), () => {});
    console.log("done");
  }
} else {
  const client = startScript(new URL(import.meta.url), { args: ["client"] }, ["pipe", "pipe", "inherit"]);
  if (client.stdout === null || client.stdin === null) throw new Error("no pipes");
  const closed = once(client, "close");
  const lines = createInterface({ input: client.stdout })[Symbol.asyncIterator]();
  let survived = 0;
  for (; survived < rounds; survived++) {
    const worker = ucx.createWorker();
    const { port } = worker.listen({ secret });
    client.stdin.write(`${port}\n`);
    await setTimeout(Math.random() * 25);
    worker.abort();
    if ((await lines.next()).done === true) break;
  }
  client.stdin.end();
  await closed;
  console.log(JSON.stringify({ survived, code: client.exitCode, signal: client.signalCode }));
}
clearInterval(jitter);
process.exit(0);
