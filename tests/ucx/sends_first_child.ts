/**
 * A server that sends as soon as a connection is accepted, in every way, to a client in another process; prints how
 * many bytes the client has got each time: `sends_first_child.ts [PORT]`.
 */
import { once } from "node:events";
import process from "node:process";
import { createInterface } from "node:readline";
import { Ucx, type UcxEndpoint } from "../../src/ucx/mod.ts";
import { startScript } from "../support/child.ts";

const sizes = [8, 100, 8000, 20_000, 1 << 20];

/** How a server sends, and how a client receives. */
const ways: Record<string, [send: (to: UcxEndpoint, bytes: Uint8Array) => Promise<void>, receive: Receive]> = {
  send: [(to, bytes) => to.send(bytes), async (from, size) => (await from.recv(new Uint8Array(size))).length],
  message: [(to, bytes) => to.sendMessage(bytes), async (from) => {
    for await (const message of from.messages()) return (await message.bytes()).length;
    return 0;
  }],
  stream: [async (to, bytes) => {
    const writer = to.writable.getWriter();
    await writer.write(bytes);
    await writer.close();
  }, async (from) => {
    let length = 0;
    for await (const chunk of from.readable) length += chunk.length;
    return length;
  }],
};
type Receive = (from: UcxEndpoint, size: number) => Promise<number>;

using ucx = Ucx.open();
await using worker = ucx.createWorker();
const port = Number(process.argv[2] ?? 0);
if (port > 0) {
  for (const [, receive] of Object.values(ways)) {
    for (const size of sizes) {
      const endpoint = await worker.connect({ host: "127.0.0.1", port });
      console.log(await receive(endpoint, size));
      await endpoint.close();
    }
  }
} else {
  await using listener = worker.listen();
  // What the client complains of is seen, and its death ends this process, rather than a wait for it.
  const client = startScript(new URL(import.meta.url), { args: [`${listener.port}`] }, ["ignore", "pipe", "inherit"]);
  const ended = once(client, "close");
  client.on("exit", (code, signal) => {
    if (code === 0) return;
    console.error(`the client ended with ${signal ?? `exit code ${code}`} after ${got.length} messages`);
    process.exit(1);
  });
  const got: number[] = [];
  if (client.stdout === null) throw new Error("no pipe");
  createInterface({ input: client.stdout }).on("line", (line) => got.push(Number(line)));
  for (const [send] of Object.values(ways)) {
    for (const size of sizes) {
      await using endpoint = await listener.accept();
      if (endpoint !== null) await send(endpoint, new Uint8Array(size));
    }
  }
  await ended;
  console.log(JSON.stringify(got));
}
process.exit(0);
