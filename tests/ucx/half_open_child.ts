/**
 * Closes a listener or its worker, as the argument says, while clients have connected. One by one, before and after it,
 * they send what UCX expects first. Prints how many there were, if the process lives.
 *
 * @module
 */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import process from "node:process";
import { setTimeout as pause } from "node:timers/promises";
import { Ucx } from "../../mod.ts";

const ucx = Ucx.open();
const worker = ucx.createWorker();
const listener = worker.listen();
const clients: Socket[] = [];
for (let i = 0; i < 20; i++) {
  const client = connect(listener.port, "127.0.0.1");
  client.on("error", () => {}); // it is hung up on
  await once(client, "connect");
  clients.push(client);
}
await pause(300); // UCX accepts on a thread of its own
const hello = new Uint8Array(116);
hello[0] = 100; // the length of what follows a head of 16 bytes
let closing: Promise<void> | undefined;
for (const [i, client] of clients.entries()) {
  client.write(hello);
  await pause(5);
  if (i === 10) closing = process.argv[2] === "listener" ? listener.close() : worker.close();
}
await closing;
await pause(300);
console.log(`${clients.length} clients`);
process.exit(0);
