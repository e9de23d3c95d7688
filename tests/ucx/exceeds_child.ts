/**
 * A client that sends a listener with a secret more than it accepts; prints what its send and its endpoint end with:
 * `exceeds_child.ts [server]`.
 */
import process from "node:process";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { Ucx } from "../../src/ucx/mod.ts";
import { startScript } from "../support/child.ts";

const ucx = Ucx.open();
const worker = ucx.createWorker();
const secret = "s3cret";
if (process.argv[2] === "server") {
  const listener = worker.listen({ secret, limits: { messageBytes: 10_000 } });
  console.log(listener.port);
  for await (const endpoint of listener) endpoint.recvMany({ tag: 1n }).catch(() => {});
}
const server = startScript(new URL(import.meta.url), { args: ["server"] });
if (server.stdout === null) throw new Error("no pipe");
const [port] = await Array.fromAsync(firstOf(createInterface({ input: server.stdout })));
const endpoint = await worker.connect({ host: "127.0.0.1", port: Number(port), secret });
const named = (error: unknown) => error instanceof Error ? error.name : `${error}`;
const sent = endpoint.sendMany(Array.from({ length: 20 }, () => new Uint8Array(100_000)), { tag: 1n });
const ends = [sent.then(() => "sent", named), endpoint.closed.then(named)];
console.log(JSON.stringify(await Promise.all(ends.map((end) => Promise.race([end, pause(10_000, "not told")])))));
server.kill("SIGKILL");
process.exit(0);

async function* firstOf(lines: AsyncIterable<string>): AsyncGenerator<string> {
  for await (const line of lines) {
    yield line;
    return;
  }
}
