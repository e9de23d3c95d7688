/**
 * Connections that are used once and closed at once, between two processes whose event loops are blocked now and then,
 * as on a busy machine: `brief_child.ts CASE [PORT]`. Prints what became of them.
 */
import { once } from "node:events";
import process from "node:process";
import { setTimeout } from "node:timers/promises";
import { Ucx, type UcxEndpoint } from "../../src/ucx/mod.ts";
import { startScript } from "../support/child.ts";

/** How many connections each case makes. */
const count = 60;
const tags = [1n, 2n, 3n];
const secret = "a secret that only both sides know";

/** Sends three messages, and closes at once. */
async function sendAll(endpoint: UcxEndpoint): Promise<void> {
  await Promise.all(tags.map((tag) => endpoint.send(new Uint8Array(100).fill(Number(tag)), { tag })));
  await endpoint.close();
}

/** Receives them, one after the other. */
async function receiveAll(endpoint: UcxEndpoint): Promise<void> {
  for (const tag of tags) {
    const into = new Uint8Array(100);
    const { length } = await endpoint.recv(into, { tag });
    if (length !== 100 || into.some((byte) => byte !== Number(tag))) throw new Error(`got other bytes for ${tag}`);
  }
  await endpoint.close();
}

/** Receives one message of those that are not asked for. */
async function receiveMessage(endpoint: UcxEndpoint): Promise<void> {
  for await (const message of endpoint.messages()) {
    await message.bytes();
    break;
  }
  await endpoint.close({ force: true });
}

interface Case {
  readonly secret?: string;
  readonly errors?: "peer" | "none";
  client(endpoint: UcxEndpoint): Promise<void>;
  server(endpoint: UcxEndpoint): Promise<void>;
}

const cases: Record<string, Case> = {
  "to the client, with a secret": { secret, client: receiveAll, server: sendAll },
  "to the server, with a secret": { secret, client: sendAll, server: receiveAll },
  "to the client": { client: receiveAll, server: sendAll },
  "to the server": { client: sendAll, server: receiveAll },
  "to a server that is told of no errors": {
    errors: "none",
    client: async (endpoint) => {
      await endpoint.sendMessage(new Uint8Array(100));
      await endpoint.close();
    },
    server: receiveMessage,
  },
};

const [name = "", port] = process.argv.slice(2);
const one = cases[name];
if (one === undefined) throw new Error(`There is no case ${name}`);
const { errors = "peer" } = one;
const access = one.secret === undefined ? {} : { secret: one.secret };
const refused: string[] = [];
const jitter = setInterval(() => {
  const end = performance.now() + Math.random() * 4;
  while (performance.now() < end);
}, 1);
using ucx = Ucx.open();
await using worker = ucx.createWorker();
if (port !== undefined) {
  for (let i = 0; i < count; i++) {
    try {
      await one.client(await worker.connect({ host: "127.0.0.1", port: Number(port), ...access }, { errors }));
    } catch (error) {
      refused.push(`client: ${error}`);
    }
  }
  console.log(JSON.stringify(refused));
} else {
  await using listener = worker.listen({ ...access, errors });
  const args = [name, `${listener.port}`];
  const client = startScript(new URL(import.meta.url), { args }, ["ignore", "pipe", "inherit"]);
  let printed = "";
  client.stdout?.setEncoding("utf8").on("data", (text: string) => printed += text);
  const closed = once(client, "close");
  let accepted = 0;
  const ended = closed.then(() => setTimeout(500)).then(() => listener.close());
  for await (const endpoint of listener) {
    accepted++;
    await one.server(endpoint).catch((error) => refused.push(`server: ${error}`));
  }
  await ended;
  console.log(JSON.stringify({ accepted, refused: [...refused, ...JSON.parse(printed)] }));
}
clearInterval(jitter);
process.exit(0);
