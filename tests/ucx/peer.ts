/**
 * The second process of the tests. Prints its worker's address, reads the first process's address from standard input,
 * both in hexadecimal, and does what its first argument selects; the second argument is the seed of the messages.
 *
 * - `exchange`: sends its messages, receives those of the first process, prints that, and ends when its input does
 * - `leave`: sends its messages, closes everything and ends
 * - `idle`: does nothing until it is killed
 * - `unresponsive`: never answers anything, not even that it is reachable, until it is killed
 * - `call`: as `idle`, but reads `host port` of a listener, to which it connects and sends a byte
 * - `offer`: as `call`, but prints the key of memory of 16 MiB, and sends active messages of 1 MiB, numbers 0 to 3
 * - `listen`: prints `ready`, receives messages with tag 7 and prints their lengths, until it is killed
 */
import process from "node:process";
import { createInterface } from "node:readline";
import { setInterval } from "node:timers";
import { Ucx } from "../../src/ucx/ucx.ts";
import { contentOf, planOf, receivePlan, sendPlan } from "../support/ucx_messages.ts";

const [mode, seedText] = process.argv.slice(2);
const seed = Number(seedText);
const count = 60;

const ucx = Ucx.open();
const worker = ucx.createWorker();
console.log(worker.address.toHex());
// The thread that would answer blocks, like that of a busy process that is then killed.
if (mode === "unresponsive") Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 30_000);
const input = createInterface({ input: process.stdin });
const ended = new Promise<void>((resolve) => input.once("close", resolve));
if (mode !== "exchange") ended.then(() => process.exit(1)); // the first process is gone: do not outlive it
const address: string = await new Promise((resolve) => input.once("line", resolve));
const [host = "", port] = address.split(" ");
const endpoint = await worker.connect(port === undefined ? Uint8Array.fromHex(host) : { host, port: Number(port) });

switch (mode) {
  case "exchange":
    await Promise.all([sendPlan(endpoint, planOf(seed, count)), receivePlan(worker, planOf(seed + 1, count), seed)]);
    console.log("done");
    await ended;
    break;
  case "leave":
    sendPlan(endpoint, planOf(seed, count)); // the close waits for it
    break;
  case "call":
  case "idle":
  case "offer":
    if (mode === "call") await endpoint.send(new Uint8Array(1));
    if (mode === "offer") {
      console.log(worker.register(new Uint8Array(new ArrayBuffer(16 << 20))).key.toHex());
      for (let i = 0; i < 4; i++) endpoint.sendMessage(contentOf(i, 1 << 20));
    }
    setInterval(() => {}, 1000); // an idle worker does not keep a process alive
    await new Promise<never>(() => {});
    break;
  case "listen":
    console.log("ready");
    for (const room = new Uint8Array(4096);;) {
      const { length } = await worker.recv(room, { tag: 7n });
      console.log(length);
    }
}
await worker.close();
ucx.close();
process.exit(0);
